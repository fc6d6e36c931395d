//! HTTP/2: requests and responses with encoded headers, and expensive connections.

use flowgauge::session::Role::{Client, Server};

use super::feed::{Case, Expected, Input, filled};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The first request and the first response of RFC 7541 appendix C.4 and C.6, with Huffman coding.
const REQUEST: [u8; 17] =
    [0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
const RESPONSE: [u8; 54] = [
    0x48, 0x82, 0x64, 0x02, 0x58, 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b, 0x61, 0x96, 0xd0, 0x7a, 0xbe, 0x94,
    0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b,
    0xff, 0x6e, 0x91, 0x9d, 0x29, 0xad, 0x17, 0x18, 0x63, 0xc7, 0x8f, 0x0b, 0x97, 0xc8, 0xe9, 0xae, 0x82,
    0xae, 0x43, 0xd3,
];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn headers(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
}

fn with_preface() -> Input {
    let mut input = Input::tcp(80);
    let settings = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]);
    input.send(Client, &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat());
    input.send(Server, &settings);
    input
}

fn dialogue(packet_len: usize) -> Input {
    filled(with_preface(), |input, round| {
        let stream = 2 * round + 1;
        input.send_in(packet_len, Client, &headers(stream, &REQUEST));
        let head = frame(HEADERS, END_HEADERS, stream, &RESPONSE);
        let body = frame(DATA, END_STREAM, stream, &[b'x'; 100]);
        input.send_in(packet_len, Server, &[head, body].concat());
    })
}

pub(crate) fn benign() -> Case {
    (dialogue(1460), Expected::messages(500))
}

/// The same dialogue with one octet per segment.
pub(crate) fn one_octet_segments() -> Case {
    (dialogue(1), Expected::messages(10))
}

/// A literal with a long name that is added to the table.
fn long_name() -> Vec<u8> {
    // 4000 is 127 and 3873.
    [&[0x40, 127, 0xa1, 30][..], &[b'n'; 4000], &[1, b'v']].concat()
}

/// A field of two octets that refers to the last name in the table.
const SAME_NAME: [u8; 2] = [0x7e, 0];

/// Each field repeats a long name.
pub(crate) fn indexed_name_bomb() -> Case {
    let mut input = with_preface();
    input.send(Client, &headers(1, &long_name()));
    let input =
        filled(input, |input, round| input.send(Client, &headers(2 * round + 3, &SAME_NAME.repeat(8000))));
    (input, Expected::messages(3).fault("header_list_too_long"))
}

/// The same in lists just below the limit.
pub(crate) fn lists_below_the_limit() -> Case {
    let mut input = with_preface();
    input.send(Client, &headers(1, &long_name()));
    let input =
        filled(input, |input, round| input.send(Client, &headers(2 * round + 3, &SAME_NAME.repeat(15))));
    (input, Expected::messages(3).fault("header_expansion"))
}

/// The same as often as possible without reaching the limit of a connection.
pub(crate) fn expansion_below_the_limit() -> Case {
    let mut input = with_preface();
    input.send(Client, &headers(1, &long_name()));
    let block = [&SAME_NAME[..], &[0x82; 8]].concat();
    let blocks = |round: u32| {
        (0..76).flat_map(|position| headers(2 * (76 * round + position) + 3, &block)).collect::<Vec<_>>()
    };
    (filled(input, |input, round| input.send(Client, &blocks(round))), Expected::messages(1000))
}

/// Requests that all repeat a long path.
pub(crate) fn repeated_paths() -> Case {
    let mut input = with_preface();
    let path = [&[0x82, 0x44, 127, 0xa1, 30][..], &[b'/'; 4000]].concat();
    input.send(Client, &headers(1, &path));
    let block = [0x82, 0xbe, 0x86, 0x86, 0x86, 0x86, 0x86, 0x86];
    let blocks = |round: u32| {
        (0..85).flat_map(|position| headers(2 * (85 * round + position) + 3, &block)).collect::<Vec<_>>()
    };
    let expected = Expected { output_ratio_max: 48, ..Expected::messages(1000) };
    (filled(input, |input, round| input.send(Client, &blocks(round))), expected)
}

/// Frames of more streams than the limit, in turn.
pub(crate) fn stream_churn() -> Case {
    let frames = |round: u32| {
        (0..160)
            .flat_map(|position| frame(DATA, 0, 2 * ((160 * round + position) % 300) + 1, &[]))
            .collect::<Vec<_>>()
    };
    (filled(with_preface(), |input, round| input.send(Client, &frames(round))), Expected::messages(2))
}

/// Streams that are opened and reset while many others are open.
pub(crate) fn resets() -> Case {
    let mut input = with_preface();
    let open: Vec<u8> = (0..250).flat_map(|position| frame(DATA, 0, 4 * position + 1, &[])).collect();
    input.send(Client, &open);
    let frames = |round: u32| {
        (0..60)
            .flat_map(|position| {
                let stream = 4 * ((60 * round + position) % 120) + 3;
                [frame(DATA, 0, stream, &[]), frame(RST_STREAM, 0, stream, &[0; 4])].concat()
            })
            .collect::<Vec<_>>()
    };
    (filled(input, |input, round| input.send(Client, &frames(round))), Expected::messages(1000))
}

/// A header block in the maximum number of frames, which are almost empty.
pub(crate) fn continuations() -> Case {
    let mut input = with_preface();
    while !input.is_full() {
        let mut block = frame(HEADERS, 0, 1, &[0x82]);
        (0..31).for_each(|_| block.extend(frame(CONTINUATION, 0, 1, &[0x86])));
        block.extend(frame(CONTINUATION, END_HEADERS, 1, &[0x84]));
        input.send(Client, &block);
    }
    (input, Expected::messages(100))
}

/// Fields of one octet each.
pub(crate) fn static_fields() -> Case {
    let block = [0x82, 0x86, 0x84].repeat(80);
    let blocks = |round: u32| {
        (0..5).flat_map(|position| headers(2 * (5 * round + position) + 1, &block)).collect::<Vec<_>>()
    };
    (filled(with_preface(), |input, round| input.send(Client, &blocks(round))), Expected::messages(400))
}

/// Strings of the longest codes, which have 30 bits.
pub(crate) fn long_codes() -> Case {
    // The code of octet 10 sixteen times, in 60 octets.
    let mut bits = 0_u128;
    for _ in 0..4 {
        bits = bits << 30 | 0x3fff_fffc;
    }
    let code = bits.to_be_bytes()[1..].repeat(4);
    let field = [&[0, 1, b'a', 0x80 | code.len() as u8][..], &code].concat();
    let block = field.repeat(20);
    (
        filled(with_preface(), |input, round| input.send(Client, &headers(2 * round + 1, &block))),
        Expected::messages(40),
    )
}

/// Fields that are added to the table and then evicted.
pub(crate) fn table_churn() -> Case {
    let field = [&[0x40, 1, b'a', 20][..], &[b'v'; 20]].concat();
    let block = [&[0x20, 0x3f, 0xe1, 0x1f][..], &field.repeat(56)].concat();
    (
        filled(with_preface(), |input, round| input.send(Client, &headers(2 * round + 1, &block))),
        Expected::messages(40),
    )
}
