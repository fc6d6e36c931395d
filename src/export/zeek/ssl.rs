//! Rows of `ssl.log`.

use crate::protocols::tls::Version;
use crate::row::{Displayed, List, ListOf};
use crate::transaction::Tls;

/// A connection of TLS, DTLS or QUIC in `ssl.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Ssl<'a> {
    tls: &'a Tls,
}

impl<'a> Ssl<'a> {
    pub(super) const fn new(tls: &'a Tls) -> Self {
        Self { tls }
    }

    /// Returns whether the requested name is one of those of the server's certificate; `None` without a name or certificate.
    fn is_name_certified(&self) -> Option<bool> {
        let name = self.tls.server_name.as_deref()?;
        let certified = self.tls.certified_names.as_ref()?;
        Some(certified.iter().any(|pattern| is_match(pattern, name)))
    }
}

/// Returns whether a name of a certificate, which may begin with the label `*`, is that of a server (RFC 6125 section 6.4).
fn is_match(pattern: &str, name: &str) -> bool {
    if pattern.eq_ignore_ascii_case(name) {
        return true;
    }
    let parent = name.split_once('.').map(|(_, parent)| parent);
    pattern.strip_prefix("*.").is_some_and(|rest| parent.is_some_and(|name| name.eq_ignore_ascii_case(rest)))
}

/// Returns Zeek's name of a version.
fn version_name(version: Version) -> String {
    match version.0 {
        0x0002 => "SSLv2".into(),
        0x0300 => "SSLv3".into(),
        0x0301 => "TLSv10".into(),
        0x0302 => "TLSv11".into(),
        0x0303 => "TLSv12".into(),
        0x0304 => "TLSv13".into(),
        0x0100 | 0xfeff => "DTLSv10".into(),
        0xfefd => "DTLSv12".into(),
        0xfefc => "DTLSv13".into(),
        number @ 0x7f00..=0x7fff => format!("TLSv13-draft{}", number & 0xff),
        number => format!("unknown-{number}"),
    }
}

/// Returns the fingerprints of a side. Both sides have a list, which may be empty, as soon as a certificate was seen.
fn fingerprints<'a>(
    all: &'a [Box<str>],
    others: &[Box<str>],
) -> Option<List<impl Iterator<Item = &'a str> + Clone>> {
    (!all.is_empty() || !others.is_empty()).then(|| List(all.iter().map(|name| &**name)))
}

crate::table! {
    /// Connections of TLS and DTLS, and those inside of QUIC.
    impl['a] "zeek.ssl" for Ssl<'a> as row {
        /// `version`, such as `TLSv12`.
        "version": Option<String> = row.tls.version.map(version_name);
        /// `cipher_suite`, the name in the registry of IANA.
        "cipher": Option<Displayed<crate::protocols::tls::CipherSuite>> = row.tls.cipher_suite.map(Displayed);
        /// `group`.
        "curve": Option<Displayed<crate::protocols::tls::NamedGroup>> = row.tls.group.map(Displayed);
        /// `server_name`.
        "server_name": Option<&'a str> => row.tls.server_name.as_deref();
        /// `is_resumed`; false if that is not known.
        "resumed": bool = row.tls.is_resumed == Some(true);
        /// The last alert in the clear of either side.
        "last_alert": Option<Displayed<crate::protocols::tls::AlertDescription>> = row.tls.last_alert.map(Displayed);
        /// `alpn`; encrypted since TLS 1.3.
        "next_protocol": Option<&'a str> => row.tls.alpn.as_deref();
        /// `is_established`; false if that is not known.
        "established": bool = row.tls.is_established == Some(true);
        /// Letters of the messages in the clear: C, S, J, V, T, X, K, I, L and others of Zeek, in lower case for the server.
        "ssl_history": &'a str = &*row.tls.history;
        /// `certificates`.
        "cert_chain_fps": Option<ListOf<&'a str>> => fingerprints(&row.tls.certificates, &row.tls.client_certificates);
        /// `client_certificates`; empty if only the server sent certificates.
        "client_cert_chain_fps": Option<ListOf<&'a str>> => fingerprints(&row.tls.client_certificates, &row.tls.certificates);
        /// True if `server_name` is one of the names of the server's certificate; unset without a name or a certificate.
        "sni_matches_cert": Option<bool> = row.is_name_certified();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_label() {
        for (pattern, name, expected) in [
            ("www.example.com", "WWW.example.com", true),
            ("*.example.com", "www.example.com", true),
            ("*.example.com", "a.b.example.com", false),
            ("*.example.com", "example.com", false),
            ("example.org", "example.com", false),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
