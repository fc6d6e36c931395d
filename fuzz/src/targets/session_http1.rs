//! HTTP/1: the reports do not depend on the pieces of the input and contain no credentials.

use flowgauge::protocols::http1::{HttpParser, Message};
use flowgauge::session::MessageMeta;

use super::dialogue::{Expectations, Line, json, run_all_variants};

crate::one_parser!(HttpParser, "http", 80);

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

/// Maximum number of held octets: two heads with spare capacity, and the start of the content of a tunnel.
const HELD_MAX: u64 = 300 * 1024;

pub fn run(data: &[u8]) {
    run_all_variants::<Set>(data, || Expectations::<Set>::tcp(80, WORDS, describe, HELD_MAX));
}
