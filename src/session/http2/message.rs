//! What an HTTP/2 parser says.

use super::fields::Fields;
use crate::session::Text;
pub use crate::session::http1::{Body, BodyGap};

/// A part of the dialogue. Who sent it stands in [`About::from`](crate::session::About::from).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// The head of a request; sent by the server if it is one that it pushes.
    Request(Request<'m>),
    /// The head of a response, interim ones included.
    Response(Response<'m>),
    /// A piece of a body, without padding.
    Body(Body<'m>),
    /// A piece of a body that was not captured.
    Gap(BodyGap),
    /// A request or final response is over.
    End(End<'m>),
    /// A stream was broken off, in both directions.
    Reset(Reset),
    /// Settings of who sends them.
    Settings(Settings),
    /// No new streams are taken.
    GoAway(GoAway),
    /// A part of a direction cannot be read any more.
    Lost(Lost),
}

impl Message<'_> {
    /// Whether it is a piece of a body.
    #[must_use]
    pub const fn is_content(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Gap(_))
    }
}

/// What is odd about a header block. Of several, the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Anomaly {
    /// It unfolds to more than [`LIST_LEN_MAX`](super::LIST_LEN_MAX) octets or [`FIELD_COUNT_MAX`](super::FIELD_COUNT_MAX) fields, or
    /// all blocks of the connection do to more than they may ([`EXPANSION_FACTOR`](super::EXPANSION_FACTOR)). Those behind are left
    /// out, and the parser stops.
    ListTooLong,
    /// Texts are left out, since those of all messages are far longer than the octets that they came in
    /// ([`TEXT_FACTOR`](super::TEXT_FACTOR)). The fields are there.
    Truncated,
    /// A request without a method, or without a path where there must be one (RFC 9113 section 8.3.1).
    Malformed,
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Request<'m> {
    /// The number of its stream.
    pub transaction: u64,
    /// The method; empty if there is none.
    pub method: Text<'m>,
    /// The path with its query; empty for CONNECT.
    pub path: Text<'m>,
    /// The scheme.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub scheme: Option<Text<'m>>,
    /// `:authority`, without user information, or else the Host field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub host: Option<Text<'m>>,
    /// What is asked for in an extended CONNECT, as `websocket`.
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
    /// The service of a gRPC call, with its package.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_service: Option<Text<'m>>,
    /// The method of a gRPC call.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_method: Option<Text<'m>>,
    /// Whether the server promises the response without being asked.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub pushed: bool,
    /// What is odd.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// The kind of credentials that are in it: an authentication scheme, `userinfo`, or `cookie`.
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
    /// The number of its stream.
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
    /// What is odd.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// The kind of credentials that are in it: `set_cookie`, or `userinfo` in a Location.
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
    /// The number of its stream.
    pub transaction: u64,
    /// Octets of the body, those that are missing included.
    pub body_len: u64,
    /// Octets of these that were not captured.
    pub missing_len: u64,
    /// Whether the stream said so, and nothing is missing.
    pub complete: bool,
    /// The status of a gRPC call, 0 for one that went well; in its trailers, or in a head without a body.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub grpc_status: Option<u32>,
    /// What gRPC says about the status, percent-encoded.
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
    /// The number of its stream.
    pub transaction: u64,
    /// Why.
    pub error: ErrorCode,
}

/// SETTINGS that are no acknowledgment (RFC 9113 section 6.5.2). Absent: not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Settings {
    /// Octets of the dynamic table that the sender keeps for decoding.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub header_table_size: Option<u32>,
    /// Whether the server may push.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub enable_push: Option<u32>,
    /// Streams that the other side may have open.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_concurrent_streams: Option<u32>,
    /// Octets of flow control per stream.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub initial_window_size: Option<u32>,
    /// Octets of a frame's payload.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_frame_size: Option<u32>,
    /// Octets of decoded header lists.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub max_header_list_size: Option<u32>,
    /// Whether the extended CONNECT of RFC 8441 is understood.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub enable_connect_protocol: Option<u32>,
}

/// GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GoAway {
    /// The last stream that was or will be dealt with.
    pub last_transaction: u64,
    /// Why.
    pub error: ErrorCode,
}

/// What cannot be read any more of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Lost {
    /// Which part.
    pub part: LostPart,
}

/// A part of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LostPart {
    /// Header fields: a block is missing on which those that follow depend.
    Headers,
    /// Everything: it is not known where frames begin.
    Frames,
}

/// An error code (RFC 9113 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The registered name in lower case; none for a code without one.
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
