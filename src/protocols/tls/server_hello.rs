//! The ServerHello message.

use super::lists::{Extensions, Hex};
use super::numbers::{CipherSuite, NamedGroup, Version};
use crate::codec::{Prefix, Reader};
use crate::session::Text;

/// Random value that marks a ServerHello as a HelloRetryRequest (RFC 8446 section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A ServerHello, or a HelloRetryRequest, which has the same format (RFC 8446 section 4.1.3, RFC 5246 section 7.4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerHello<'a> {
    /// Version in the fixed part of the ServerHello; see [`version`](Self::version).
    pub legacy_version: Version,
    /// Random value of the server: 32 octets.
    pub random: Hex<'a>,
    /// Id of the session. In TLS 1.3, and if a session is resumed, the id that the client sent.
    pub session_id: Hex<'a>,
    /// Cipher suite that the server chose.
    pub cipher_suite: CipherSuite,
    /// Compression method that the server chose; zero is none.
    pub compression_method: u8,
    /// Extensions of the ServerHello.
    pub extensions: Extensions<'a>,
    /// True if a session is resumed; `None` if that depends on a ClientHello that was not captured, or on a ticket
    /// without a session id.
    pub is_resumed: Option<bool>,
}

impl<'a> ServerHello<'a> {
    /// Parses the body of a ServerHello handshake message (type 2), without the message header. `client_session_id` is
    /// the session id that the client sent, if it is known and indicates resumption. `None` if the body ends before its
    /// extensions; if the extensions end early, those before the end are kept.
    #[must_use]
    pub fn parse(body: &'a [u8], client_session_id: Option<&[u8]>) -> Option<Self> {
        let mut reader = Reader::new(body);
        let legacy_version = Version(reader.be::<u16>().ok()?);
        let random = Hex(reader.bytes(32).ok()?);
        // The first drafts of TLS 1.3 had neither session nor compression here, and used their own version.
        let is_early_draft = legacy_version.0 >> 8 == 0x7f;
        let session_id =
            if is_early_draft { Hex::default() } else { Hex(reader.prefixed(Prefix::U8).ok()?) };
        let cipher_suite = CipherSuite(reader.be::<u16>().ok()?);
        let compression_method = if is_early_draft { 0 } else { reader.be::<u8>().ok()? };
        let extensions = Extensions::read(&mut reader);
        let mut hello = Self {
            legacy_version,
            random,
            session_id,
            cipher_suite,
            compression_method,
            extensions,
            is_resumed: None,
        };
        hello.is_resumed = if hello.version().hides_handshake() {
            Some(hello.pre_shared_key().is_some())
        } else {
            client_session_id.map(|sent| !sent.is_empty() && sent == session_id.0)
        };
        Some(hello)
    }

    /// Returns the version that the server chose.
    #[must_use]
    pub fn version(&self) -> Version {
        let chosen = self.extensions.find(43).and_then(|data| data.try_into().ok());
        chosen.map_or(self.legacy_version, |version| Version(u16::from_be_bytes(version)))
    }

    /// Returns whether the message is a HelloRetryRequest, which requests another ClientHello.
    #[must_use]
    pub fn is_hello_retry_request(&self) -> bool {
        self.random.0 == RETRY_RANDOM
    }

    /// Returns the application protocol that the server chose; `None` since TLS 1.3, which encrypts it.
    #[must_use]
    pub fn alpn(&self) -> Option<Text<'a>> {
        self.extensions.alpn().first()
    }

    /// Returns the index of the pre-shared key, among those offered by the client, that the server chose for resumption
    /// (RFC 8446 section 4.2.11).
    #[must_use]
    pub fn pre_shared_key(&self) -> Option<u16> {
        self.extensions.find(41).and_then(|data| data.try_into().ok()).map(u16::from_be_bytes)
    }

    /// Returns the group for key exchange that the server chose, since TLS 1.3.
    #[must_use]
    pub fn key_share_group(&self) -> Option<NamedGroup> {
        // Drafts up to 22 used another extension number.
        let share = self
            .extensions
            .find(51)
            .or_else(|| self.extensions.find(40).filter(|_| self.version().hides_handshake()))?;
        share.first_chunk().map(|group| NamedGroup(u16::from_be_bytes(*group)))
    }
}
