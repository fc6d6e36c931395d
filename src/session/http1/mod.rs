//! HTTP/1.0 and HTTP/1.1: heads as messages, bodies as pieces.
//!
//! | | |
//! |---|---|
//! | standards | RFC 9110 (semantics), RFC 9112 (messages), RFC 7617 and others by the name of their scheme only |
//! | recognised by | a request line or status line that names `HTTP/1.`, in either direction; ports 80, 591, 3128, 8000, 8008, 8080, where such a line is also found behind octets of something else, and a request of HTTP/0.9 has none |
//! | parsed | request and status lines, header fields, framing of bodies, trailers, interim responses; HTTP/0.9 |
//! | not parsed | content codings are named and not decoded |
//! | hands over | CONNECT that is granted, to whatever the probes tell; `101` with `h2c`, to HTTP/2; with `websocket`, to [`WEBSOCKET`] |
//!
//! A request is followed by the [pieces](Message::Body) of its body and by [`Message::End`], and so is each response that is
//! final. Interim responses (1xx) have no end, and neither has a `101`, after which something else is spoken. Pieces borrow
//! what was captured: bodies are not collected.
//!
//! A request line without a version is one of HTTP/0.9, if its method is known ([`Version::Http09`]): no head follows
//! it, and the response is a body without a head, unless it begins with a status line.
//!
//! Requests are numbered from 0 in each flow, and a response has the number of the request that it answers. A response that
//! comes while none is asked for takes a number of its own, as its request was not captured. After a gap among
//! responses, the next one is taken for the answer to the last request, which is right wherever requests are not pipelined.
//!
//! Octets that are missing inside a body whose framing goes on behind them are a [`Message::Gap`]. Any other gap ends
//! the message at hand, and the direction goes on where the next message begins. So does framing that makes no sense: a
//! bad chunk, or a request whose length or coding does not tell where its body ends ([`Anomaly::BadLength`],
//! [`Anomaly::BadCoding`]).
//!
//! A direction that does not begin with a message is searched for one, since a server answers what is no request too:
//! 16 KiB before any message of the flow, 1 MiB after one.
//!
//! Limits: a head or trailer section of [`HEAD_LEN_MAX`] octets and [`HEADER_COUNT_MAX`] fields, a chunk's line of
//! [`CHUNK_LINE_LEN_MAX`], and [`PIPELINE_COUNT_MAX`] requests without an answer, beyond which it is forgotten which of
//! them ask for a head only. A head beyond the others is left out, and the next message is looked for. Nothing is
//! allocated, but for heads with folded lines, for those that are not well-formed, and for URIs with a password in
//! them.

mod chunked;
pub(super) mod credentials;
mod framing;
mod head;
mod headers;
mod message;
mod parser;
mod pending;
mod probe;
mod resync;

pub use headers::{Header, Headers};
pub use message::{Anomaly, Body, BodyGap, End, Message, Request, Response, Version};
pub use parser::HttpParser;

use super::Protocol;

/// Octets of a head, or of a trailer section.
pub const HEAD_LEN_MAX: usize = 48 << 10;

/// Fields of a head, or of a trailer section.
pub const HEADER_COUNT_MAX: usize = 128;

/// Octets of the line before a chunk: its length and extensions.
pub const CHUNK_LINE_LEN_MAX: usize = 4096;

/// Requests without an answer whose kind is remembered.
pub const PIPELINE_COUNT_MAX: u64 = 32;

/// HTTP/1.x.
pub static PROTOCOL: Protocol =
    Protocol::new("http").over_streams(&PORTS, Some(probe::probe)).resumed_anywhere_by(resync::resume);

const PORTS: [u16; 6] = [80, 591, 3128, 8000, 8008, 8080];

/// WebSocket (RFC 6455), which an upgrade leads to. It has no probe: it never begins a connection.
pub static WEBSOCKET: Protocol = Protocol::new("websocket");
