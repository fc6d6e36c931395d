//! Recognizers of voice, video and media: SIP, RTSP, RTP, RTCP, STUN.

use super::octets::{begins_with, datagram_in_role, either_in_role, u16_at, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// SIP (RFC 3261), recognized by a request whose target is a SIP, telephone or service URI, or by a status line.
/// Keep-alives on port 5060 are tolerated.
pub static SIP: Protocol = Protocol::new("sip")
    .in_zeek("sip")
    .in_eve("sip")
    .over_streams(&[5060], Some(sip_stream))
    .over_datagrams(&[5060], Some(sip_datagram))
    .streams_begin_with(OctetSet::range(b'A'..=b'U'));

/// RTSP (RFC 2326, RFC 7826), recognized by a request for an RTSP URI, or by a status line.
pub static RTSP: Protocol = Protocol::new("rtsp")
    .over_streams(
        &[554],
        Some(|opening| either_in_role(opening, rtsp, |bytes| Some(bytes.starts_with(b"RTSP/")))),
    )
    .streams_begin_with(OctetSet::range(b'A'..=b'T'));

/// RTP (RFC 3550), recognized by two datagrams of one side with the same source identifier and increasing sequence
/// numbers.
pub static RTP: Protocol =
    Protocol::new("rtp").over_datagrams(&[], Some(rtp)).datagrams_begin_with(OctetSet::range(0x80..=0xBF));

/// RTCP (RFC 3550 section 6), recognized by a report whose length matches its number of blocks, also in SRTCP; or by
/// feedback messages that fill the datagram.
pub static RTCP: Protocol =
    Protocol::new("rtcp").over_datagrams(&[], Some(rtcp)).datagrams_begin_with(OctetSet::range(0x80..=0xBF));

/// STUN and TURN (RFC 8489), recognized by the magic cookie; for RFC 3489, which had none, by attributes that fill the
/// message.
pub static STUN: Protocol = Protocol::new("stun")
    .over_streams(&[STUN_PORT], Some(stun_stream))
    .over_datagrams(&[STUN_PORT], Some(stun_datagram))
    .streams_begin_with(OctetSet::range(0..=0x3F))
    .datagrams_begin_with(OctetSet::range(0..=0x3F));

const SIP_METHODS: &[&[u8]] = &[
    b"ACK ",
    b"BYE ",
    b"CANCEL ",
    b"INFO ",
    b"INVITE ",
    b"MESSAGE ",
    b"NOTIFY ",
    b"OPTIONS ",
    b"PRACK ",
    b"PUBLISH ",
    b"REFER ",
    b"REGISTER ",
    b"SUBSCRIBE ",
    b"UPDATE ",
];

const RTSP_METHODS: &[&[u8]] = &[
    b"ANNOUNCE ",
    b"DESCRIBE ",
    b"GET_PARAMETER ",
    b"OPTIONS ",
    b"PAUSE ",
    b"PLAY ",
    b"RECORD ",
    b"SETUP ",
    b"SET_PARAMETER ",
    b"TEARDOWN ",
];

/// Matches a SIP or RTSP request that begins with one of `methods`, followed by one of `targets`.
fn request(bytes: &[u8], methods: &[&[u8]], targets: &[&[u8]]) -> Verdict {
    match begins_with(bytes, methods) {
        Verdict::Match => {
            let target = bytes.iter().position(|octet| *octet == b' ').and_then(|at| bytes.get(at + 1..));
            begins_with(target.unwrap_or_default(), targets)
        }
        verdict => verdict,
    }
}

fn sip(bytes: &[u8]) -> Verdict {
    match begins_with(bytes, &[b"SIP/2.0 "]) {
        Verdict::No => request(bytes, SIP_METHODS, &[b"sip:", b"sips:", b"tel:", b"urn:service:"]),
        verdict => verdict,
    }
}

fn is_status(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SIP/")
}

fn sip_stream(opening: &StreamOpening<'_>) -> Verdict {
    either_in_role(opening, sip, |bytes| Some(is_status(bytes)))
}

fn sip_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is_keep_alive = opening.len <= 4 && opening.has_port(5060);
    let is_letter = opening.bytes.first().is_some_and(u8::is_ascii_uppercase);
    if is_keep_alive {
        return Verdict::More;
    }
    let is_match = is_letter && sip(opening.bytes) == Verdict::Match;
    datagram_in_role(opening, is_match, Some(is_status(opening.bytes)))
}

fn rtsp(bytes: &[u8]) -> Verdict {
    match begins_with(bytes, &[b"RTSP/1.0 ", b"RTSP/2.0 "]) {
        Verdict::No => request(bytes, RTSP_METHODS, &[b"rtsp://", b"rtspu://", b"rtsps://", b"* RTSP/"]),
        verdict => verdict,
    }
}

/// Returns the fields of an RTP header that are constant or increase: payload type, sequence number, source identifier
/// (SSRC).
fn rtp_header(bytes: &[u8]) -> Option<(u8, u16, u32)> {
    let [first, second, ..] = bytes else { return None };
    let payload_type = second & 0x7F;
    // Static types, and dynamic ones; RTCP uses the values in between.
    let is_type = matches!(payload_type, 0..=34 | 96..=127);
    let header_len = 12 + 4 * usize::from(first & 0x0F);
    if first >> 6 != 2 || !is_type || bytes.len() < header_len.min(64) {
        return None;
    }
    Some((payload_type, u16_at(bytes, 2)?, u32_at(bytes, 8)?)).filter(|(_, _, source)| *source != 0)
}

fn rtp(opening: &DatagramOpening<'_>) -> Verdict {
    let Some((_, sequence, source)) = rtp_header(opening.bytes) else { return Verdict::No };
    if opening.previous.is_empty() {
        return Verdict::More;
    }
    let follows = rtp_header(opening.previous)
        .is_some_and(|(_, before, same)| same == source && (1..=16).contains(&sequence.wrapping_sub(before)));
    Verdict::of(follows)
}

fn rtcp(opening: &DatagramOpening<'_>) -> Verdict {
    let [first, packet_type @ 200..=207, ..] = opening.bytes else { return Verdict::No };
    let Some(word_count) = u16_at(opening.bytes, 2).filter(|_| first >> 6 == 2) else { return Verdict::No };
    let block_words = 6 * u16::from(first & 0x1F);
    let len = 4 * (usize::from(word_count) + 1);
    Verdict::of(match packet_type {
        200 => word_count == 6 + block_words && len <= opening.len,
        201 => word_count == 1 + block_words && len <= opening.len,
        _ => len == opening.len && len >= 12,
    })
}

const STUN_PORT: u16 = 3478;
const COOKIE: u32 = 0x2112_A442;

fn stun_stream(opening: &StreamOpening<'_>) -> Verdict {
    // Some clients do not count or send the padding of the last attribute.
    let is_len_possible = |len: u16| len.is_multiple_of(4) || opening.server_port == STUN_PORT;
    let message = |bytes: &[u8]| match bytes {
        [] => Verdict::More,
        [0..0x40, ..] => match begins_with(bytes.get(4..).unwrap_or_default(), &[&COOKIE.to_be_bytes()]) {
            Verdict::Match => Verdict::of(u16_at(bytes, 2).is_some_and(is_len_possible)),
            verdict => verdict,
        },
        _ => Verdict::No,
    };
    either_in_role(opening, message, is_stun_answer)
}

/// Returns whether a STUN message is a response, by the two bits of its class; `None` for an indication.
fn is_stun_answer(bytes: &[u8]) -> Option<bool> {
    match u16_at(bytes, 0)? & 0x0110 {
        0 => Some(false),
        0x0010 => None,
        _ => Some(true),
    }
}

fn stun_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let bytes = opening.bytes;
    let ([0..0x40, ..], Some(len)) = (bytes, u16_at(bytes, 2)) else { return Verdict::No };
    if usize::from(len) + 20 != opening.len {
        return Verdict::No;
    }
    if u32_at(bytes, 4) == Some(COOKIE) {
        return datagram_in_role(opening, true, is_stun_answer(bytes));
    }
    if len % 4 != 0 {
        return Verdict::No;
    }
    // Binding and shared secret requests, responses and errors.
    let is_classic = matches!(bytes, [0 | 1, 1 | 2, ..] | [1, 0x11 | 0x12, ..]);
    let attributes = bytes.get(20..).unwrap_or_default();
    let is_match = is_classic && (opening.has_port(STUN_PORT) || (len > 0 && is_filled(attributes)));
    datagram_in_role(opening, is_match, is_stun_answer(bytes))
}

/// Returns whether STUN attributes of RFC 3489 fill the octets exactly.
fn is_filled(mut bytes: &[u8]) -> bool {
    while let Some((kind, len)) = u16_at(bytes, 0).zip(u16_at(bytes, 2)) {
        let is_known = matches!(kind, 1..=0x20 | 0x8000..=0x80FF);
        match bytes.get(4 + usize::from(len)..) {
            Some(rest) if is_known => bytes = rest,
            _ => return false,
        }
    }
    bytes.is_empty()
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, datagram, server};
    use super::{RTCP, RTP, RTSP, SIP, STUN};

    const RTP_1: &[u8] = b"\x80\x00\x12\x34\x00\x00\x00\xA0\xDE\xAD\xBE\xEFvoice";
    const RTP_2: &[u8] = b"\x80\x00\x12\x35\x00\x00\x01\x40\xDE\xAD\xBE\xEFvoice";

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&SIP, 5060, b"INVITE sip:bob@biloxi.example SIP/2.0\r\nVia: x\r\n\r\n"),
        datagram(&SIP, 40_000, b"SIP/2.0 180 Ringing\r\n\r\n"),
        client(&SIP, 5060, b"OPTIONS sip:carol@chicago.example SIP/2.0\r\n"),
        client(&RTSP, 554, b"OPTIONS rtsp://camera.example/1 RTSP/1.0\r\n"),
        client(&RTSP, 8554, b"DESCRIBE rtsp://camera.example/1 RTSP/1.0\r\n"),
        server(&RTSP, 554, b"RTSP/1.0 200 OK\r\n"),
        datagram(&RTP, 40_000, RTP_2).after(RTP_1),
        datagram(&RTCP, 40_001, b"\x80\xC9\x00\x01\xDE\xAD\xBE\xEF"),
        datagram(
            &RTCP,
            40_001,
            b"\x80\xC8\x00\x06\xDE\xAD\xBE\xEF\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05\x0Bencrypted",
        ),
        datagram(&STUN, 3478, b"\x00\x01\x00\x00\x21\x12\xA4\x42abcdefghijkl"),
        datagram(&STUN, 3478, b"\x00\x01\x00\x00abcdefghijklmnop"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x08abcdefghijklmnop\x00\x03\x00\x04\x00\x00\x00\x06"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x06\x21\x12\xA4\x42abcdefghijkl\x80\x22\x00\x02ab"),
        client(&STUN, 3478, b"\x00\x01\x00\x06\x21\x12\xA4\x42abcdefghijkl\x80\x22\x00\x02ab"),
        client(&STUN, 3478, b"\x00\x03\x00\x08\x21\x12\xA4\x42abcdefghijkl\x00\x19\x00\x04\x11\x00\x00\x00"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&SIP, 5060, b"OPTIONS * HTTP/1.1\r\n\r\n"),
        client(&SIP, 5060, b"MESSAGE to you\r\n"),
        client(&RTSP, 554, b"OPTIONS / HTTP/1.1\r\n"),
        datagram(&RTP, 40_000, RTP_2).after(b"\x80\x00\x12\x34\x00\x00\x00\xA0\xDE\xAD\xBE\xEEvoice"),
        datagram(&RTP, 40_000, RTP_1).after(RTP_2),
        datagram(&RTP, 40_000, b"\x80\x60\x00"),
        datagram(&RTCP, 40_001, b"\x80\xC9\x00\x02\xDE\xAD\xBE\xEF"),
        datagram(&STUN, 3478, b"\x00\x01\x00\x04\x21\x12\xA4\x42abcdefghijkl"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x08abcdefghijklmnop\x00\x03\x00\x09\x00\x00\x00\x06"),
        client(&STUN, 3478, b"\x00\x01\x00\x00abcdefghijklmnop"),
    ];
}
