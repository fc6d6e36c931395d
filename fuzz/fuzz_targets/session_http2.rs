//! Frames of HTTP/2, header blocks and any octets, with holes: nothing panics, the same is heard however the octets are cut, memory
//! stays below its caps and is given back.
#![no_main]

#[path = "http_turns.rs"]
mod http_turns;

use flowgauge::session::http2::{Http2Parser, Message};
use flowgauge::session::{About, Protocol, Receiver, SessionEvent};
use http_turns::{Said, Step, hear};
use libfuzzer_sys::fuzz_target;

/// Named by its port: the window of the probes depends on how the octets are cut.
static HTTP2: Protocol = Protocol::new("http2").over_streams(&[80], None);

flowgauge::protocols! {
    /// One parser.
    #[derive(Debug)]
    enum Set;
    /// What it says.
    #[derive(Debug)]
    enum Heard;
    parsers { One: Http2Parser = &HTTP2 }
    recognised {}
}

impl Receiver<Set> for Said {
    fn message(&mut self, about: &About, Heard::One(message): Heard<'_>) {
        match message {
            Message::Body(body) => {
                self.part(format!("{} {}", body.transaction, about.from.name()), body.bytes)
            }
            message => self.whole(format!("{} {message:?}", about.from.name())),
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Stopped { fault, .. } => self.whole(format!("stopped: {fault}")),
            _ => self.whole("recognised".to_owned()),
        }
    }
}

const WORDS: [&[u8]; 33] = [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64",
    b"\0\0\0\x04\x01\0\0\0\0",
    // HEADERS: whole; without an end; padded and with priority; with a new entry; with a Huffman string.
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
    // Parts.
    b"\0",
    b"\0\0",
    b"\x82",
    b"\xbe",
    b"\xff",
    b"a",
    b"\0\0\x01\x01",
    b"\0\x20\0\x01\x04\0\0\0\x0f",
];

fuzz_target!(|input: (u8, Vec<Step<'_>>)| {
    // Of both directions, a frame and a block that are kept with room to grow, and a table; a list of fields; streams.
    let held_max = 2 * (128 + 96 + 256) * 1024 + 192 * 1024 + 32 * 1024;
    let mut steps = vec![
        Step::Words { of_server: false, place: 0, times: 0 },
        Step::Words { of_server: false, place: 1, times: 0 },
        Step::Words { of_server: true, place: 1, times: 0 },
    ];
    if input.0 & 0x80 == 0 {
        steps.extend(input.1);
    } else {
        steps = input.1;
    }
    let whole = hear::<Set>(&steps, &WORDS, usize::MAX, held_max);
    let pieces = hear::<Set>(&steps, &WORDS, usize::from(input.0 % 40) + 1, held_max);
    assert_eq!(whole, pieces);
});
