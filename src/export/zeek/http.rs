//! Rows of `http.log`.

use crate::export::Uid;
use crate::row::{List, ListOf, Name};
use crate::session::Role;
use crate::transaction::{self, BodyKind};

/// A request of HTTP with its response in `http.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Http<'a> {
    http: &'a transaction::Http,
    uid: Uid,
}

impl<'a> Http<'a> {
    pub(super) const fn new(http: &'a transaction::Http, uid: Uid) -> Self {
        Self { http, uid }
    }

    /// Returns the number of the transaction from one, or the identifier of the stream of HTTP/2.
    fn depth(&self) -> u64 {
        if &*self.http.version == "2" { self.http.number } else { self.http.number.saturating_add(1) }
    }

    fn body(&self, role: Role) -> Option<&'a BodyKind> {
        role.of(&self.http.bodies).as_ref()
    }

    fn proxied(&self) -> Option<List<impl Iterator<Item = &'a str> + Clone>> {
        let all = &self.http.proxied;
        (!all.is_empty()).then(|| List(all.iter().map(|field| &**field)))
    }

    fn body_len(&self, role: Role, len: Option<u64>) -> u64 {
        self.body(role).and_then(|body| body.decoded_len).or(len).unwrap_or(0)
    }

    fn fuids(&self, role: Role) -> Option<List<[Uid; 1]>> {
        self.body(role).map(|_| List([fuid(self.uid, self.http.number, role)]))
    }

    fn names(&self, role: Role) -> Option<List<[&'a str; 1]>> {
        let body = self.body(role)?;
        body.name.as_deref().map(|name| List([name]))
    }

    fn types(&self, role: Role) -> Option<List<[&'a str; 1]>> {
        let body = self.body(role)?;
        body.detected_type.map(|kind| List([mime_type(kind)]))
    }
}

/// Returns the identifier of a body.
pub(super) fn fuid(uid: Uid, number: u64, role: Role) -> Uid {
    uid.of_file("HTTP", number << 1 | role.index() as u64)
}

/// Returns Zeek's name of a type.
pub(super) fn mime_type(detected: &str) -> &str {
    match detected {
        "application/gzip" => "application/x-gzip",
        "application/vnd.microsoft.portable-executable" => "application/x-dosexec",
        "application/json" => "text/json",
        "text/xml" => "application/xml",
        "image/bmp" => "image/x-ms-bmp",
        other => other,
    }
}

/// Returns a URI without percent-encoding; unchanged if that would give invalid UTF-8.
fn unescaped(uri: &str) -> String {
    let mut parts = uri.split('%');
    let mut octets: Vec<u8> = parts.next().unwrap_or_default().into();
    for part in parts {
        let split = part
            .split_at_checked(2)
            .filter(|(digits, _)| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let decoded = split.and_then(|(digits, rest)| Some((u8::from_str_radix(digits, 16).ok()?, rest)));
        match decoded {
            Some((octet, rest)) => {
                octets.push(octet);
                octets.extend_from_slice(rest.as_bytes());
            }
            None => {
                octets.push(b'%');
                octets.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8(octets).unwrap_or_else(|_| uri.to_owned())
}

crate::table! {
    /// Requests of HTTP with their responses.
    impl['a] "zeek.http" for Http<'a> as row {
        /// Number of the request in the connection, from 1; for HTTP/2 the identifier of the stream.
        "trans_depth": u64 = row.depth();
        /// `method`.
        "method": Option<&'a str> => row.http.method.as_deref();
        /// `host`, without user information.
        "host": Option<&'a str> => row.http.host.as_deref();
        /// `target` without percent-encoding; unchanged if that is not UTF-8.
        "uri": Option<String> = row.http.target.as_deref().map(unescaped);
        /// `referer`, without user information.
        "referrer": Option<&'a str> => row.http.referer.as_deref();
        /// Version of the response; unset without one.
        "version": Option<&'a str> => row.http.response_version.as_deref();
        /// `user_agent`.
        "user_agent": Option<&'a str> => row.http.user_agent.as_deref();
        /// `origin`.
        "origin": Option<&'a str> => row.http.origin.as_deref();
        /// `request_body_len`, or that of the decoded body if bodies are decoded; 0 if unknown.
        "request_body_len": u64 = row.body_len(Role::Client, row.http.request_body_len);
        /// `response_body_len`, or that of the decoded body if bodies are decoded; 0 if unknown.
        "response_body_len": u64 = row.body_len(Role::Server, row.http.response_body_len);
        /// `status`, or else the last of the interim responses.
        "status_code": Option<u64> = row.http.status.or(row.http.interim_statuses.last().copied()).map(u64::from);
        /// `reason`; `<empty>` if it is empty.
        "status_msg": Option<&'a str> => row.http.reason.as_deref().map(|reason| if reason.is_empty() { "<empty>" } else { reason });
        /// The last of `interim_statuses`.
        "info_code": Option<u64> = row.http.interim_statuses.last().copied().map(u64::from);
        /// Reason phrase of the last interim response.
        "info_msg": Option<&'a str> => row.http.interim_reason.as_deref();
        /// Always empty: flowgauge has no detection rules.
        "tags": ListOf<Name> [set] => List([Name(""); 0]);
        /// Always unset: credentials are never written.
        "username": Option<&'a str> = None;
        /// Always unset: credentials are never written.
        "password": Option<&'a str> = None;
        /// Fields of the request that a proxy adds, such as `VIA -> 1.1 proxy`.
        "proxied": Option<ListOf<&'a str>> [set] => row.proxied();
        /// Identifier of the body of the request, unless it is empty.
        "orig_fuids": Option<ListOf<Uid>> => row.fuids(Role::Client);
        /// Name of the body of the request.
        "orig_filenames": Option<ListOf<&'a str>> => row.names(Role::Client);
        /// Type of the body of the request by its first octets.
        "orig_mime_types": Option<ListOf<&'a str>> => row.types(Role::Client);
        /// Identifier of the body of the response, unless it is empty.
        "resp_fuids": Option<ListOf<Uid>> => row.fuids(Role::Server);
        /// Name of the body of the response.
        "resp_filenames": Option<ListOf<&'a str>> => row.names(Role::Server);
        /// Type of the body of the response by its first octets.
        "resp_mime_types": Option<ListOf<&'a str>> => row.types(Role::Server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_decoded_if_the_result_is_text() {
        for (uri, decoded) in [
            ("/a%20b%2F", "/a b/"),
            ("/%e2%82%ac", "/€"),
            ("/%ff", "/%ff"),
            ("/100%", "/100%"),
            ("/%+1%zz", "/%+1%zz"),
            ("%41%4", "A%4"),
        ] {
            assert_eq!(unescaped(uri), decoded);
        }
    }
}
