//! HTTP/2: the reports of frames and header blocks do not depend on the pieces of the input.

use flowgauge::protocols::http2::{Http2Parser, Message};
use flowgauge::session::MessageMeta;

use super::dialogue::{Expectations, Line, json, run_all_variants};

crate::one_parser!(Http2Parser, "http2", 80);

fn describe(meta: &MessageMeta, Report::One(message): Report<'_>) -> Line {
    let from = meta.from.name();
    match message {
        Message::Body(body) => Line::Part(format!("{from} body {}", body.transaction), body.bytes.to_vec()),
        message => {
            let json = json(&message);
            Line::Whole(format!("{from} {json} {message:?}"))
        }
    }
}

const WORDS: &[&[u8]] = &[
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64",
    b"\0\0\0\x04\x01\0\0\0\0",
    // HEADERS: complete; without an end; padded and with priority; with a new entry; with a Huffman string.
    b"\0\0\x03\x01\x05\0\0\0\x01\x82\x84\x86",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\x02\x01\0\0\0\0\x03\x82\x84",
    b"\0\0\x0a\x01\x2d\0\0\0\x05\x02\0\0\0\0\0\x82\x84\0\0",
    b"\0\0\x07\x01\x04\0\0\0\x07\x40\x01a\x03bcd",
    b"\0\0\x0f\x01\x04\0\0\0\x09\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff\xbe",
    b"\0\0\x02\x01\x04\0\0\0\x0b\xbe\xbf",
    b"\0\0\x03\x01\x04\0\0\0\x0d\x3f\xe1\x01",
    b"\0\0\x0e\x01\x05\0\0\0\x01\0\x0bgrpc-status\x01\x30",
    // CONTINUATION.
    b"\0\0\0\x09\0\0\0\0\x03",
    b"\0\0\x01\x09\x04\0\0\0\x03\x86",
    // DATA.
    b"\0\0\x04\0\0\0\0\0\x01data",
    b"\0\0\x04\0\x01\0\0\0\x01data",
    b"\0\0\x06\0\x09\0\0\0\x03\x02abc\0\0",
    b"\0\x40\0\0\0\0\0\0\x05",
    b"\0\0\0\0\x01\0\0\0\x07",
    // RST_STREAM, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, an extension.
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\0\0\x06\x05\x04\0\0\0\x01\0\0\0\x02\x82\x84",
    b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\x0a\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0ab",
    b"\0\0\x04\x08\0\0\0\0\0\0\0\x01\0",
    b"\0\0\x04\x20\0\0\0\0\0abcd",
    // Parts of frames.
    b"\0",
    b"\0\0",
    b"\x82",
    b"\xbe",
    b"\xff",
    b"a",
    b"\0\0\x01\x01",
    b"\0\x20\0\x01\x04\0\0\0\x0f",
];

/// Maximum number of held octets: for both directions, a frame and a block with spare capacity, and a table; a list of
/// fields; streams.
const HELD_MAX: u64 = 2 * (128 + 96 + 256) * 1024 + 192 * 1024 + 32 * 1024;

/// The preface and the SETTINGS of both sides as steps of words.
const OPENING: [u8; 6] = [2, 0, 2, 1, 3, 1];

pub fn run(data: &[u8]) {
    let terms = || Expectations::<Set>::tcp(80, WORDS, describe, HELD_MAX);
    // Most inputs begin with a valid preface and SETTINGS.
    match data {
        [piece_len, choice, steps @ ..] if choice & 0xc0 != 0xc0 => {
            let data = [&[*piece_len, *choice][..], &OPENING, steps].concat();
            run_all_variants::<Set>(&data, terms);
        }
        data => {
            run_all_variants::<Set>(data, terms);
        }
    }
}
