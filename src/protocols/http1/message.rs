//! Messages of the HTTP/1.x parser.

use std::fmt;

use super::headers::Headers;
use crate::session::Text;

/// A message of an HTTP/1.x connection. [`MessageMeta::from`](crate::session::MessageMeta::from) is its sender.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// The head of a request.
    Request(Request<'m>),
    /// The head of a response, including interim ones.
    Response(Response<'m>),
    /// A piece of a body, without the framing of chunks.
    Body(Body<'m>),
    /// A piece of a body that was not captured.
    Gap(BodyGap),
    /// The end of a request or final response.
    End(End<'m>),
}

impl Message<'_> {
    /// Returns whether the message is a piece of a body.
    #[must_use]
    pub const fn is_content(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Gap(_))
    }
}

/// The version in the first line. A minor version above 1 counts as 1.1 (RFC 9110 section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Version {
    /// HTTP/0.9: a request line without a version (RFC 1945 section 4.1, Simple-Request).
    #[cfg_attr(feature = "serde", serde(rename = "0.9"))]
    Http09,
    /// HTTP/1.0.
    #[cfg_attr(feature = "serde", serde(rename = "1.0"))]
    Http10,
    /// HTTP/1.1.
    #[cfg_attr(feature = "serde", serde(rename = "1.1"))]
    Http11,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http09 => "0.9",
            Self::Http10 => "1.0",
            Self::Http11 => "1.1",
        })
    }
}

/// Anomaly of a head. If there are several, the first one in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Anomaly {
    /// Content-Length and Transfer-Encoding, of which the latter applies (RFC 9112 section 6.3): a means of request
    /// smuggling.
    LengthAndCoding,
    /// Content-Length that is not a number, or several that differ. The body of a response ends with the connection;
    /// the end of a request's body is unknown.
    BadLength,
    /// Transfer-Encoding of a request that does not end with chunked: the end of the body is unknown (RFC 9112 section
    /// 6.3).
    BadCoding,
    /// Several Content-Length fields with the same value.
    RepeatedLength,
    /// Lines that RFC 9112 does not allow, of which the valid parts were parsed: spaces in the target or no target, a
    /// version in lower case, fields without a name, octets that are invalid in fields.
    Malformed,
    /// The end of the head was not captured: fields are missing, and the octets after it are unknown.
    Truncated,
    /// Fields folded over several lines, which is obsolete (RFC 9112 section 5.2).
    Folded,
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Request<'m> {
    /// Number of the request in the flow.
    pub transaction: u64,
    /// The method, such as `GET`.
    pub method: Text<'m>,
    /// The target as sent, without user information.
    pub target: Text<'m>,
    /// The version.
    pub version: Version,
    /// The first Host field, without user information.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub host: Option<Text<'m>>,
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
    /// Transfer-Encoding. Pieces of the body are without chunking; other codings are not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transfer_encoding: Option<Text<'m>>,
    /// Upgrade: protocols to which the client is willing to switch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub upgrade: Option<Text<'m>>,
    /// Anomaly of the head.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// Kind of credentials in the head: an authentication scheme, `userinfo`, or `cookie`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// All fields.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub headers: Headers<'m>,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Response<'m> {
    /// Number of the request that it answers.
    pub transaction: u64,
    /// The status code. Below 200, another response to the same request follows, except for 101.
    pub status: u16,
    /// The reason phrase; may be empty.
    pub reason: Text<'m>,
    /// The version.
    pub version: Version,
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
    /// Content-Length, which may differ from the length of the body: a response to HEAD has none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_length: Option<u64>,
    /// Transfer-Encoding. Pieces of the body are without chunking; other codings are not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transfer_encoding: Option<Text<'m>>,
    /// Upgrade: the protocol after a 101.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub upgrade: Option<Text<'m>>,
    /// Anomaly of the head.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// Kind of credentials in the head: `set_cookie`, or `userinfo` in a Location.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// All fields.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub headers: Headers<'m>,
}

/// A piece of a body. Its length depends on the captured segments.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Body<'m> {
    /// Number of the request.
    pub transaction: u64,
    /// Number of octets of the body before it, missing ones included.
    pub offset: u64,
    /// The octets; serialized as their number, `len`.
    #[cfg_attr(feature = "serde", serde(rename = "len", serialize_with = "len"))]
    pub bytes: &'m [u8],
}

/// Octets of a body that were not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BodyGap {
    /// Number of the request.
    pub transaction: u64,
    /// Number of octets of the body before the gap.
    pub offset: u64,
    /// Number of missing octets.
    pub len: u64,
}

/// The end of a request, or of a final response.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct End<'m> {
    /// Number of the request.
    pub transaction: u64,
    /// Number of octets of the body, missing ones included.
    pub body_len: u64,
    /// Number of octets of the body that were not captured.
    pub missing_len: u64,
    /// True if the message ended as its framing specifies, and no octets are missing.
    pub complete: bool,
    /// Fields after a chunked body.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trailers: Headers<'m>,
}

#[cfg(feature = "serde")]
fn len<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.len() as u64)
}
