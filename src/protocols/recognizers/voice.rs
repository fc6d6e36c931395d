//! Recognizers of voice, video and media: RTSP, STUN.

use super::octets::{begins_with, datagram_in_role, either_in_role, request_line, u16_at, u32_at};
use crate::session::{DatagramOpening, OctetSet, Protocol, StreamOpening, Verdict};

/// RTSP (RFC 2326, RFC 7826), recognized by a request for an RTSP URI, or by a status line.
pub static RTSP: Protocol = Protocol::new("rtsp")
    .over_streams(
        &[554],
        Some(|opening| either_in_role(opening, rtsp, |bytes| Some(bytes.starts_with(b"RTSP/")))),
    )
    .streams_begin_with(OctetSet::range(b'A'..=b'T'));

/// STUN and TURN (RFC 8489), recognized by the magic cookie; for RFC 3489, which had none, by attributes that fill the
/// message.
pub static STUN: Protocol = Protocol::new("stun")
    .over_streams(&[STUN_PORT], Some(stun_stream))
    .over_datagrams(&[STUN_PORT], Some(stun_datagram))
    .streams_begin_with(OctetSet::range(0..=0x3F))
    .datagrams_begin_with(OctetSet::range(0..=0x3F));

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

fn rtsp(bytes: &[u8]) -> Verdict {
    match begins_with(bytes, &[b"RTSP/1.0 ", b"RTSP/2.0 "]) {
        Verdict::No => request_line(bytes, RTSP_METHODS, &[b"rtsp://", b"rtspu://", b"rtsps://", b"* RTSP/"]),
        verdict => verdict,
    }
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
    use super::{RTSP, STUN};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&RTSP, 554, b"OPTIONS rtsp://camera.example/1 RTSP/1.0\r\n"),
        client(&RTSP, 8554, b"DESCRIBE rtsp://camera.example/1 RTSP/1.0\r\n"),
        server(&RTSP, 554, b"RTSP/1.0 200 OK\r\n"),
        datagram(&STUN, 3478, b"\x00\x01\x00\x00\x21\x12\xA4\x42abcdefghijkl"),
        datagram(&STUN, 3478, b"\x00\x01\x00\x00abcdefghijklmnop"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x08abcdefghijklmnop\x00\x03\x00\x04\x00\x00\x00\x06"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x06\x21\x12\xA4\x42abcdefghijkl\x80\x22\x00\x02ab"),
        client(&STUN, 3478, b"\x00\x01\x00\x06\x21\x12\xA4\x42abcdefghijkl\x80\x22\x00\x02ab"),
        client(&STUN, 3478, b"\x00\x03\x00\x08\x21\x12\xA4\x42abcdefghijkl\x00\x19\x00\x04\x11\x00\x00\x00"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&RTSP, 554, b"OPTIONS / HTTP/1.1\r\n"),
        datagram(&STUN, 3478, b"\x00\x01\x00\x04\x21\x12\xA4\x42abcdefghijkl"),
        datagram(&STUN, 40_000, b"\x00\x01\x00\x08abcdefghijklmnop\x00\x03\x00\x09\x00\x00\x00\x06"),
        client(&STUN, 3478, b"\x00\x01\x00\x00abcdefghijklmnop"),
    ];
}
