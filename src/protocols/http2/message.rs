//! Messages of the HTTP/2 parser.

use super::fields::Fields;
pub use crate::protocols::http1::{Body, BodyGap};
use crate::session::Text;

/// A message of an HTTP/2 connection. [`MessageMeta::from`](crate::session::MessageMeta::from) is its sender.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// The head of a request; sent by the server if it is a promised one.
    Request(Request<'m>),
    /// The head of a response, including interim ones.
    Response(Response<'m>),
    /// A piece of a body, without padding.
    Body(Body<'m>),
    /// A piece of a body that was not captured.
    Gap(BodyGap),
    /// The end of a request or final response.
    End(End<'m>),
    /// A stream was reset, in both directions.
    Reset(Reset),
    /// Settings of the sender.
    Settings(Settings),
    /// The sender accepts no new streams.
    GoAway(GoAway),
    /// Part of a direction cannot be decoded any more.
    Undecodable(Undecodable),
}

impl Message<'_> {
    /// Returns whether the message is a piece of a body.
    #[must_use]
    pub const fn is_content(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Gap(_))
    }
}

/// Anomaly of a header block. If there are several, the first one in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Anomaly {
    /// The block decodes to more than [`LIST_LEN_MAX`](super::LIST_LEN_MAX) octets or
    /// [`FIELD_COUNT_MAX`](super::FIELD_COUNT_MAX) fields, or all blocks of the connection together exceed their limit
    /// ([`EXPANSION_FACTOR`](super::EXPANSION_FACTOR)). Further fields are omitted, and the parser stops.
    ListTooLong,
    /// Texts are omitted, because those of all messages are far longer than the received octets
    /// ([`TEXT_FACTOR`](super::TEXT_FACTOR)). The fields are complete.
    Truncated,
    /// A request without a method, or without a path where one is required (RFC 9113 section 8.3.1).
    Malformed,
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Request<'m> {
    /// Number of its stream.
    pub transaction: u64,
    /// The method; empty if it is missing.
    pub method: Text<'m>,
    /// The path with its query; empty for CONNECT.
    pub path: Text<'m>,
    /// The scheme.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub scheme: Option<Text<'m>>,
    /// `:authority`, without user information, or else the Host field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub host: Option<Text<'m>>,
    /// The protocol of an extended CONNECT, such as `websocket`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub connect_protocol: Option<Text<'m>>,
    /// User-Agent.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub user_agent: Option<Text<'m>>,
    /// Referer, without user information.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub referer: Option<Text<'m>>,
    /// Content-Type.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_type: Option<Text<'m>>,
    /// Content-Encoding: pieces of the body are as sent, not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_encoding: Option<Text<'m>>,
    /// Content-Length.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_length: Option<u64>,
    /// The service of a gRPC call, including its package.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_service: Option<Text<'m>>,
    /// The method of a gRPC call.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_method: Option<Text<'m>>,
    /// True if the server promises the response without a request.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub pushed: bool,
    /// Anomaly of the header block.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// Kind of credentials in the head: an authentication scheme, `userinfo`, or `cookie`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// All fields.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub fields: Fields<'m>,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Response<'m> {
    /// Number of its stream.
    pub transaction: u64,
    /// The status code. Below 200, another response to the same request follows.
    pub status: u16,
    /// Server.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub server: Option<Text<'m>>,
    /// Location, without user information.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub location: Option<Text<'m>>,
    /// Content-Type.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_type: Option<Text<'m>>,
    /// Content-Encoding: pieces of the body are as sent, not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_encoding: Option<Text<'m>>,
    /// Content-Length.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_length: Option<u64>,
    /// Anomaly of the header block.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// Kind of credentials in the head: `set_cookie`, or `userinfo` in a Location.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// All fields.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub fields: Fields<'m>,
}

/// The end of a request, or of a final response.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct End<'m> {
    /// Number of its stream.
    pub transaction: u64,
    /// Number of octets of the body, missing ones included.
    pub body_len: u64,
    /// Number of octets of the body that were not captured.
    pub missing_len: u64,
    /// True if the stream was ended by its sender, and no octets are missing.
    pub complete: bool,
    /// The status of a gRPC call, 0 for success; in its trailers, or in a head without a body.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_status: Option<u32>,
    /// The description of the gRPC status, percent-encoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_message: Option<Text<'m>>,
    /// Fields after the body.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trailers: Fields<'m>,
}

/// RST_STREAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Reset {
    /// Number of its stream.
    pub transaction: u64,
    /// Error code.
    pub error: ErrorCode,
}

/// SETTINGS that are not an acknowledgment (RFC 9113 section 6.5.2). `None` for a setting that was not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Settings {
    /// Size in octets of the dynamic table that the sender keeps for decoding.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub header_table_size: Option<u32>,
    /// Nonzero if the server may push.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub enable_push: Option<u32>,
    /// Number of streams that the other side may have open.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_concurrent_streams: Option<u32>,
    /// Initial flow-control window of a stream in octets.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub initial_window_size: Option<u32>,
    /// Maximum length of a frame's payload in octets.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_frame_size: Option<u32>,
    /// Maximum size of decoded header lists in octets.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_header_list_size: Option<u32>,
    /// Nonzero if the extended CONNECT of RFC 8441 is supported.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub enable_connect_protocol: Option<u32>,
}

/// GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GoAway {
    /// The last stream that was or will be processed.
    pub last_transaction: u64,
    /// Error code.
    pub error: ErrorCode,
}

/// Part of a direction that cannot be decoded any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Undecodable {
    /// The part.
    pub part: UndecodablePart,
}

/// A part of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum UndecodablePart {
    /// Header fields: a block is missing on which later ones depend.
    Headers,
    /// Everything: the boundaries of frames are unknown.
    Frames,
}

/// An error code (RFC 9113 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Returns the registered name in lower case; `None` for a code without one.
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

#[cfg(feature = "serde")]
impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.collect_str(self),
        }
    }
}
