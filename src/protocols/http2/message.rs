//! Messages of the HTTP/2 parser.

use super::fields::Fields;
pub use crate::protocols::http1::{Body, BodyGap};
use crate::row::cells;
use crate::session::{Piece, Text};

crate::messages! {
    /// A message of an HTTP/2 connection. [`MessageMeta::from`](crate::session::MessageMeta::from) is the role of its
    /// sender.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// The head of a request, sent by the client, or by the server if it promises a response without a request.
        Request(Request<'m>),
        /// The head of a final or interim response.
        Response(Response<'m>),
        /// A piece of a request's or response's body, without padding.
        Body(Body<'m>) = "http2.body",
        /// A piece of a request's or response's body that was not captured.
        Gap(BodyGap) = "http2.gap",
        /// The end of a request or of a final response.
        End(End<'m>),
        /// A stream was reset, which ends both of its directions.
        Reset(Reset),
        /// The settings of the sender, from a SETTINGS frame.
        Settings(Settings),
        /// A GOAWAY frame: the sender accepts no new streams.
        GoAway(GoAway),
        /// A part of the sender's direction cannot be decoded any more.
        Undecodable(Undecodable),
    }
}

impl<'m> Message<'m> {
    /// Returns the piece of a body that the message is; the end of a request or final response is that of its body.
    #[inline]
    #[must_use]
    pub const fn piece(&self) -> Option<Piece<'m>> {
        match self {
            Self::Body(body) => Some(body.piece()),
            Self::Gap(gap) => Some(gap.piece()),
            Self::End(end) => Some(Piece::end(end.transaction, end.body_len, end.complete)),
            _ => None,
        }
    }
}

/// Anomaly of a header block. If a block has several, the first one in the order of the variants is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Anomaly {
    /// The header block decodes to more than [`LIST_LEN_MAX`](super::LIST_LEN_MAX) octets or
    /// [`FIELD_COUNT_MAX`](super::FIELD_COUNT_MAX) fields, or all blocks of the connection together exceed their limit
    /// ([`EXPANSION_FACTOR`](super::EXPANSION_FACTOR)). Further fields are omitted, and the parser stops.
    ListTooLong,
    /// The texts of the message are omitted, because the texts of all messages are far longer than the received octets
    /// ([`TEXT_FACTOR`](super::TEXT_FACTOR)). Its `fields` are complete.
    Truncated,
    /// A request without a method, or without a path where one is required (RFC 9113 section 8.3.1).
    Malformed,
}

crate::message! {
    /// The head of a request.
    #[derive(Clone, Debug, PartialEq)]
    "http2.request" pub struct Request<'m> {
        /// Identifier of the HTTP/2 stream.
        pub transaction: u64,
        /// The request method; empty if it is missing.
        pub method: Text<'m>,
        /// The path of the request with its query; empty for CONNECT.
        pub target: Text<'m>,
        /// The URI scheme of the request (`:scheme`).
        pub scheme: Option<Text<'m>>,
        /// The `:authority` field without user information, or else the Host field.
        pub host: Option<Text<'m>>,
        /// The protocol of an extended CONNECT, such as `websocket`.
        pub connect_protocol: Option<Text<'m>>,
        /// Value of the User-Agent field.
        pub user_agent: Option<Text<'m>>,
        /// Value of the Referer field, without user information.
        pub referer: Option<Text<'m>>,
        /// Value of the Content-Type field.
        pub content_type: Option<Text<'m>>,
        /// Value of the Content-Encoding field. Pieces of the body are reported as sent, not decoded.
        pub content_encoding: Option<Text<'m>>,
        /// Value of the Content-Length field in octets.
        pub content_length: Option<u64>,
        /// The service of a gRPC call, including its package.
        pub grpc_service: Option<Text<'m>>,
        /// The method name of a gRPC call.
        pub grpc_method: Option<Text<'m>>,
        /// True if the server promises a response to this request, which the client did not send (PUSH_PROMISE).
        pub pushed: bool [sparse],
        /// Anomaly of the message's header block.
        pub anomaly: Option<Anomaly>,
        /// Kind of credentials in the head of the request: an authentication scheme, `userinfo`, or `cookie`.
        pub credentials: Option<&'static str> [sensitive],
        ..
        /// All header fields of the message.
        pub fields: Fields<'m>,
    }
}

crate::message! {
    /// The head of a response.
    #[derive(Clone, Debug, PartialEq)]
    "http2.response" pub struct Response<'m> {
        /// Identifier of the HTTP/2 stream.
        pub transaction: u64,
        /// The status code. If it is below 200, another response to the same request follows.
        pub status: u16,
        /// Value of the Server field.
        pub server: Option<Text<'m>>,
        /// Value of the Location field, without user information.
        pub location: Option<Text<'m>>,
        /// Value of the Content-Type field.
        pub content_type: Option<Text<'m>>,
        /// Value of the Content-Encoding field. Pieces of the body are reported as sent, not decoded.
        pub content_encoding: Option<Text<'m>>,
        /// Value of the Content-Length field in octets.
        pub content_length: Option<u64>,
        /// Position of the body in the complete representation: the start of the range in the Content-Range field.
        pub range_start: Option<u64> [octets],
        /// Length of the complete representation in the Content-Range field.
        pub complete_len: Option<u64> [octets],
        /// Anomaly of the message's header block.
        pub anomaly: Option<Anomaly>,
        /// Kind of credentials in the head of the response: `set_cookie`, or `userinfo` in a Location.
        pub credentials: Option<&'static str> [sensitive],
        ..
        /// Length of the range in the Content-Range field, which is known if `range_start` is.
        pub range_len: Option<u64>,
        /// All header fields of the message.
        pub fields: Fields<'m>,
    }
}

crate::message! {
    /// The end of a request, or of a final response.
    #[derive(Clone, Debug, PartialEq)]
    "http2.end" pub struct End<'m> {
        /// Identifier of the HTTP/2 stream.
        pub transaction: u64,
        /// Length of the body in octets, including octets that were not captured.
        pub body_len: u64 [octets],
        /// Number of octets of the body that were not captured.
        pub missing_len: u64 [octets],
        /// True if the sender ended its direction of the stream, and no octets of the body are missing.
        pub complete: bool,
        /// The status code of a gRPC call, 0 for success, from its trailers, or from a head without a body.
        pub grpc_status: Option<u32>,
        /// The description of the gRPC status, percent-encoded.
        pub grpc_message: Option<Text<'m>>,
        ..
        /// Trailers: header fields after the body.
        pub trailers: Fields<'m>,
    }
}

crate::message! {
    /// Content of a RST_STREAM frame, which ends both directions of a stream.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "http2.reset" pub struct Reset {
        /// Identifier of the HTTP/2 stream.
        pub transaction: u64,
        /// HTTP/2 error code: the reason that the sender of the frame states.
        pub error: ErrorCode,
    }
}

crate::message! {
    /// Content of a SETTINGS frame that is not an acknowledgment (RFC 9113 section 6.5.2). `None` for a setting that was
    /// not sent.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    "http2.settings" pub struct Settings {
        /// Maximum size in octets of the HPACK dynamic table that the sender uses for decoding.
        pub header_table_size: Option<u32>,
        /// Nonzero if the server may push responses (PUSH_PROMISE).
        pub enable_push: Option<u32>,
        /// Maximum number of concurrent streams that the other side may open.
        pub max_concurrent_streams: Option<u32>,
        /// Initial flow-control window in octets for each stream.
        pub initial_window_size: Option<u32>,
        /// Maximum length in octets of the frame payloads that the sender accepts.
        pub max_frame_size: Option<u32>,
        /// Maximum size in octets of the decoded header lists that the sender accepts.
        pub max_header_list_size: Option<u32>,
        /// Nonzero if the sender supports the extended CONNECT of RFC 8441.
        pub enable_connect_protocol: Option<u32>,
    }
}

crate::message! {
    /// Content of a GOAWAY frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "http2.go_away" pub struct GoAway {
        /// Identifier of the last stream that the sender of the frame has processed or will process.
        pub last_transaction: u64,
        /// HTTP/2 error code: the reason that the sender of the frame states.
        pub error: ErrorCode,
    }
}

crate::message! {
    /// A part of the sender's direction that cannot be decoded any more.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "http2.undecodable" pub struct Undecodable {
        /// The part that cannot be decoded.
        pub part: UndecodablePart,
    }
}

/// A part of a direction of an HTTP/2 connection that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UndecodablePart {
    /// The header fields: a header block is missing on which later ones depend.
    Headers,
    /// Everything: the boundaries of frames are unknown.
    Frames,
}

/// An HTTP/2 error code (RFC 9113 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

crate::checkpoint::state! { numbers ErrorCode }

impl ErrorCode {
    /// Returns the registered name of the error code in lower case; `None` for a code without one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "no_error",
            "protocol_error",
            "internal_error",
            "flow_control_error",
            "settings_timeout",
            "stream_closed",
            "frame_size_error",
            "refused_stream",
            "cancel",
            "compression_error",
            "connect_error",
            "enhance_your_calm",
            "inadequate_security",
            "http_1_1_required",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

cells! {
    name Anomaly { ListTooLong => "list_too_long", Truncated => "truncated", Malformed => "malformed" }
    name UndecodablePart { Headers => "headers", Frames => "frames" }
    registered ErrorCode;
}
