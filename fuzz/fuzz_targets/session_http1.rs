//! Words of HTTP/1.x and any octets, with holes: nothing panics, the same is heard however the octets are cut, memory stays below
//! its caps and is given back, and no credentials are shown.
#![no_main]

#[path = "http_turns.rs"]
mod http_turns;

use flowgauge::session::http1::{HttpParser, Message};
use flowgauge::session::{About, Protocol, Receiver, SessionEvent};
use http_turns::{Said, Step, hear};
use libfuzzer_sys::fuzz_target;

/// Named by its port: the window of the probes depends on how the octets are cut.
static HTTP: Protocol = Protocol::new("http").over_streams(&[80], None);

flowgauge::protocols! {
    /// One parser.
    #[derive(Debug)]
    enum Set;
    /// What it says.
    #[derive(Debug)]
    enum Heard;
    parsers { One: HttpParser = &HTTP }
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

const WORDS: [&[u8]; 44] = [
    b"GET / HTTP/1.1\r\n",
    b"HEAD /a HTTP/1.0\r\n",
    b"POST http://u:password@b/ HTTP/1.1\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"GET /a b HTTP/1.1\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 304\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\n",
    b"HTTP/1.1  404 no\n",
    b"Host: a\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Length: 500\r\n",
    b"Content-Length: 18446744073709551615\r\n",
    b"Content-Length: x\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Authorization: Basic password\r\n",
    b"Cookie: password\r\n",
    b"Upgrade: h2c\r\n",
    b"Upgrade: websocket\r\n",
    b"A: b\r\n c\r\n",
    b"no field\r\n",
    b"X : \x01\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"5\r\nabcde\r\n",
    b"5;a=b\r\n",
    b"FFFFFFFFFFFFFFFF\r\n",
    b"0\r\n",
    b"0\r\n\r\n",
    b"abcde",
    b"GET",
    b" ",
    b"HTTP/1.1",
    b"GET / HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"\x16\x03\x01",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

fuzz_target!(|input: (u8, Vec<Step<'_>>)| {
    // Two heads that are kept with room to grow, and what has begun after a tunnel.
    let held_max = 300 * 1024;
    let whole = hear::<Set>(&input.1, &WORDS, usize::MAX, held_max);
    let pieces = hear::<Set>(&input.1, &WORDS, usize::from(input.0 % 40) + 1, held_max);
    assert_eq!(whole, pieces);
});
