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
    /// The head of a response, final or interim.
    Response(Response<'m>),
    /// A piece of a body, without the framing of chunks.
    Body(Body<'m>),
    /// Octets of a body that were not captured.
    Gap(BodyGap),
    /// The end of a request, or of a final response.
    End(End<'m>),
}

impl Message<'_> {
    /// Returns whether the message is a piece of a body: the variant [`Body`](Self::Body).
    #[must_use]
    pub const fn is_content(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Gap(_))
    }
}

/// The HTTP version in the first line of a head. A minor version above 1 counts as 1.1 (RFC 9110 section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Version {
    /// HTTP/0.9, for a request line without a version (RFC 1945 section 4.1, Simple-Request).
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

/// Anomaly of an HTTP/1.x head. If a head has several, the first one in the order of these variants is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Anomaly {
    /// The head has both Content-Length and Transfer-Encoding, of which the latter applies (RFC 9112 section 6.3): a
    /// means of request smuggling.
    LengthAndCoding,
    /// Content-Length is not a number, or there are several that differ. The body of a response ends with the
    /// connection; the end of a request's body is unknown.
    BadLength,
    /// Transfer-Encoding of a request does not end with chunked: the end of the body is unknown (RFC 9112 section 6.3).
    BadCoding,
    /// The head has several Content-Length fields with the same value.
    RepeatedLength,
    /// The head has lines that RFC 9112 does not allow, of which the valid parts were parsed: spaces in the target or
    /// no target, a version in lower case, fields without a name, octets that are invalid in fields.
    Malformed,
    /// The end of the head was not captured: fields are missing, and the octets after the head are unknown.
    Truncated,
    /// The head has fields folded over several lines, which is obsolete (RFC 9112 section 5.2).
    Folded,
}

/// The head of an HTTP/1.x request.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Request<'m> {
    /// Number of the request in its flow, starting at 0.
    pub transaction: u64,
    /// The method of the request, such as `GET`.
    pub method: Text<'m>,
    /// The request target as sent, without user information.
    pub target: Text<'m>,
    /// The HTTP version of the request.
    pub version: Version,
    /// Value of the first Host field, without user information.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub host: Option<Text<'m>>,
    /// Value of the User-Agent field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub user_agent: Option<Text<'m>>,
    /// Value of the Referer field, without user information.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub referer: Option<Text<'m>>,
    /// Value of the Content-Type field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_type: Option<Text<'m>>,
    /// Value of the Content-Encoding field: pieces of the body are as sent, not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_encoding: Option<Text<'m>>,
    /// Value of the Content-Length field in octets.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_length: Option<u64>,
    /// Value of the Transfer-Encoding field. Pieces of the body are without chunking; other codings are not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transfer_encoding: Option<Text<'m>>,
    /// Value of the Upgrade field: protocols to which the client is willing to switch.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub upgrade: Option<Text<'m>>,
    /// Anomaly of the request's head.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// Kind of credentials in the request's head: an authentication scheme, `userinfo`, or `cookie`.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// All header fields of the request.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub headers: Headers<'m>,
}

/// The head of an HTTP/1.x response.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Response<'m> {
    /// Number of the request that the response answers.
    pub transaction: u64,
    /// The status code. If it is below 200 and not 101, another response to the same request follows.
    pub status: u16,
    /// The reason phrase in the status line; may be empty.
    pub reason: Text<'m>,
    /// The HTTP version of the response.
    pub version: Version,
    /// Value of the Server field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub server: Option<Text<'m>>,
    /// Value of the Location field, without user information.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub location: Option<Text<'m>>,
    /// Value of the Content-Type field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_type: Option<Text<'m>>,
    /// Value of the Content-Encoding field: pieces of the body are as sent, not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_encoding: Option<Text<'m>>,
    /// Value of the Content-Length field in octets, which may differ from the length of the body: a response to HEAD
    /// has no body.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub content_length: Option<u64>,
    /// Value of the Transfer-Encoding field. Pieces of the body are without chunking; other codings are not decoded.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transfer_encoding: Option<Text<'m>>,
    /// Value of the Upgrade field: the protocol that follows a response 101.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub upgrade: Option<Text<'m>>,
    /// Anomaly of the response's head.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub anomaly: Option<Anomaly>,
    /// Kind of credentials in the response's head: `set_cookie`, or `userinfo` in a Location field.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// All header fields of the response.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub headers: Headers<'m>,
}

/// A piece of an HTTP/1.x body. Its length depends on the captured segments.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Body<'m> {
    /// Number of the request to which the body, or the response with the body, belongs.
    pub transaction: u64,
    /// Number of octets of the body before this piece, including missing ones.
    pub offset: u64,
    /// The octets of this piece; serialized as their number, `len`.
    #[cfg_attr(feature = "serde", serde(rename = "len", serialize_with = "len"))]
    pub bytes: &'m [u8],
}

/// Octets of an HTTP/1.x body that were not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BodyGap {
    /// Number of the request to which the body, or the response with the body, belongs.
    pub transaction: u64,
    /// Number of octets of the body before the gap.
    pub offset: u64,
    /// Number of octets of the body that are missing in this gap.
    pub len: u64,
}

/// The end of an HTTP/1.x request or final response.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct End<'m> {
    /// Number of the request that ended, or that the ended response answers.
    pub transaction: u64,
    /// Length of the body in octets, including missing ones.
    pub body_len: u64,
    /// Number of octets of the body that were not captured.
    pub missing_len: u64,
    /// True if the message ended as its framing specifies, and no octets are missing.
    pub complete: bool,
    /// Trailer fields, which follow a chunked body.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub trailers: Headers<'m>,
}

#[cfg(feature = "serde")]
fn len<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.len() as u64)
}
