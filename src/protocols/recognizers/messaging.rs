//! Recognizers of messaging for people and devices: MQTT, AMQP, CoAP, XMPP, IRC.

use super::octets::{begins_with, begins_with_word, datagram_in_role, dialogue, is_printable, u16_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// MQTT 3.1 to 5, recognized by a CONNECT packet with the protocol name, or a PUBLISH packet that fills the octets; on
/// port 1883 also by other packets that fill the octets.
pub static MQTT: Protocol = Protocol::new("mqtt")
    .in_zeek("mqtt")
    .in_eve("mqtt")
    .over_streams(&[1883], Some(mqtt))
    .streams_begin_with(OctetSet::range(0x20..=0xEF).and(OctetSet::of(b"\x10")));

/// AMQP 0.9 and 1.0, recognized by the protocol header.
pub static AMQP: Protocol =
    Protocol::new("amqp").over_streams(&[5672], Some(amqp)).streams_begin_with(OctetSet::of(b"A"));

/// `CoAP` (RFC 7252), recognized by well-formed options, on port 5683 or with a response that has the same message ID
/// as its request.
pub static COAP: Protocol = Protocol::new("coap")
    .over_datagrams(&[5683], Some(coap))
    .datagrams_begin_with(OctetSet::range(0x40..=0x7F));

/// XMPP (RFC 6120), recognized by a stream header.
pub static XMPP: Protocol = Protocol::new("xmpp")
    .in_zeek("xmpp")
    .over_streams(&[5222, 5269], Some(xmpp))
    .streams_begin_with(OctetSet::of(b"<"));

/// IRC (RFC 2812), recognized by the registration of a client, or the first messages of a server.
pub static IRC: Protocol = Protocol::new("irc")
    .in_zeek("irc")
    .in_eve("irc")
    .over_streams(&[6667], Some(irc))
    .streams_begin_with(OctetSet::LETTERS.and(OctetSet::of(b":")));

/// Number of octets within which the first line of IRC or the XML declaration of XMPP must end.
const HEAD_LEN_MAX: usize = 256;

/// Maximum number of CoAP options of a message that are examined; messages usually have a handful.
const OPTION_COUNT_MAX: usize = 32;

/// Parses the Remaining Length field of an MQTT packet (MQTT 5.0 section 1.5.5). Returns the length in octets, and the
/// octets after the field.
fn remaining(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut len = 0;
    for (place, octet) in bytes.iter().take(4).enumerate() {
        len |= usize::from(octet & 0x7F) << (7 * place);
        if *octet < 0x80 {
            return Some((len, bytes.get(place + 1..)?));
        }
    }
    None
}

fn mqtt(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(1883);
    let packets = |bytes: &[u8]| match is_publish(bytes) {
        true => Verdict::Match,
        false if is_on_port => filled(bytes),
        false => Verdict::No,
    };
    let connect = |bytes: &[u8]| match bytes {
        [] => Verdict::More,
        [0x10, rest @ ..] => match remaining(rest) {
            Some((10.., rest)) => {
                begins_with(rest, &[b"\0\x04MQTT\x04", b"\0\x04MQTT\x05", b"\0\x06MQIsdp\x03"])
            }
            None if rest.len() < 4 => Verdict::More,
            _ => Verdict::No,
        },
        // A ping request: the response decides.
        [0xC0, 0] => match opening.server {
            [] => Verdict::More,
            server => Verdict::of(*server == [0xD0, 0]),
        },
        [0xC0] => Verdict::More,
        _ => packets(bytes),
    };
    let answers = |bytes: &[u8]| if bytes.is_empty() { Verdict::More } else { packets(bytes) };
    dialogue(opening, connect, answers)
}

/// Returns whether `bytes` are exactly one MQTT PUBLISH packet with a printable topic of at most 255 octets.
fn is_publish(bytes: &[u8]) -> bool {
    let [0x30..=0x35 | 0x38..=0x3D, rest @ ..] = bytes else { return false };
    match remaining(rest) {
        Some((len, [0, topic_len, topic @ ..])) if len == 2 + topic.len() => {
            topic.get(..usize::from(*topic_len)).is_some_and(is_printable)
        }
        _ => false,
    }
}

/// Matches if MQTT packets of types that follow CONNECT fill the octets.
fn filled(mut bytes: &[u8]) -> Verdict {
    while let [first, rest @ ..] = bytes {
        let is_sound = match first >> 4 {
            3 => first & 6 != 6,
            6 | 8 | 10 => first & 0x0F == 2,
            2 | 4 | 5 | 7 | 9 | 11..=14 => first & 0x0F == 0,
            _ => false,
        };
        match remaining(rest) {
            _ if !is_sound => return Verdict::No,
            Some((len, rest)) if len <= rest.len() => bytes = rest.get(len..).unwrap_or_default(),
            None if rest.len() >= 4 => return Verdict::No,
            _ => return Verdict::More,
        }
    }
    Verdict::Match
}

fn amqp(opening: &StreamOpening<'_>) -> Verdict {
    let header = |bytes: &[u8]| {
        begins_with(
            bytes,
            &[
                b"AMQP\0\0\x09\x01",
                b"AMQP\x01\x01\x00\x09",
                b"AMQP\x01\x01\x08\0",
                b"AMQP\0\x01\0\0",
                b"AMQP\x03\x01\0\0",
                b"AMQP\x02\x01\0\0",
            ],
        )
    };
    dialogue(opening, header, |_| Verdict::No)
}

fn coap(opening: &DatagramOpening<'_>) -> Verdict {
    let [first @ 0x40..=0x7F, code, ..] = opening.bytes else { return Verdict::No };
    let token_len = usize::from(first & 0x0F);
    // Empty, a request, or a response by class.
    let is_code = matches!(code, 0..=7 | 0x41..=0x45 | 0x5F | 0x80..=0x9D | 0xA0..=0xA5);
    let (kind, message) = (first >> 4 & 3, u16_at(opening.bytes, 2));
    if token_len > 8 || !is_code || (*code == 0 && (opening.len != 4 || kind < 2)) {
        return Verdict::No;
    }
    if !opening.bytes.get(4 + token_len..).is_some_and(|options| *code == 0 || has_options(options)) {
        return Verdict::No;
    }
    if opening.has_port(5683) {
        return datagram_in_role(opening, true, Some(*code >= 0x41).filter(|_| *code != 0));
    }
    // An acknowledgment or a reset repeats the message ID that it refers to.
    let is_requested = matches!(opening.answered, [0x40..=0x4F, ..]);
    if kind >= 2 && is_requested {
        return Verdict::of(u16_at(opening.answered, 2) == message);
    }
    let is_request =
        kind == 0 && matches!(code, 1..=4) && opening.answered.is_empty() && opening.previous.is_empty();
    if is_request { Verdict::More } else { Verdict::No }
}

/// Returns whether the CoAP options at the start of `bytes`, up to the payload marker, are well-formed (RFC 7252
/// section 3.1).
fn has_options(mut bytes: &[u8]) -> bool {
    fn extended(nibble: u8, bytes: &[u8]) -> Option<(usize, &[u8])> {
        match (nibble, bytes) {
            (0..=12, _) => Some((usize::from(nibble), bytes)),
            (13, [low, rest @ ..]) => Some((13 + usize::from(*low), rest)),
            (14, [high, low, rest @ ..]) => {
                Some((269 + usize::from(u16::from_be_bytes([*high, *low])), rest))
            }
            _ => None,
        }
    }
    let mut number = 0;
    for _ in 0..OPTION_COUNT_MAX {
        let [first, rest @ ..] = bytes else { return true };
        if *first == 0xFF {
            return !rest.is_empty();
        }
        let Some((delta, rest)) = extended(first >> 4, rest) else { return false };
        let Some((len, rest)) = extended(first & 0x0F, rest) else { return false };
        number += delta;
        let Some(rest) = rest.get(len..).filter(|_| number <= 2100) else { return false };
        bytes = rest;
    }
    bytes.is_empty()
}

fn xmpp(opening: &StreamOpening<'_>) -> Verdict {
    let stream = |bytes: &[u8]| match begins_with(bytes, &[b"<?xml ", b"<stream:stream "]) {
        Verdict::Match if bytes.starts_with(b"<?") => {
            let head = bytes.get(..HEAD_LEN_MAX).unwrap_or(bytes);
            let open = head.iter().skip(1).position(|octet| *octet == b'<').and_then(|at| head.get(at + 1..));
            match open {
                Some(open) => begins_with(open, &[b"<stream:stream "]),
                None if bytes.len() < HEAD_LEN_MAX => Verdict::More,
                None => Verdict::No,
            }
        }
        verdict => verdict,
    };
    dialogue(opening, stream, |_| Verdict::No)
}

/// Matches the IRC commands with which a client registers. FTP and POP3 share some of these commands.
fn irc_registration(bytes: &[u8]) -> Verdict {
    let line_len = || bytes.iter().take(HEAD_LEN_MAX).position(|octet| *octet == b'\n');
    match begins_with_word(bytes, &[b"NICK ", b"CAP LS", b"CAP REQ ", b"USER ", b"PASS "]) {
        // NICK or CAP follows on the next line.
        Verdict::Match if matches!(bytes, [b'P' | b'p', ..]) => {
            match line_len().and_then(|len| bytes.get(len + 1..)) {
                Some(next) => begins_with_word(next, &[b"NICK ", b"CAP "]),
                None if bytes.len() < HEAD_LEN_MAX => Verdict::More,
                None => Verdict::No,
            }
        }
        // USER has four parameters; the same command of other protocols has one.
        Verdict::Match if matches!(bytes, [b'U' | b'u', ..]) => {
            let line_len = line_len();
            let line = bytes.get(..line_len.unwrap_or(bytes.len())).unwrap_or_default();
            match line.iter().filter(|octet| **octet == b' ').count() {
                4.. => Verdict::Match,
                _ if line_len.is_none() && bytes.len() < HEAD_LEN_MAX => Verdict::More,
                _ => Verdict::No,
            }
        }
        verdict => verdict,
    }
}

fn irc(opening: &StreamOpening<'_>) -> Verdict {
    let answers = |bytes: &[u8]| match bytes {
        // A server name, then a notice or the first numerics.
        [b':', rest @ ..] => {
            let head = rest.get(..64).unwrap_or(rest);
            match head.iter().position(|octet| *octet == b' ').and_then(|at| rest.get(at + 1..)) {
                Some(command) => {
                    begins_with(command, &[b"NOTICE ", b"001 ", b"020 ", b"CAP ", b"PRIVMSG ", b"JOIN "])
                }
                None if rest.len() < 64 => Verdict::More,
                None => Verdict::No,
            }
        }
        _ => begins_with(bytes, &[b"NOTICE AUTH :", b"NOTICE * :"]),
    };
    dialogue(opening, irc_registration, answers)
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram, server};
    use super::{AMQP, COAP, IRC, MQTT, XMPP};

    const GET: &[u8] = b"\x41\x01\x7D\x34\x20\xBBtemperature";
    const ACK: &[u8] = b"\x61\x45\x7D\x34\x20\xFF22.3 C";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&MQTT, 9001, b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3C\x00\x04nemo"),
        client(&MQTT, 1883, b"\x10\x12\x00\x06MQIsdp\x03\x02\x00\x3C\x00\x04nemo"),
        client(&MQTT, 9001, b"\xC0\x00").answered(b"\xD0\x00"),
        client(&MQTT, 1883, b"\x82\x08\x00\x01\x00\x03a/b\x00"),
        client(&AMQP, 5672, b"AMQP\0\0\x09\x01"),
        datagram(&COAP, 5683, GET),
        datagram(&COAP, 40_000, ACK).answered(GET),
        client(&XMPP, 5222, b"<?xml version='1.0'?><stream:stream to='example' version='1.0'>"),
        client(&XMPP, 5222, b"<stream:stream to='example' version='1.0'>"),
        client(&IRC, 6667, b"NICK nemo\r\nUSER nemo 0 * :No one\r\n"),
        client(&IRC, 6667, b"USER nemo 0 * :No one\r\n"),
        client(&IRC, 6667, b"PASS secret\nNICK nemo\n"),
        server(&IRC, 6667, b":irc.example NOTICE AUTH :*** Looking up your name\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&MQTT, 1883, b"\x10\x10\x00\x04MQTS\x04\x02\x00\x3C\x00\x04nemo"),
        client(&MQTT, 1883, b"\x36\x07\x00\x04short"),
        client(&MQTT, 9001, b"\xC0\x00").answered(b"\xD0\x01"),
        client(&AMQP, 5672, b"AMQP\0\0\x09\x09"),
        datagram(&COAP, 40_000, ACK).answered(b"\x41\x01\x7D\x35\x20\xBBtemperature"),
        datagram(&COAP, 5683, b"\x41\x01\x7D\x34\x20\xFE"),
        client(&XMPP, 80, b"<?xml version='1.0'?><html>"),
        client(&IRC, 21, b"USER nemo\r\n"),
        client(&IRC, 110, b"PASS secret\r\nSTAT\r\n"),
        server(&IRC, 6667, b":this is nothing of the kind\r\n"),
    ];
}
