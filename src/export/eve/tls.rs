//! Events of type `tls`.

use std::borrow::Cow;

use super::quic::Fingerprint;
use crate::protocols::tls::Version;
use crate::row::{Displayed, Group, List, ListOf, Name};
use crate::transaction::{self, X509};

/// A connection of TLS in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Tls<'a> {
    connection: Connection<'a>,
}

/// The object `tls`.
#[derive(Clone, Copy, Debug)]
struct Connection<'a> {
    tls: &'a transaction::Tls,
    server: Option<&'a X509>,
    client: Option<Certificate<'a>>,
    from_proto: Option<&'static str>,
}

/// The object `tls.client`.
#[derive(Clone, Copy, Debug)]
struct Certificate<'a>(&'a X509);

impl<'a> Tls<'a> {
    /// Returns the event of a connection with the certificates of its client and its server. `from_proto` is the protocol before
    /// STARTTLS.
    pub(super) const fn new(
        tls: &'a transaction::Tls,
        [client, server]: [Option<&'a X509>; 2],
        from_proto: Option<&'static str>,
    ) -> Self {
        let client = match client {
            Some(x509) => Some(Certificate(x509)),
            None => None,
        };
        Self { connection: Connection { tls, server, client, from_proto } }
    }
}

/// Returns EVE's name of a version.
fn version_name(version: Version) -> Cow<'static, str> {
    match version.0 {
        0x0002 => "SSLv2".into(),
        0x0300 => "SSLv3".into(),
        0x0301 => "TLSv1".into(),
        0x0302 => "TLS 1.1".into(),
        0x0303 => "TLS 1.2".into(),
        0x0304 => "TLS 1.3".into(),
        number => format!("{number:#06x}").into(),
    }
}

/// Returns a distinguished name (RFC 4514) in the order of the certificate, joined by `, `, without escapes.
fn in_order(name: &str) -> String {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    let mut octets = name.bytes();
    while let Some(octet) = octets.next() {
        match octet {
            b',' => parts.push(std::mem::take(&mut part)),
            b'\\' => {
                let digit = |octet: u8| char::from(octet).to_digit(16);
                let mut ahead = octets.clone();
                let pair = ahead.next().and_then(digit).zip(ahead.next().and_then(digit));
                match pair {
                    Some((high, low)) => {
                        part.push((high << 4 | low) as u8);
                        octets = ahead;
                    }
                    None => part.extend(octets.next()),
                }
            }
            octet => part.push(octet),
        }
    }
    parts.push(part);
    parts.reverse();
    String::from_utf8_lossy(&parts.join(&b", "[..])).into_owned()
}

/// Returns hexadecimal digits in pairs with colons.
fn pairs(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 2 == 0 {
            out.push(':');
        }
        out.push(digit);
    }
    out
}

/// Returns all names for which a certificate is valid.
fn alternative_names(x509: &X509) -> List<impl Iterator<Item = Displayed<Cow<'_, str>>> + Clone> {
    let texts = x509.dns_names.iter().chain(&x509.emails).chain(&x509.uris).map(|name| Cow::from(&**name));
    let addresses = x509.addresses.iter().map(|address| Cow::from(address.to_string()));
    List(texts.chain(addresses).map(Displayed))
}

/// Returns a time of a certificate without its zone.
fn time(time: Option<crate::protocols::tls::CertificateTime>) -> Option<String> {
    time.map(|time| time.to_string().trim_end_matches('Z').to_owned())
}

fn texts(all: &[Box<str>]) -> List<impl Iterator<Item = &str> + Clone> {
    List(all.iter().map(|text| &**text))
}

crate::table! {
    /// Connections of TLS and DTLS.
    impl['a] "eve.tls" for Tls<'a> as row {
        /// Hellos and certificates.
        "tls": Group<Connection<'a>> = Group(row.connection);
    }
}

crate::table! {
    /// Hellos and certificates of a connection.
    impl['a] "eve.tls.tls" for Connection<'a> as row {
        /// Subject of the server's certificate, in the order of the certificate.
        "subject": Option<String> = row.server.map(|x509| in_order(&x509.subject));
        /// Issuer of the certificate.
        "issuerdn": Option<String> = row.server.map(|x509| in_order(&x509.issuer));
        /// Names for which the certificate is valid: of servers, mail addresses, URIs, then IP addresses.
        "subjectaltname": Option<ListOf<Displayed<Cow<'a, str>>>> [sparse] => row.server.map(alternative_names);
        /// True if a session was resumed.
        "session_resumed": bool [sparse] = row.tls.is_resumed == Some(true);
        /// Serial number of the certificate: pairs of hexadecimal digits in upper case, with colons.
        "serial": Option<String> = row.server.map(|x509| pairs(&x509.serial.to_ascii_uppercase()));
        /// SHA-1 digest of the certificate: pairs of hexadecimal digits, with colons.
        "fingerprint": Option<String> = row.server.map(|x509| pairs(&x509.sha1));
        /// `server_name`.
        "sni": Option<&'a str> => row.tls.server_name.as_deref();
        /// `version`: `TLSv1`, `TLS 1.2` and so on; otherwise `0x` and the number.
        "version": Option<Displayed<Cow<'static, str>>> = row.tls.version.map(|version| Displayed(version_name(version)));
        /// Start of the validity of the certificate, in UTC without a zone.
        "notbefore": Option<String> = row.server.and_then(|x509| time(x509.not_before));
        /// End of the validity of the certificate.
        "notafter": Option<String> = row.server.and_then(|x509| time(x509.not_after));
        /// JA3 fingerprint of the client.
        "ja3": Option<Group<Fingerprint<'a>>> => row.tls.ja3.as_deref().map(|hash| Group(Fingerprint { hash }));
        /// JA3S fingerprint of the server.
        "ja3s": Option<Group<Fingerprint<'a>>> => row.tls.ja3s.as_deref().map(|hash| Group(Fingerprint { hash }));
        /// JA4 fingerprint of the client.
        "ja4": Option<&'a str> => row.tls.ja4.as_deref();
        /// `offered_alpn`, at most 16.
        "client_alpns": ListOf<&'a str> [sparse] => texts(&row.tls.offered_alpn);
        /// `alpn`; encrypted since TLS 1.3.
        "server_alpns": ListOf<&'a str> [sparse] => List(row.tls.alpn.as_deref().into_iter());
        /// The certificate of the client.
        "client": Option<Group<Certificate<'a>>> = row.client.map(Group);
        /// Protocol before STARTTLS or CONNECT, under Suricata's name.
        "from_proto": Option<Name> = row.from_proto.map(Name);
    }
}

crate::table! {
    /// The certificate of the client.
    impl['a] "eve.tls.tls.client" for Certificate<'a> as row {
        /// Subject, as above.
        "subject": String = in_order(&row.0.subject);
        /// Issuer.
        "issuerdn": String = in_order(&row.0.issuer);
        /// SHA-1 digest.
        "fingerprint": String = pairs(&row.0.sha1);
        /// Serial number.
        "serial": String = pairs(&row.0.serial.to_ascii_uppercase());
        /// Start of the validity.
        "notbefore": Option<String> = time(row.0.not_before);
        /// End of the validity.
        "notafter": Option<String> = time(row.0.not_after);
        /// Names for which the certificate is valid.
        "subjectaltname": ListOf<Displayed<Cow<'a, str>>> [sparse] => alternative_names(row.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_certificate() {
        for (name, expected) in [
            ("CN=www.example.org,O=Example,C=US", "C=US, O=Example, CN=www.example.org"),
            (r"CN=a\, b,O=c\+d", "O=c+d, CN=a, b"),
            (r"CN=\c3\a9", "CN=é"),
            ("", ""),
        ] {
            assert_eq!(in_order(name), expected);
        }
    }

    #[test]
    fn versions_and_serial_numbers_are_those_of_suricata() {
        let names = [0x0301, 0x0303, 0xfefd].map(|number| version_name(Version(number)));
        assert_eq!(names, ["TLSv1", "TLS 1.2", "0xfefd"]);
        assert_eq!(pairs("0A1B2C"), "0A:1B:2C");
    }
}
