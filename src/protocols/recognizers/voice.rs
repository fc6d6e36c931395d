//! Recognizers of voice, video and media: RTSP.

use super::octets::{begins_with, either_in_role, request_line};
use crate::session::{OctetSet, Protocol, Verdict};

/// RTSP (RFC 2326, RFC 7826), recognized by a request for an RTSP URI, or by a status line.
pub static RTSP: Protocol = Protocol::new("rtsp")
    .over_streams(
        &[554],
        Some(|opening| either_in_role(opening, rtsp, |bytes| Some(bytes.starts_with(b"RTSP/")))),
    )
    .streams_begin_with(OctetSet::range(b'A'..=b'T'));

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

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, server};
    use super::RTSP;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&RTSP, 554, b"OPTIONS rtsp://camera.example/1 RTSP/1.0\r\n"),
        client(&RTSP, 8554, b"DESCRIBE rtsp://camera.example/1 RTSP/1.0\r\n"),
        server(&RTSP, 554, b"RTSP/1.0 200 OK\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[client(&RTSP, 554, b"OPTIONS / HTTP/1.1\r\n")];
}
