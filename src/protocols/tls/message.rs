//! Messages of the handshake.

use super::certificate::CertificateChain;
use super::client_hello::ClientHello;
use super::lists::Hex;
use super::numbers::{AlertDescription, AlertLevel, CipherSuite, NamedGroup, Version};
use super::server_hello::ServerHello;
use crate::base::Reader;

/// A message of TLS or DTLS, excluding those that are encrypted.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// ClientHello. A second one follows a HelloRetryRequest or a HelloVerifyRequest.
    ClientHello(ClientHello<'m>),
    /// ClientHello in the format of SSL 2.0.
    Ssl2ClientHello(Ssl2ClientHello<'m>),
    /// ServerHello or HelloRetryRequest.
    ServerHello(ServerHello<'m>),
    /// Request of a DTLS server to validate the client's address.
    HelloVerifyRequest(HelloVerifyRequest<'m>),
    /// Certificates of a side, up to TLS 1.2.
    CertificateChain(CertificateChain<'m>),
    /// Group of the server's key, up to TLS 1.2; since TLS 1.3 it is in the ServerHello.
    ServerKeyExchange(ServerKeyExchange),
    /// Session ticket, up to TLS 1.2.
    NewSessionTicket(NewSessionTicket),
    /// Change of this direction to encryption, up to TLS 1.2. TLS 1.3 sends it for compatibility only.
    ChangeCipherSpec,
    /// A warning, or a reason for the end.
    Alert(Alert),
}

/// A ClientHello in the format of SSL 2.0, in which clients also offered SSL 3.0 and TLS 1.0 (RFC 2246 appendix E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Ssl2ClientHello<'a> {
    /// Highest offered version.
    pub version: Version,
    /// Concatenated cipher specifications of three octets each; those of SSL 3.0 and TLS start with zero.
    pub cipher_specs: Hex<'a>,
    /// Session to be resumed: 16 octets, or none.
    pub session_id: Hex<'a>,
    /// Random octets of the client.
    pub challenge: Hex<'a>,
}

impl<'a> Ssl2ClientHello<'a> {
    /// Octets of a record header and of the fixed part after it, which contains the other lengths.
    pub(super) const HEAD_LEN: usize = 11;

    /// Parses a record with its header of two octets. `None` if it is incomplete or invalid.
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

    /// Returns the length of a record from its first octets; `None` if they are not those of a ClientHello, or fewer
    /// than [`HEAD_LEN`](Self::HEAD_LEN).
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
    /// Version, usually the lowest that the server supports.
    pub version: Version,
    /// Cookie that the client must return.
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

/// A ServerKeyExchange with a key of a named group (RFC 8422 section 5.4). Others are not reported, nor is one that
/// arrives before the server's hello, which is possible with datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ServerKeyExchange {
    /// Group of the key.
    pub group: NamedGroup,
}

impl ServerKeyExchange {
    /// Parses the body of a handshake message of type 12; `None` if the suite has no key of a named group in it.
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

/// A NewSessionTicket (RFC 5077 section 3.3). Only the server can decrypt the ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NewSessionTicket {
    /// Lifetime hint in seconds; zero if unspecified.
    pub lifetime_s: u32,
    /// Length of the ticket in octets.
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
    /// Severity.
    pub level: AlertLevel,
    /// Alert description.
    pub description: AlertDescription,
}

impl Alert {
    /// Parses the content of a record; `None` if it is encrypted, which makes it longer.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let [level @ (1 | 2), description] = *content else { return None };
        Some(Self { level: AlertLevel(level), description: AlertDescription(description) })
    }
}
