//! Tables of the hello messages.

use super::client_hello::ClientHello;
use super::ja3::Ja3;
use super::ja4::Ja4;
use super::lists::{AlpnNames, Extensions, Hex, Numbers};
use super::numbers::{CipherSuite, NamedGroup, SignatureScheme, Version};
use super::server_hello::ServerHello;
use crate::session::Text;

crate::table! {
    /// The parameters that a client offers, and fingerprints of them.
    impl['m] "tls.client_hello" for ClientHello<'m> as hello {
        /// Highest version that the client offers.
        "version": Version = hello.version();
        /// Version in the fixed part of the message, at most TLS 1.2.
        "legacy_version": Version = hello.legacy_version;
        /// Server name that the client requests, in its original case (RFC 6066 section 3).
        "server_name": Option<Text<'m>> = hello.server_name();
        /// Names of the application protocols that the client offers (RFC 7301).
        "alpn": AlpnNames<'m> [sparse] = hello.alpn();
        /// JA3 fingerprint.
        "ja3": Ja3 = hello.ja3();
        /// JA4 fingerprint.
        "ja4": Ja4 = hello.ja4();
        /// Random value of the client.
        "random": Hex<'m> = hello.random;
        /// Id of the session to be resumed; usually random octets for TLS 1.3.
        "session_id": Hex<'m> = hello.session_id;
        /// Cookie that a DTLS server required, empty before; null for other protocols.
        "cookie": Option<Hex<'m>> = hello.cookie;
        /// Offered cipher suites, most preferred first.
        "cipher_suites": Numbers<'m, CipherSuite> = hello.cipher_suites;
        /// Types of the extensions.
        "extensions": Extensions<'m> = hello.extensions;
        /// Versions in the extension that TLS 1.3 introduced.
        "supported_versions": Numbers<'m, Version> [sparse] = hello.supported_versions();
        /// Signature schemes that the client supports.
        "signature_algorithms": Numbers<'m, SignatureScheme> [sparse] = hello.signature_algorithms();
        /// Groups for key exchange that the client supports.
        "supported_groups": Numbers<'m, NamedGroup> [sparse] = hello.supported_groups();
        /// True if a list has more items than are written.
        "truncated": bool [sparse] = hello.is_longer_than_listed();
        /// True if the message is the outer one of an encrypted ClientHello (RFC 9849), or resembles it.
        "has_ech": bool = hello.has_ech();
        /// True if the client offers a session ticket for resumption (RFC 5077).
        "has_session_ticket": bool = hello.has_session_ticket();
        /// True if the client offers pre-shared keys for resumption (RFC 8446 section 4.2.11).
        "has_pre_shared_key": bool = hello.has_pre_shared_key();
        /// True if the client sends early data (RFC 8446 section 4.2.10).
        "has_early_data": bool = hello.has_early_data();
    }
}

crate::table! {
    /// The parameters that a server chose, and a fingerprint of them.
    impl['m] "tls.server_hello" for ServerHello<'m> as hello {
        /// Version that the server chose.
        "version": Version = hello.version();
        /// Version in the fixed part of the message.
        "legacy_version": Version = hello.legacy_version;
        /// Cipher suite that the server chose.
        "cipher_suite": CipherSuite = hello.cipher_suite;
        /// Application protocol that the server chose; null since TLS 1.3, which encrypts it.
        "alpn": Option<Text<'m>> = hello.alpn();
        /// JA3S fingerprint.
        "ja3s": Ja3 = hello.ja3s();
        /// Random value of the server.
        "random": Hex<'m> = hello.random;
        /// Id of the session.
        "session_id": Hex<'m> = hello.session_id;
        /// Compression method that the server chose; zero is none.
        "compression_method": u8 = hello.compression_method;
        /// Types of the extensions.
        "extensions": Extensions<'m> = hello.extensions;
        /// Group for key exchange that the server chose, since TLS 1.3.
        "key_share_group": Option<NamedGroup> = hello.key_share_group();
        /// True for a HelloRetryRequest, which requests another ClientHello.
        "is_hello_retry_request": bool = hello.is_hello_retry_request();
        /// True if a session is resumed; null if that is not known.
        "is_resumed": Option<bool> = hello.is_resumed;
    }
}
