//! TLS over streams and DTLS over datagrams: what is said before all is encrypted.
//!
//! Parsed are the hello messages of SSL 3.0 and TLS 1.0 to 1.3 (RFC 6101, 2246, 4346, 5246, 8446), of DTLS 1.0 to 1.3
//! (RFC 4347, 6347, 9147), and the client's of SSL 2.0; certificates, the group of the server's key and session tickets
//! up to TLS 1.2 and DTLS 1.2; alerts in the clear. From a hello come the server's name, application protocols,
//! versions, cipher suites, whether a session is resumed, whether there is Encrypted Client Hello, and the fingerprints
//! JA3, JA3S and JA4. [`ClientHello`] serves QUIC too.
//!
//! A flow has one handshake, so that messages need no number to be paired by; another one on the same ports of DTLS begins with a
//! ClientHello again.
//!
//! Once all is encrypted, both parsers are done, and the rest of the flow is free. A flow that is captured from its middle is
//! recognised, and done at once.
//!
//! # Limits
//!
//! A record: 18432 octets. A handshake message: [`HANDSHAKE_LEN_MAX`]; TLS gives up beyond, DTLS leaves the message alone. Of a
//! chain [`CERTIFICATE_COUNT_MAX`] certificates are looked at. DTLS puts together [`OPEN_MESSAGE_COUNT_MAX`] messages of a
//! direction at a time, from [`PIECE_COUNT_MAX`] pieces apart each; a handshake message that is sent again is
//! reported once.
//!
//! After a gap TLS goes on if what follows looks like a record, and is done otherwise.
//!
//! Nothing is decrypted, and nothing verified: neither Finished nor certificates.

mod certificate;
mod cipher_names;
mod client_hello;
mod datagram;
mod der;
mod fragments;
mod handshake;
mod ja3;
mod ja4;
mod lists;
mod message;
mod name;
mod numbers;
mod probe;
mod server_hello;
mod stream;

pub use certificate::{CERTIFICATE_COUNT_MAX, Certificate, CertificateChain, CertificateTime};
pub use client_hello::{ClientHello, Transport};
pub use datagram::DtlsParser;
pub use fragments::{OPEN_MESSAGE_COUNT_MAX, PIECE_COUNT_MAX};
pub use handshake::HANDSHAKE_LEN_MAX;
pub use ja3::Ja3;
pub use ja4::Ja4;
pub use lists::{AlpnNames, Extension, Extensions, Hex, LISTED_COUNT_MAX, Numbers};
pub use message::{Alert, HelloVerifyRequest, Message, NewSessionTicket, ServerKeyExchange, Ssl2ClientHello};
pub use name::{ALT_NAME_COUNT_MAX, AltName, AltNames, Attribute, DistinguishedName};
pub use numbers::{
    AlertDescription, AlertLevel, CipherSuite, ExtensionType, NamedGroup, SignatureScheme, Version, is_grease,
};
pub use server_hello::ServerHello;
pub use stream::TlsParser;

use super::Protocol;

/// TLS. Ports that carry it from the first octet: HTTPS, SMTPS, NNTPS, LDAPS, DNS, FTPS, Telnet, IRC, IMAPS, POP3S, SIPS, AMQPS,
/// MQTT.
pub static PROTOCOL: Protocol = Protocol::new("tls")
    .over_streams(
        &[443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 5061, 5671, 8443, 8883],
        Some(probe::probe_stream),
    )
    .resumed_by(probe::search);

/// DTLS. Ports: DNS, CAPWAP control and data, SIP, CoAP.
pub static DTLS: Protocol =
    Protocol::new("dtls").over_datagrams(&[853, 4433, 5061, 5246, 5247, 5684], Some(probe::probe_datagram));
