//! Messages of the HTTP/1.x parser.

use std::fmt;

use super::headers::Headers;
use crate::row::cells;
use crate::session::{Piece, Text};

crate::messages! {
    /// A message of an HTTP/1.x connection. [`MessageMeta::from`](crate::session::MessageMeta::from) is its sender.
    #[derive(Clone, Debug, PartialEq)]
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

/// The HTTP version in the first line of a head. A minor version above 1 counts as 1.1 (RFC 9110 section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/0.9, for a request line without a version (RFC 1945 section 4.1, Simple-Request).
    Http09,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Anomaly of an HTTP/1.x head. If a head has several, the first one in the order of these variants is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

crate::message! {
    /// The head of an HTTP/1.x request.
    #[derive(Clone, Debug, PartialEq)]
    "http.request" pub struct Request<'m> {
        /// Number of the request in its flow, starting at 0.
        pub transaction: u64,
        /// The method of the request, such as `GET`.
        pub method: Text<'m>,
        /// The request target as sent, without user information.
        pub target: Text<'m>,
        /// The HTTP version of the request.
        pub version: Version,
        /// Value of the first Host field, without user information.
        pub host: Option<Text<'m>>,
        /// Value of the User-Agent field.
        pub user_agent: Option<Text<'m>>,
        /// Value of the Referer field, without user information.
        pub referer: Option<Text<'m>>,
        /// Value of the Content-Type field.
        pub content_type: Option<Text<'m>>,
        /// Value of the Content-Encoding field: pieces of the body are as sent, not decoded.
        pub content_encoding: Option<Text<'m>>,
        /// Value of the Content-Length field in octets.
        pub content_length: Option<u64>,
        /// Value of the Transfer-Encoding field. Pieces of the body are without chunking; other codings are not decoded.
        pub transfer_encoding: Option<Text<'m>>,
        /// Value of the Upgrade field: protocols to which the client is willing to switch.
        pub upgrade: Option<Text<'m>>,
        /// Anomaly of the request's head.
        pub anomaly: Option<Anomaly>,
        /// Kind of credentials in the request's head: an authentication scheme, `userinfo`, or `cookie`.
        pub credentials: Option<&'static str> [sensitive],
        ..
        /// All header fields of the request.
        pub headers: Headers<'m>,
    }
}

crate::message! {
    /// The head of an HTTP/1.x response.
    #[derive(Clone, Debug, PartialEq)]
    "http.response" pub struct Response<'m> {
        /// Number of the request that the response answers.
        pub transaction: u64,
        /// The status code. If it is below 200 and not 101, another response to the same request follows.
        pub status: u16,
        /// The reason phrase in the status line; may be empty.
        pub reason: Text<'m>,
        /// The HTTP version of the response.
        pub version: Version,
        /// Value of the Server field.
        pub server: Option<Text<'m>>,
        /// Value of the Location field, without user information.
        pub location: Option<Text<'m>>,
        /// Value of the Content-Type field.
        pub content_type: Option<Text<'m>>,
        /// Value of the Content-Encoding field: pieces of the body are as sent, not decoded.
        pub content_encoding: Option<Text<'m>>,
        /// Value of the Content-Length field in octets, which may differ from the length of the body: a response to HEAD
        /// has no body.
        pub content_length: Option<u64>,
        /// Position of the body in the complete representation: the start of the range in the Content-Range field.
        pub range_start: Option<u64> [octets],
        /// Length of the complete representation in the Content-Range field.
        pub complete_len: Option<u64> [octets],
        /// Value of the Transfer-Encoding field. Pieces of the body are without chunking; other codings are not decoded.
        pub transfer_encoding: Option<Text<'m>>,
        /// Value of the Upgrade field: the protocol that follows a response 101.
        pub upgrade: Option<Text<'m>>,
        /// Anomaly of the response's head.
        pub anomaly: Option<Anomaly>,
        /// Kind of credentials in the response's head: `set_cookie`, or `userinfo` in a Location field.
        pub credentials: Option<&'static str> [sensitive],
        ..
        /// Length of the range in the Content-Range field, which is known if `range_start` is.
        pub range_len: Option<u64>,
        /// All header fields of the response.
        pub headers: Headers<'m>,
    }
}

/// A piece of a body of HTTP/1.x or HTTP/2. Its length depends on the captured segments.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Body<'m> {
    /// Number of the request to which the body, or the response with the body, belongs.
    pub transaction: u64,
    /// Number of octets of the body before this piece, including missing ones.
    pub offset: u64,
    /// The octets of this piece; written as their number, `len`.
    pub bytes: &'m [u8],
}

impl<'m> Body<'m> {
    /// Returns the octets as a piece of a file.
    #[inline]
    #[must_use]
    pub const fn piece(&self) -> Piece<'m> {
        Piece::octets(self.transaction, self.offset, self.bytes)
    }
}

impl BodyGap {
    /// Returns the gap as a piece of a file.
    #[inline]
    #[must_use]
    pub const fn piece(&self) -> Piece<'static> {
        Piece::gap(self.transaction, self.offset, self.len)
    }
}

crate::message! {
    /// Octets of an HTTP/1.x body that were not captured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "http.gap" pub struct BodyGap {
        /// Number of the request to which the body, or the response with the body, belongs.
        pub transaction: u64,
        /// Number of octets of the body before the gap.
        pub offset: u64,
        /// Number of octets of the body that are missing in this gap.
        pub len: u64 [octets],
    }
}

crate::message! {
    /// The end of an HTTP/1.x request or final response.
    #[derive(Clone, Debug, PartialEq)]
    "http.end" pub struct End<'m> {
        /// Number of the request that ended, or that the ended response answers.
        pub transaction: u64,
        /// Length of the body in octets, including missing ones. Zero after a head with the anomaly `truncated`, behind
        /// which the body is unknown.
        pub body_len: u64 [octets],
        /// Number of octets of the body that are known to be missing from the capture.
        pub missing_len: u64 [octets],
        /// True if the message ended as its framing specifies, and no octets are missing.
        pub complete: bool,
        ..
        /// Trailer fields, which follow a chunked body.
        pub trailers: Headers<'m>,
    }
}

crate::table! {
    /// A piece of a body of HTTP/1.x or HTTP/2. Its length depends on the captured segments.
    impl['m] "http.body" for Body<'m> as body {
        /// Number of the request to which the body, or the response with the body, belongs.
        "transaction": u64 = body.transaction;
        /// Number of octets of the body before this piece, including missing ones.
        "offset": u64 [octets] = body.offset;
        /// Number of octets of this piece.
        "len": usize [octets] = body.bytes.len();
    }
}

cells! {
    name Version { Http09 => "0.9", Http10 => "1.0", Http11 => "1.1" }
    name Anomaly {
        LengthAndCoding => "length_and_coding",
        BadLength => "bad_length",
        BadCoding => "bad_coding",
        RepeatedLength => "repeated_length",
        Malformed => "malformed",
        Truncated => "truncated",
        Folded => "folded",
    }
}
