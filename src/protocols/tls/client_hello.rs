//! The ClientHello message.

use super::lists::{AlpnNames, Extensions, Hex, Numbers};
use super::numbers::{CipherSuite, NamedGroup, SignatureScheme, Version, is_grease};
use crate::codec::{Prefix, Reader};
use crate::session::Text;

/// Protocol that carries TLS handshake messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Records in a stream: TLS.
    Stream,
    /// Records in datagrams: DTLS.
    Datagram,
    /// CRYPTO frames of QUIC (RFC 9001).
    Quic,
}

/// A ClientHello (RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2, RFC 6347 section 4.2.1).
///
/// A `ClientHello` borrows the octets of the message; lists and extensions are parsed on access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientHello<'a> {
    /// Protocol that carried the message.
    pub transport: Transport,
    /// Version in the fixed part of the ClientHello, at most TLS 1.2; see [`version`](Self::version).
    pub legacy_version: Version,
    /// Random value of the client: 32 octets.
    pub random: Hex<'a>,
    /// Id of the session to be resumed; usually random octets for TLS 1.3.
    pub session_id: Hex<'a>,
    /// Cookie that a DTLS server required in a HelloVerifyRequest, empty before; `None` for other protocols.
    pub cookie: Option<Hex<'a>>,
    /// Offered cipher suites, most preferred first.
    pub cipher_suites: Numbers<'a, CipherSuite>,
    /// Offered compression methods, one octet each.
    pub compression_methods: Hex<'a>,
    /// Extensions of the ClientHello.
    pub extensions: Extensions<'a>,
    /// Number of the message in its handshake over DTLS, which is 1 after a HelloVerifyRequest; 0 for other protocols, and in
    /// a message that [`parse`](Self::parse) returns.
    pub message_sequence: u16,
}

impl<'a> ClientHello<'a> {
    /// Parses the body of a ClientHello handshake message (type 1), without the message header. `None` if the body ends
    /// before its extensions; if the extensions end early, those before the end are kept.
    #[must_use]
    pub fn parse(body: &'a [u8], transport: Transport) -> Option<Self> {
        let mut reader = Reader::new(body);
        let legacy_version = Version(reader.be::<u16>().ok()?);
        let random = Hex(reader.bytes(32).ok()?);
        let session_id = Hex(reader.prefixed(Prefix::U8).ok()?);
        let cookie = if transport == Transport::Datagram {
            Some(Hex(reader.prefixed(Prefix::U8).ok()?))
        } else {
            None
        };
        let cipher_suites = Numbers::new(reader.prefixed(Prefix::U16).ok()?);
        let compression_methods = Hex(reader.prefixed(Prefix::U8).ok()?);
        let extensions = Extensions::read(&mut reader);
        Some(Self {
            transport,
            legacy_version,
            random,
            session_id,
            cookie,
            cipher_suites,
            compression_methods,
            extensions,
            message_sequence: 0,
        })
    }

    /// Returns the highest version that the client offers.
    #[must_use]
    pub fn version(&self) -> Version {
        let offered = self.supported_versions();
        let known = offered.iter().filter(|version| !is_grease(version.0));
        known.max_by_key(|version| version.rank()).unwrap_or(self.legacy_version)
    }

    /// Returns the server name that the client requests, in its original case (RFC 6066 section 3).
    #[must_use]
    pub fn server_name(&self) -> Option<Text<'a>> {
        let mut reader = Reader::new(self.extensions.find(0)?);
        reader.be::<u16>().ok()?;
        loop {
            let kind = reader.be::<u8>().ok()?;
            let name = reader.prefixed(Prefix::U16).ok()?;
            if kind == 0 {
                return Some(Text(name));
            }
        }
    }

    /// Returns the names of the application protocols that the client offers (RFC 7301).
    #[must_use]
    pub fn alpn(&self) -> AlpnNames<'a> {
        self.extensions.alpn()
    }

    /// Returns the versions in the `supported_versions` extension, which TLS 1.3 introduced; empty in an older hello.
    #[must_use]
    pub fn supported_versions(&self) -> Numbers<'a, Version> {
        self.extensions.numbers(43, true)
    }

    /// Returns the signature schemes that the client supports.
    #[must_use]
    pub fn signature_algorithms(&self) -> Numbers<'a, SignatureScheme> {
        self.extensions.numbers(13, false)
    }

    /// Returns the groups for key exchange that the client supports.
    #[must_use]
    pub fn supported_groups(&self) -> Numbers<'a, NamedGroup> {
        self.extensions.numbers(10, false)
    }

    /// Returns the elliptic curve point formats that the client supports, one octet each (RFC 8422).
    #[must_use]
    pub fn ec_point_formats(&self) -> &'a [u8] {
        let formats = self.extensions.find(11).and_then(<[u8]>::split_first);
        formats.map_or(&[], |(len, formats)| formats.get(..usize::from(*len)).unwrap_or(formats))
    }

    /// Iterates over the groups for which the client sends a key share (RFC 8446 section 4.2.8).
    pub fn key_share_groups(&self) -> impl Iterator<Item = NamedGroup> + use<'a> {
        let mut reader =
            Reader::new(self.extensions.find(51).and_then(|data| data.get(2..)).unwrap_or_default());
        std::iter::from_fn(move || {
            let group = NamedGroup(reader.be::<u16>().ok()?);
            reader.prefixed(Prefix::U16).ok()?;
            Some(group)
        })
    }

    /// Returns whether this is the outer ClientHello of an encrypted one (RFC 9849), or contains a GREASE extension
    /// that resembles it.
    #[must_use]
    pub fn has_ech(&self) -> bool {
        self.extensions.has(0xfe0d)
    }

    /// Returns whether the client offers a session ticket for resumption (RFC 5077).
    #[must_use]
    pub fn has_session_ticket(&self) -> bool {
        self.extensions.find(35).is_some_and(|ticket| !ticket.is_empty())
    }

    /// Returns whether the client offers pre-shared keys for resumption (RFC 8446 section 4.2.11).
    #[must_use]
    pub fn has_pre_shared_key(&self) -> bool {
        self.extensions.has(41)
    }

    /// Returns whether the client sends early data before the server responds (RFC 8446 section 4.2.10).
    #[must_use]
    pub fn has_early_data(&self) -> bool {
        self.extensions.has(42)
    }

    /// Returns the content of the extension with the QUIC transport parameters of version 1 (RFC 9001 section 8.2) or
    /// of a draft.
    #[must_use]
    pub fn quic_transport_parameters(&self) -> Option<&'a [u8]> {
        self.extensions.find(57).or_else(|| self.extensions.find(0xffa5))
    }

    /// Returns whether one of the lists of the hello has more than [`LISTED_COUNT_MAX`](super::LISTED_COUNT_MAX) items,
    /// so that not all are written.
    pub(super) fn is_longer_than_listed(&self) -> bool {
        let counts = [
            self.cipher_suites.count(),
            self.supported_versions().count(),
            self.signature_algorithms().count(),
            self.supported_groups().count(),
        ];
        let max = super::LISTED_COUNT_MAX;
        counts.iter().any(|count| *count > max)
            || self.extensions.iter().nth(max).is_some()
            || self.alpn().iter().nth(max).is_some()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::protocols::tls::ExtensionType;

    /// Returns the body of the ClientHello of the example in the description of JA3: TLS 1.0, twelve suites, a server
    /// name, three groups, one point format.
    fn example() -> Vec<u8> {
        let mut body = vec![3, 1];
        body.extend([7; 32]);
        body.push(0);
        let suites: [u16; 12] = [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
        body.extend([0, 24]);
        body.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
        body.extend([1, 0]);
        let extensions = b"\x00\x00\x00\x10\x00\x0e\x00\x00\x0bexample.com\
            \x00\x0a\x00\x08\x00\x06\x00\x17\x00\x18\x00\x19\
            \x00\x0b\x00\x02\x01\x00";
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        body
    }

    #[test]
    fn a_hello_contains_the_offered_parameters() {
        let body = example();
        let hello = ClientHello::parse(&body, Transport::Stream).unwrap();
        assert_eq!(hello.version(), Version::TLS_1_0);
        assert_eq!(hello.server_name(), Some(Text(b"example.com")));
        assert_eq!(hello.cipher_suites.iter().next(), Some(CipherSuite(47)));
        assert_eq!(hello.supported_groups().iter().map(|group| group.0).collect::<Vec<_>>(), [23, 24, 25]);
        assert_eq!(hello.ec_point_formats(), [0]);
        assert_eq!(hello.alpn().first(), None);
        assert!(!hello.has_ech() && !hello.has_session_ticket() && !hello.has_pre_shared_key());
        assert_eq!(hello.ja3().to_string(), "ada70206e40642a3e4461f35503241d5");
        assert!(hello.ja4().as_str().starts_with("t10d120300_"));
        let quic = ClientHello { transport: Transport::Quic, ..hello };
        assert!(quic.ja4().as_str().starts_with("q10d120300_"));
    }

    #[test]
    fn a_truncated_hello_is_rejected_or_has_fewer_extensions() {
        let body = example();
        let whole = ClientHello::parse(&body, Transport::Stream).unwrap();
        let all: Vec<ExtensionType> = whole.extensions.iter().map(|extension| extension.kind).collect();
        for len in 0..body.len() {
            let hello = ClientHello::parse(&body[..len], Transport::Stream);
            assert_eq!(hello.is_some(), len >= 63, "{len}");
            if let Some(hello) = hello {
                let kinds: Vec<_> = hello.extensions.iter().map(|extension| extension.kind).collect();
                assert!(kinds.len() < all.len() && all.starts_with(&kinds), "{len}");
                let _ = (hello.ja3(), hello.ja4(), hello.server_name(), hello.ec_point_formats());
            }
        }
    }

    #[test]
    fn the_highest_offered_version_counts_and_grease_is_ignored() {
        let mut body = example();
        body.truncate(63);
        body.extend(b"\x00\x0b\x00\x2b\x00\x07\x06\xfa\xfa\x03\x03\x03\x04");
        let hello = ClientHello::parse(&body, Transport::Stream).unwrap();
        assert_eq!((hello.version(), hello.legacy_version), (Version::TLS_1_3, Version::TLS_1_0));
        assert_eq!(hello.supported_versions().count(), 3);
    }

    #[test]
    fn extensions_are_parsed() {
        let mut body = example();
        body.truncate(63);
        let extensions: [(u16, &[u8]); 8] = [
            (0xfe0d, b"\x00\x00\x01\x00\x01"),
            (35, b"ticket"),
            (42, b""),
            (51, b"\x00\x0b\x7a\x7a\x00\x01\x00\x00\x1d\x00\x02ab"),
            (16, b"\x00\x0c\x02h2\x08http/1.1"),
            (57, b"quic"),
            (13, b"\x00\x04\x04\x03\x08\x04"),
            (41, b"keys"),
        ];
        let all: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, data)| {
                [&kind.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
            })
            .collect();
        body.extend((all.len() as u16).to_be_bytes());
        body.extend(all);
        let hello = ClientHello::parse(&body, Transport::Stream).unwrap();
        assert!(
            hello.has_ech()
                && hello.has_session_ticket()
                && hello.has_early_data()
                && hello.has_pre_shared_key()
        );
        assert_eq!(hello.key_share_groups().collect::<Vec<_>>(), [NamedGroup(0x7a7a), NamedGroup(29)]);
        assert_eq!(hello.alpn().iter().collect::<Vec<_>>(), [Text(b"h2"), Text(b"http/1.1")]);
        assert_eq!(hello.quic_transport_parameters(), Some(&b"quic"[..]));
        let schemes: Vec<_> = hello.signature_algorithms().iter().map(|scheme| scheme.to_string()).collect();
        assert_eq!(schemes, ["ecdsa_secp256r1_sha256", "rsa_pss_rsae_sha256"]);
        assert_eq!(hello.server_name(), None);
        // DTLS inserts the cookie here.
        body.splice(35..35, *b"\x03abc");
        let hello = ClientHello::parse(&body, Transport::Datagram).unwrap();
        assert_eq!(hello.cookie, Some(Hex(b"abc")));
        assert!(hello.ja4().as_str().starts_with("d10i1208h2_"));
    }
}
