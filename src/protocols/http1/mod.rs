//! HTTP/1.0 and HTTP/1.1: heads as messages, bodies as pieces.
//!
//! | | |
//! |---|---|
//! | standards | RFC 9110 (semantics), RFC 9112 (messages), RFC 7617 and others by the name of their scheme only |
//! | recognized by | a request line or status line that names `HTTP/1.`, in either direction; ports 80, 591, 3128, 8000, 8008, 8080, where such a line is also found after octets of another protocol, and a request of HTTP/0.9 is accepted without it |
//! | parsed | request and status lines, header fields, framing of bodies, trailers, interim responses; HTTP/0.9 |
//! | not parsed | content codings are named and not decoded |
//! | handover | a granted CONNECT, to the protocol that the probes identify; `101` with `h2c`, to HTTP/2; with `websocket`, to [`WEBSOCKET`] |
//!
//! A program can log requests with these messages, or process the transported files. This one finds failed requests:
//!
//! ```
//! use flowgauge::protocols::http1::Message as Http;
//! use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, on_message};
//!
//! let mut failed = Vec::new();
//! let sink = on_message::<Standard>(|_, _, message| match message {
//!     Message::Http1(Http::Response(response)) if response.status >= 400 => {
//!         failed.push((response.transaction, response.status));
//!     }
//!     _ => {}
//! });
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(failed, [(3, 404)]);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! A request is followed by the [pieces](Message::Body) of its body and by [`Message::End`], and so is each final
//! response. Interim responses (1xx) have no end, and neither has a `101`, after which another protocol follows. Pieces
//! borrow the captured octets: bodies are not buffered.
//!
//! A request line without a version is a request of HTTP/0.9 if its method is known ([`Version::Http09`]): it is not
//! followed by a head, and the response is a body without a head, unless it begins with a status line.
//!
//! Requests are numbered from 0 in each flow, and a response has the number of the request that it answers. A response
//! that arrives while no request is pending gets a number of its own, because its request was not captured. After a gap
//! among responses, the next one is assumed to answer the last request, which is correct if requests are not pipelined.
//!
//! If a request with `Expect: 100-continue` gets a final response that is not 2xx before the first octet of its body, the
//! octets after it are the next request if they begin as one, and otherwise the body (RFC 9110 section 10.1.1). The
//! response to a request that was not captured has no body if the octets after its head begin a response, as after HEAD.
//!
//! Missing octets inside a body whose framing continues after them are reported as a [`Message::Gap`]. Any other gap
//! ends the current message, and parsing continues at the beginning of the next message. The same applies to invalid
//! framing: a bad chunk, or a request whose length or coding does not determine the end of its body
//! ([`Anomaly::BadLength`], [`Anomaly::BadCoding`]).
//!
//! A direction that does not begin with a message is searched for one, because servers also answer invalid requests: 16
//! KiB before the first message of the flow, 1 MiB after it.
//!
//! Limits: a head or trailer section of [`HEAD_LEN_MAX`] octets and [`HEADER_COUNT_MAX`] fields, a chunk's line of
//! [`CHUNK_LINE_LEN_MAX`], and [`PIPELINE_COUNT_MAX`] requests without a response, beyond which the parser no longer
//! knows which responses have a head only. A head that exceeds the other limits is omitted, and the next message is
//! searched for. Nothing is allocated, except for heads with folded lines, for those that are not well-formed, and for
//! URIs that contain a password.

mod chunked;
pub(crate) mod content_range;
pub(super) mod credentials;
mod framing;
mod head;
mod headers;
mod message;
mod number;
mod parser;
mod pending;
mod probe;
mod resync;

pub use content_range::ContentRange;
pub use headers::{Header, Headers};
pub use message::{Anomaly, Body, BodyGap, End, Message, Request, Response, Version};
pub use parser::HttpParser;

use crate::session::{OctetSet, Protocol};

/// Maximum length in octets of an HTTP/1.x head, or of a trailer section.
pub const HEAD_LEN_MAX: usize = 48 << 10;

/// Maximum number of fields of an HTTP/1.x head, or of a trailer section.
pub const HEADER_COUNT_MAX: usize = 128;

/// Maximum length in octets of the line before a chunk, which contains the chunk's length and extensions.
pub const CHUNK_LINE_LEN_MAX: usize = 4096;

/// Maximum number of requests without a response for which the parser keeps the kind of the request.
pub const PIPELINE_COUNT_MAX: u64 = 32;

/// Protocol HTTP/1.x.
pub static PROTOCOL: Protocol = Protocol::new("http")
    .in_zeek("http")
    .in_eve("http")
    .over_streams(&probe::PORTS, Some(probe::probe))
    .resumed_anywhere_by(resync::resume)
    .streams_begin_with(OctetSet::range(b'A'..=b'Z').and(OctetSet::of(b"-_\r\n")))
    .with_kinds(&["http"])
    .leading_on()
    .with_limits(
        "head of 48 KiB and 128 fields, chunk lines of 4 KiB, 32 pending requests; a message beyond is \
         omitted",
    )
    .with_standards("RFC 9110, 9112, 1945");

/// Protocol WebSocket (RFC 6455), which follows an upgrade. It has no probe, because it never begins a connection.
pub static WEBSOCKET: Protocol = Protocol::new("websocket").in_eve("websocket");
