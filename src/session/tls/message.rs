//! What is said in a handshake.

use super::certificate::CertificateChain;
use super::client_hello::ClientHello;
use super::lists::Hex;
use super::numbers::{AlertDescription, AlertLevel, CipherSuite, NamedGroup, Version};
use super::server_hello::ServerHello;
use crate::base::Reader;

/// A message of TLS or DTLS. Those that are encrypted are not among them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// What the client offers. A second one follows a HelloRetryRequest or a HelloVerifyRequest.
    ClientHello(ClientHello<'m>),
    /// What a client offers in the form of SSL 2.0.
    Ssl2ClientHello(Ssl2ClientHello<'m>),
    /// What the server chose, or its wish for another hello (HelloRetryRequest).
    ServerHello(ServerHello<'m>),
    /// A server of DTLS wants to know whether the client is where it claims to be.
    HelloVerifyRequest(HelloVerifyRequest<'m>),
    /// Who a side is, up to TLS 1.2.
    CertificateChain(CertificateChain<'m>),
    /// The group of the server's key, up to TLS 1.2; since TLS 1.3 its hello has it.
    ServerKeyExchange(ServerKeyExchange),
    /// Something to resume with later, up to TLS 1.2.
    NewSessionTicket(NewSessionTicket),
    /// What this side says from here on is encrypted, up to TLS 1.2. TLS 1.3 sends it for the looks.
    ChangeCipherSpec,
    /// A warning, or why it ends.
    Alert(Alert),
}

/// A ClientHello in the form of SSL 2.0, in which clients offered SSL 3.0 and TLS 1.0 too (RFC 2246 appendix E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Ssl2ClientHello<'a> {
    /// The highest version that it offers.
    pub version: Version,
    /// Cipher specifications of three octets each, joined; those of SSL 3.0 and TLS begin with a zero.
    pub cipher_specs: Hex<'a>,
    /// The session to be resumed: 16 octets, or none.
    pub session_id: Hex<'a>,
    /// Random octets.
    pub challenge: Hex<'a>,
}

impl<'a> Ssl2ClientHello<'a> {
    /// Octets of a record header and of the fixed part behind it, which tell the rest.
    pub(super) const HEAD_LEN: usize = 11;

    /// Reads a record, its header of two octets included. `None` if it is not whole, or none at all.
    pub(super) fn parse(record: &'a [u8]) -> Option<Self> {
        let len = Self::record_len(record)?;
        let mut reader = Reader::new(record.get(3..len)?);
        let version = Version(reader.u16()?);
        let [cipher_specs_len, session_id_len, challenge_len] =
            [reader.u16()?, reader.u16()?, reader.u16()?].map(usize::from);
        let cipher_specs = Hex(reader.bytes(cipher_specs_len)?);
        let session_id = Hex(reader.bytes(session_id_len)?);
        Some(Self { version, cipher_specs, session_id, challenge: Hex(reader.bytes(challenge_len)?) })
    }

    /// Octets of a record by its beginning; `None` if that is not one of a ClientHello, or has fewer than
    /// [`HEAD_LEN`](Self::HEAD_LEN) octets.
    pub(super) fn record_len(head: &[u8]) -> Option<usize> {
        let mut reader = Reader::new(head);
        let len = reader.u16()?;
        let (kind, version) = (reader.u8()?, reader.u16()?);
        let [cipher_specs_len, session_id_len, challenge_len] = [reader.u16()?, reader.u16()?, reader.u16()?];
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

/// A HelloVerifyRequest (RFC 6347 section 4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HelloVerifyRequest<'a> {
    /// A version, mostly the lowest that the server has.
    pub version: Version,
    /// What the client is to return.
    pub cookie: Hex<'a>,
}

impl<'a> HelloVerifyRequest<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = Version(reader.u16()?);
        let len = usize::from(reader.u8()?);
        Some(Self { version, cookie: Hex(reader.bytes(len)?) })
    }
}

/// A ServerKeyExchange with a key of a named group (RFC 8422 section 5.4). Others are not reported, nor one that comes
/// before the server's hello, as datagrams may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ServerKeyExchange {
    /// The group.
    pub group: NamedGroup,
}

impl ServerKeyExchange {
    /// Reads the body of a handshake message of type 12; `None` if the suite has no key of a named group in its place.
    pub(super) fn parse(body: &[u8], suite: CipherSuite) -> Option<Self> {
        // Suites with a pre-shared key have a hint before it.
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

/// A NewSessionTicket (RFC 5077 section 3.3). What the ticket says only its server can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NewSessionTicket {
    /// For how many seconds it may be of use; zero if that is not said.
    pub lifetime_s: u32,
    /// Octets of the ticket.
    pub ticket_len: u16,
}

impl NewSessionTicket {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        Some(Self { lifetime_s: reader.u32()?, ticket_len: reader.u16()? })
    }
}

/// An alert (RFC 8446 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Alert {
    /// How bad it is.
    pub level: AlertLevel,
    /// What it is.
    pub description: AlertDescription,
}

impl Alert {
    /// Reads the content of a record; `None` if it is encrypted, which makes it longer.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let [level @ (1 | 2), description] = *content else { return None };
        Some(Self { level: AlertLevel(level), description: AlertDescription(description) })
    }
}
