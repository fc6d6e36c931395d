//! HTTP/2 in the clear: header blocks as messages, bodies as pieces, and gRPC methods and statuses.
//!
//! | | |
//! |---|---|
//! | standards | RFC 9113 (frames, streams), RFC 7541 (HPACK), RFC 8441 (`:protocol`), gRPC over HTTP/2 |
//! | recognised by | the client's preface, or a server's first SETTINGS frame; a `101` of HTTP/1.1 hands over |
//! | parsed | HEADERS, CONTINUATION, PUSH_PROMISE, DATA, RST_STREAM, SETTINGS, GOAWAY; padding and priority are left out |
//! | not parsed | PING, PRIORITY, WINDOW_UPDATE, frames of extensions; content codings and gRPC's messages within bodies |
//! | TLS | what is encrypted is not seen |
//!
//! The number of a transaction is that of its stream, so that request and response pair however much of the capture is
//! missing. After an upgrade from HTTP/1.1, stream 1 answers the request that asked for it.
//!
//! A request or response is followed by the [pieces](Message::Body) of its body and by [`Message::End`], which has what
//! trailers say. A stream that is reset has [`Message::Reset`] instead, for both directions.
//!
//! Header blocks depend on all of those before them: where one is missing, or the beginning of the connection is,
//! [`Message::Lost`] says so, and no header of that direction is decoded any more; bodies are still told. Where it is not
//! known any more where frames begin, the direction is over.
//!
//! Limits, beyond which the parser faults: a header block of [`BLOCK_LEN_MAX`] octets in [`CONTINUATION_COUNT_MAX`] frames; a
//! dynamic table of the largest size that the other side's SETTINGS announced, 4096 octets without (RFC 9113 section 6.5.2), or of
//! [`TABLE_LEN_MAX`] where its first SETTINGS were not captured; [`FIELD_COUNT_MAX`] fields of [`LIST_LEN_MAX`] octets together, of
//! which those before are reported with [`Anomaly::ListTooLong`]; and all lists of a connection together, which may have
//! [`EXPANSION_CREDIT`] octets and [`EXPANSION_FACTOR`] for each octet of the frames that they came in.
//!
//! Texts of messages have a bound of their own, since they are written: [`TEXT_CREDIT`] octets and [`TEXT_FACTOR`] for each octet
//! of the frames. Messages beyond it are [`Anomaly::Truncated`]. Of [`STREAM_COUNT_MAX`] streams at a time the one with the lowest
//! number is dropped for another one. What is allocated is kept for the next block.

mod fields;
mod frame;
mod hpack;
mod known;
mod message;
mod parser;
mod probe;
mod settings;
mod streams;

pub use fields::{Field, Fields};
pub use message::{
    Anomaly, Body, BodyGap, End, ErrorCode, GoAway, Lost, LostPart, Message, Request, Reset, Response,
    Settings,
};
pub use parser::Http2Parser;

use super::Protocol;

/// Octets of a header block, as sent.
pub const BLOCK_LEN_MAX: usize = 48 << 10;

/// CONTINUATION frames of a header block.
pub const CONTINUATION_COUNT_MAX: u8 = 32;

/// Octets of a dynamic table, counted as RFC 7541 section 4.1 says.
pub const TABLE_LEN_MAX: usize = hpack::TABLE_LEN_MAX;

/// Fields of a header block. Browsers send a cookie as many of them.
pub const FIELD_COUNT_MAX: usize = 1024;

/// Octets of names and values of a header block.
pub const LIST_LEN_MAX: usize = 64 << 10;

/// Octets that the names and values of all header blocks of a connection may have, besides [`EXPANSION_FACTOR`] for each octet
/// of the frames.
pub const EXPANSION_CREDIT: u64 = 256 << 10;

/// Octets of names and values for each octet of the frames that header blocks come in.
///
/// A request whose fields are all in the table has some ten octets behind the nine of its frame, and a table of 4096 octets, of which
/// a cookie or a token may take nearly all: a factor of 215 at most.
pub const EXPANSION_FACTOR: u64 = 256;

/// Octets of text that the messages of a connection may have, besides [`TEXT_FACTOR`] for each octet of the frames.
pub const TEXT_CREDIT: u64 = 256 << 10;

/// Octets of text for each octet of the frames that header blocks come in. Cookies and tokens are no text.
pub const TEXT_FACTOR: u64 = 32;

/// Streams that are followed at a time.
pub const STREAM_COUNT_MAX: usize = 256;

/// HTTP/2 in the clear. It has no port of its own.
pub static PROTOCOL: Protocol = Protocol::new("http2").over_streams(&[], Some(probe::probe));
