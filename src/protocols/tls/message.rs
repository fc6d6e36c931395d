//! Messages of the TLS and DTLS parsers.

use super::certificate::CertificateChain;
use super::client_hello::ClientHello;
use super::lists::Hex;
use super::numbers::{AlertDescription, AlertLevel, CipherSuite, NamedGroup, Version};
use super::server_hello::ServerHello;
use crate::codec::{Prefix, Reader};

crate::messages! {
    /// A message of TLS or DTLS, excluding those that are encrypted.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// A ClientHello. A second one follows a HelloRetryRequest or a HelloVerifyRequest.
        ClientHello(ClientHello<'m>),
        /// A ClientHello in the format of SSL 2.0.
        Ssl2ClientHello(Ssl2ClientHello<'m>),
        /// A ServerHello or HelloRetryRequest.
        ServerHello(ServerHello<'m>),
        /// A HelloVerifyRequest, with which a DTLS server validates the client's address.
        HelloVerifyRequest(HelloVerifyRequest<'m>),
        /// Certificates of one side, up to TLS 1.2.
        CertificateChain(CertificateChain<'m>),
        /// A ServerKeyExchange with the group of the server's key, up to TLS 1.2; since TLS 1.3 the group is in the
        /// ServerHello.
        ServerKeyExchange(ServerKeyExchange),
        /// A NewSessionTicket of the server, up to TLS 1.2.
        NewSessionTicket(NewSessionTicket),
        /// A ChangeCipherSpec: change of the sender's direction to encryption, up to TLS 1.2. TLS 1.3 sends it for
        /// compatibility only.
        ChangeCipherSpec(ChangeCipherSpec),
        /// An alert in the clear: a warning, or the reason for the end of the connection.
        Alert(Alert),
        /// A handshake message that is no message of its own, or the first encrypted record.
        Step(Step),
    }
}

impl Message<'_> {
    /// Returns whether the message only states the progress of the handshake: the variant [`Step`](Self::Step).
    #[must_use]
    pub const fn is_step(&self) -> bool {
        matches!(self, Self::Step(_))
    }
}

crate::message! {
    /// Progress of the handshake: a message whose content is not parsed, or the end of what is in the clear.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tls.step" pub struct Step {
        /// Type of the handshake message; absent for the first encrypted record after the ServerHello.
        pub handshake_type: Option<u8>,
    }
}

crate::message! {
    /// A ChangeCipherSpec: change of the sender's direction to encryption.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    "tls.change_cipher_spec" pub struct ChangeCipherSpec {}
}

crate::message! {
    /// A ClientHello in the format of SSL 2.0, in which clients also offered SSL 3.0 and TLS 1.0 (RFC 2246 appendix E).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tls.ssl2_client_hello" pub struct Ssl2ClientHello<'a> {
        /// Highest version that the client offers.
        pub version: Version,
        /// Offered cipher specifications, concatenated, three octets each; those of SSL 3.0 and TLS start with zero.
        pub cipher_specs: Hex<'a>,
        /// Id of the session to be resumed: 16 octets, or empty.
        pub session_id: Hex<'a>,
        /// Random octets of the client.
        pub challenge: Hex<'a>,
    }
}

impl<'a> Ssl2ClientHello<'a> {
    /// Length in octets of an SSL 2.0 record header and the fixed part of a ClientHello after it, which contains the
    /// lengths of the other parts.
    pub(super) const HEAD_LEN: usize = 11;

    /// Parses an SSL 2.0 record that contains a ClientHello, including its header of two octets. `None` if the record
    /// is incomplete or invalid.
    pub(super) fn parse(record: &'a [u8]) -> Option<Self> {
        let len = Self::record_len(record)?;
        let mut reader = Reader::new(record.get(3..len)?);
        let version = Version(reader.be::<u16>().ok()?);
        let [cipher_specs_len, session_id_len, challenge_len] =
            [reader.be::<u16>().ok()?, reader.be::<u16>().ok()?, reader.be::<u16>().ok()?].map(usize::from);
        let cipher_specs = Hex(reader.bytes(cipher_specs_len).ok()?);
        let session_id = Hex(reader.bytes(session_id_len).ok()?);
        Some(Self { version, cipher_specs, session_id, challenge: Hex(reader.bytes(challenge_len).ok()?) })
    }

    /// Returns the length of an SSL 2.0 record including its header, from its first octets; `None` if they are not
    /// those of a ClientHello, or fewer than [`HEAD_LEN`](Self::HEAD_LEN).
    pub(super) fn record_len(head: &[u8]) -> Option<usize> {
        let mut reader = Reader::new(head);
        let len = reader.be::<u16>().ok()?;
        let (kind, version) = (reader.be::<u8>().ok()?, reader.be::<u16>().ok()?);
        let [cipher_specs_len, session_id_len, challenge_len] =
            [reader.be::<u16>().ok()?, reader.be::<u16>().ok()?, reader.be::<u16>().ok()?];
        let is_hello = len & 0x8000 != 0
            && kind == 1
            && matches!(version, 0x0002 | 0x0300..=0x0303)
            && cipher_specs_len > 0
            && cipher_specs_len % 3 == 0
            && matches!(session_id_len, 0 | 16)
            && (16..=32).contains(&challenge_len);
        let len = len & 0x7fff;
        let wanted = 9 + u32::from(cipher_specs_len) + u32::from(session_id_len) + u32::from(challenge_len);
        (is_hello && u32::from(len) == wanted).then_some(usize::from(len) + 2)
    }
}

crate::message! {
    /// A HelloVerifyRequest of a DTLS server (RFC 6347 section 4.2.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tls.hello_verify_request" pub struct HelloVerifyRequest<'a> {
        /// Version in the HelloVerifyRequest, usually the lowest that the server supports.
        pub version: Version,
        /// Cookie that the client must return in its next ClientHello.
        pub cookie: Hex<'a>,
    }
}

impl<'a> HelloVerifyRequest<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = Version(reader.be::<u16>().ok()?);
        Some(Self { version, cookie: Hex(reader.prefixed(Prefix::U8).ok()?) })
    }
}

crate::message! {
    /// A ServerKeyExchange with a key of a named group (RFC 8422 section 5.4). A ServerKeyExchange with another key is not
    /// reported, nor is one that arrives before the ServerHello, which is possible with datagrams.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tls.server_key_exchange" pub struct ServerKeyExchange {
        /// Named group of the server's key.
        pub group: NamedGroup,
    }
}

impl ServerKeyExchange {
    /// Parses the body of a ServerKeyExchange handshake message (type 12); `None` if the message of cipher suite
    /// `suite` contains no key of a named group.
    pub(super) fn parse(body: &[u8], suite: CipherSuite) -> Option<Self> {
        // Suites with a pre-shared key have a hint before the group.
        let name = suite.name().filter(|name| !name.contains("PSK"))?;
        let has_group = name.contains("_ECDHE_") || name.contains("_ECDH_anon_");
        match *body {
            [3, high, low, ..] if has_group => {
                Some(Self { group: NamedGroup(u16::from_be_bytes([high, low])) })
            }
            _ => None,
        }
    }
}

crate::message! {
    /// A NewSessionTicket of the server (RFC 5077 section 3.3). Only the server can decrypt the ticket.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tls.new_session_ticket" pub struct NewSessionTicket {
        /// Lifetime hint of the ticket in seconds; zero if unspecified.
        pub lifetime_s: u32,
        /// Length of the ticket in octets.
        pub ticket_len: u16 [octets],
    }
}

impl NewSessionTicket {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        Some(Self { lifetime_s: reader.be::<u32>().ok()?, ticket_len: reader.be::<u16>().ok()? })
    }
}

crate::message! {
    /// A TLS alert in the clear (RFC 8446 section 6).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "tls.alert" pub struct Alert {
        /// Severity of the alert.
        pub level: AlertLevel,
        /// Description of the alert: its reason.
        pub description: AlertDescription,
    }
}

impl Alert {
    /// Parses the content of an alert record; `None` if the alert is encrypted, which makes the record longer than two
    /// octets, or invalid.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let [level @ (1 | 2), description] = *content else { return None };
        Some(Self { level: AlertLevel(level), description: AlertDescription(description) })
    }
}
