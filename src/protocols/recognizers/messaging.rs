//! Recognizers of messaging for people and devices: AMQP, CoAP, XMPP.

use super::octets::{begins_with, datagram_in_role, dialogue, u16_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

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

/// Number of octets within which the XML declaration of XMPP must end.
const HEAD_LEN_MAX: usize = 256;

/// Maximum number of CoAP options of a message that are examined; messages usually have a handful.
const OPTION_COUNT_MAX: usize = 32;

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

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram};
    use super::{AMQP, COAP, XMPP};

    const GET: &[u8] = b"\x41\x01\x7D\x34\x20\xBBtemperature";
    const ACK: &[u8] = b"\x61\x45\x7D\x34\x20\xFF22.3 C";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&AMQP, 5672, b"AMQP\0\0\x09\x01"),
        datagram(&COAP, 5683, GET),
        datagram(&COAP, 40_000, ACK).answered(GET),
        client(&XMPP, 5222, b"<?xml version='1.0'?><stream:stream to='example' version='1.0'>"),
        client(&XMPP, 5222, b"<stream:stream to='example' version='1.0'>"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&AMQP, 5672, b"AMQP\0\0\x09\x09"),
        datagram(&COAP, 40_000, ACK).answered(b"\x41\x01\x7D\x35\x20\xBBtemperature"),
        datagram(&COAP, 5683, b"\x41\x01\x7D\x34\x20\xFE"),
        client(&XMPP, 80, b"<?xml version='1.0'?><html>"),
    ];
}
