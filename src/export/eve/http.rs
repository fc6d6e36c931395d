//! Events of type `http`.

use std::borrow::Cow;

use crate::row::{Displayed, Group};
use crate::transaction;

/// A request of HTTP with its response in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Http<'a> {
    exchange: Exchange<'a>,
}

/// The object `http`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange<'a> {
    http: &'a transaction::Http,
    host: Option<(&'a str, Option<u16>)>,
}

/// The object `content_range`.
#[derive(Clone, Copy, Debug)]
struct ContentRange {
    start: Option<u64>,
    end: Option<u64>,
    size: Option<u64>,
}

/// The object `http2`.
#[derive(Clone, Copy, Debug)]
struct Stream {
    stream_id: u64,
}

impl<'a> Http<'a> {
    pub(super) fn new(http: &'a transaction::Http) -> Self {
        Self { exchange: Exchange::new(http) }
    }
}

impl<'a> Exchange<'a> {
    pub(super) fn new(http: &'a transaction::Http) -> Self {
        Self { http, host: http.host.as_deref().map(split_port) }
    }

    fn is_version_2(&self) -> bool {
        &*self.http.version == "2"
    }

    fn hostname(&self) -> Option<Displayed<Cow<'a, str>>> {
        let (host, _) = self.host?;
        let is_lower = !host.bytes().any(|octet| octet.is_ascii_uppercase());
        Some(Displayed(if is_lower { host.into() } else { host.to_ascii_lowercase().into() }))
    }

    fn content_range(&self) -> Option<Group<ContentRange>> {
        let (start, size) = (self.http.range_start, self.http.complete_len);
        let end =
            start.zip(self.http.range_len).and_then(|(start, len)| start.checked_add(len)?.checked_sub(1));
        (start.is_some() || size.is_some()).then_some(Group(ContentRange { start, end, size }))
    }

    fn protocol(&self) -> Option<Displayed<String>> {
        (!self.is_version_2()).then(|| Displayed(format!("HTTP/{}", self.http.version)))
    }
}

/// Splits a host and its port.
fn split_port(host: &str) -> (&str, Option<u16>) {
    let split = host.rsplit_once(':').filter(|(name, _)| name.ends_with(']') || !name.contains(':'));
    match split.map(|(name, port)| (name, port.parse())) {
        Some((name, Ok(port))) => (name, Some(port)),
        _ => (host, None),
    }
}

/// Returns the type in a Content-Type field, without parameters.
fn media_type(field: &str) -> &str {
    field.split(';').next().unwrap_or_default().trim_ascii()
}

crate::table! {
    /// Requests of HTTP with their responses.
    impl['a] "eve.http" for Http<'a> as row {
        /// Request and response.
        "http": Group<Exchange<'a>> = Group(row.exchange);
    }
}

crate::table! {
    /// A request and its response.
    impl['a] "eve.http.http" for Exchange<'a> as row {
        /// `host` in lower case, without user information and port.
        "hostname": Option<Displayed<Cow<'a, str>>> = row.hostname();
        /// Port in `host`.
        "http_port": Option<u16> = row.host.and_then(|(_, port)| port);
        /// `target`.
        "url": Option<&'a str> => row.http.target.as_deref();
        /// `user_agent`.
        "http_user_agent": Option<&'a str> => row.http.user_agent.as_deref();
        /// `content_type` up to the semicolon.
        "http_content_type": Option<&'a str> => row.http.content_type.as_deref().map(media_type);
        /// `referer`, without user information.
        "http_refer": Option<&'a str> => row.http.referer.as_deref();
        /// `method`.
        "http_method": Option<&'a str> => row.http.method.as_deref();
        /// `HTTP/` and `version`; not for HTTP/2.
        "protocol": Option<Displayed<String>> = row.protocol();
        /// `status`.
        "status": Option<u16> = row.http.status;
        /// `location`, without user information.
        "redirect": Option<&'a str> => row.http.location.as_deref();
        /// `response_body_len`: as sent, a content coding is not decoded.
        "length": Option<u64> = row.http.response_body_len;
        /// The Content-Range field of the response.
        "content_range": Option<Group<ContentRange>> = row.content_range();
        /// `2` for HTTP/2.
        "version": Option<&'static str> = row.is_version_2().then_some("2");
        /// The stream of HTTP/2.
        "http2": Option<Group<Stream>> = row.is_version_2().then_some(Group(Stream { stream_id: row.http.number }));
    }
}

crate::table! {
    /// The part of the complete representation that a body contains.
    impl "eve.http.http.content_range" for ContentRange as row {
        /// `range_start`.
        "start": Option<u64> = row.start;
        /// Position of the last octet.
        "end": Option<u64> = row.end;
        /// `complete_len`.
        "size": Option<u64> = row.size;
    }
}

crate::table! {
    /// A stream of HTTP/2.
    impl "eve.http.http.http2" for Stream as row {
        /// Identifier of the stream.
        "stream_id": u64 = row.stream_id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_split_from_hosts() {
        for (host, expected) in [
            ("example.com", ("example.com", None)),
            ("example.com:8080", ("example.com", Some(8080))),
            ("[2001:db8::1]:80", ("[2001:db8::1]", Some(80))),
            ("2001:db8::1", ("2001:db8::1", None)),
            ("example.com:", ("example.com:", None)),
        ] {
            assert_eq!(split_port(host), expected);
        }
    }
}
