//! Plaintext HTTP/2: header blocks as messages, bodies as pieces, and gRPC methods and statuses.
//!
//! | | |
//! |---|---|
//! | standards | RFC 9113 (frames, streams), RFC 7541 (HPACK), RFC 8441 (`:protocol`), gRPC over HTTP/2 |
//! | recognized by | the client's preface, or a server's first SETTINGS frame; a handover by a `101` of HTTP/1.1 |
//! | parsed | HEADERS, CONTINUATION, PUSH_PROMISE, DATA, RST_STREAM, SETTINGS, GOAWAY; padding and priority are omitted |
//! | not parsed | PING, PRIORITY, WINDOW_UPDATE, extension frames; content codings and gRPC messages within bodies |
//! | TLS | encrypted connections are not decoded |
//!
//! The `transaction` of a message is the identifier of its stream, so that request and response can be matched even if
//! much of the capture is missing. After an upgrade from HTTP/1.1, stream 1 contains the response to the request with
//! the upgrade.
//!
//! A request or response is followed by the [pieces](Message::Body) of its body and by [`Message::End`], which contains
//! the trailers. A stream that is reset has [`Message::Reset`] instead, for both directions.
//!
//! A header block depends on all previous ones of its direction. If a block or the beginning of the connection is
//! missing, [`Message::Undecodable`] is reported, and no further header of that direction is decoded; bodies are still
//! reported. If the boundaries of frames become unknown, the rest of the direction is ignored.
//!
//! Limits, beyond which the parser faults: a header block of [`BLOCK_LEN_MAX`] octets in [`CONTINUATION_COUNT_MAX`]
//! frames; a dynamic table of the largest size that the other side's SETTINGS announced, 4096 octets without them (RFC
//! 9113 section 6.5.2), or of [`TABLE_LEN_MAX`] if its first SETTINGS were not captured; [`FIELD_COUNT_MAX`] fields of
//! [`LIST_LEN_MAX`] octets together, where the fields within the limit are reported with [`Anomaly::ListTooLong`]; and
//! all lists of a connection together, which may have [`EXPANSION_CREDIT`] octets and [`EXPANSION_FACTOR`] for each
//! octet of their frames.
//!
//! Texts of messages have a separate limit because they are written to output: [`TEXT_CREDIT`] octets and
//! [`TEXT_FACTOR`] for each octet of the frames. Messages beyond it are [`Anomaly::Truncated`]. At most
//! [`STREAM_COUNT_MAX`] streams are tracked at a time; beyond that, the one with the lowest number is evicted.
//! Allocated memory is kept for the next block.
//!
//! A program can log requests and gRPC calls with these messages. The parser can be used alone:
//!
//! ```
//! use flowgauge::protocols::http2::{Http2Parser, Message};
//! use flowgauge::{Input, Parser, Role, Timestamp};
//!
//! // The preface, SETTINGS without parameters, and HEADERS of stream 1: GET, http, "/".
//! let bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x05\0\0\0\x01\x82\x86\x84";
//! let mut requests = Vec::new();
//! Http2Parser::default().bytes(&Input::new(bytes, 0, Role::Client, Timestamp::ZERO), &mut |message| {
//!     if let Message::Request(request) = message {
//!         requests.push(format!("{} {} {}", request.transaction, request.method, request.target));
//!     }
//! })?;
//! assert_eq!(requests, ["1 GET /"]);
//! # Ok::<(), flowgauge::Fault>(())
//! ```

mod fields;
mod frame;
mod hpack;
mod known;
mod message;
mod parser;
mod probe;
mod settings;
mod streams;

pub use fields::{FIELD_COUNT_MAX, Field, Fields};
pub use message::{
    Anomaly, Body, BodyGap, End, ErrorCode, GoAway, Message, Request, Reset, Response, Settings, Undecodable,
    UndecodablePart,
};
pub use parser::Http2Parser;

use crate::session::{OctetSet, Protocol};

/// Maximum length in octets of an encoded header block, as sent.
pub const BLOCK_LEN_MAX: usize = 48 << 10;

/// Maximum number of CONTINUATION frames of one header block.
pub const CONTINUATION_COUNT_MAX: u8 = 32;

/// Maximum size in octets of an HPACK dynamic table, as defined in RFC 7541 section 4.1.
pub const TABLE_LEN_MAX: usize = hpack::TABLE_LEN_MAX;

/// Maximum number of octets of the decoded names and values of one header block.
pub const LIST_LEN_MAX: usize = 64 << 10;

/// Total number of octets to which all header blocks of a connection may decode, in addition to [`EXPANSION_FACTOR`]
/// for each octet of their frames.
pub const EXPANSION_CREDIT: u64 = 256 << 10;

/// Number of octets of decoded names and values that are allowed for each octet of the frames of header blocks.
///
/// A request whose fields are all in the dynamic table has about ten octets after the nine of its frame header, and a
/// table has 4096 octets, of which a cookie or a token may need nearly all: a factor of 215 at most.
pub const EXPANSION_FACTOR: u64 = 256;

/// Total number of octets of text that the messages of a connection may have, in addition to [`TEXT_FACTOR`] for each
/// octet of the frames of header blocks.
pub const TEXT_CREDIT: u64 = 256 << 10;

/// Number of octets of message text that are allowed for each octet of the frames of header blocks. Cookies and tokens
/// do not count as text.
pub const TEXT_FACTOR: u64 = 32;

/// Maximum number of HTTP/2 streams of a connection that are tracked at a time.
pub const STREAM_COUNT_MAX: usize = 256;

/// The plaintext HTTP/2 protocol, recognized by content only; it has no port of its own.
pub static PROTOCOL: Protocol = Protocol::new("http2")
    .in_eve("http2")
    .over_streams(&[], Some(probe::probe))
    .streams_begin_with(OctetSet::of(b"\0P"))
    .with_kinds(&["http2", "http"])
    .with_limits(
        "header blocks of 48 KiB in 32 frames; 1024 fields of 64 KiB together; for each octet of all \
         header blocks 256 octets of fields and 32 of text, plus 256 KiB of each; a dynamic table as \
         SETTINGS permit; 256 streams",
    )
    .with_standards("RFC 9113, 7541, 8441, gRPC over HTTP/2");
