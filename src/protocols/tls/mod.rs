//! TLS over streams and DTLS over datagrams, up to the start of encryption.
//!
//! A program can log server names, fingerprints and certificates with this module:
//!
//! ```
//! use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, on_message, tls};
//!
//! let mut names = Vec::new();
//! let sink = on_message::<Standard>(|_, _, message| match message {
//!     Message::Tls(tls::Message::ClientHello(hello)) => {
//!         names.extend(hello.server_name().map(|name| name.to_string()));
//!     }
//!     _ => {}
//! });
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(names.len(), 7);
//! assert_eq!(names.iter().filter(|name| *name == "web6.example").count(), 3);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! Parsed messages: the hello messages of SSL 3.0 and TLS 1.0 to 1.3 (RFC 6101, 2246, 4346, 5246, 8446), of DTLS 1.0 to
//! 1.3 (RFC 4347, 6347, 9147), and the client's of SSL 2.0; certificates, the group of the server's key and session
//! tickets up to TLS 1.2 and DTLS 1.2; alerts in the clear. The hello messages provide the server name, application
//! protocols, versions, cipher suites, session resumption, Encrypted Client Hello, and the fingerprints JA3, JA3S and
//! JA4. [`ClientHello`] is also used by QUIC.
//!
//! A flow has one handshake, so messages need no transaction number. Another handshake on the same DTLS ports starts
//! with a new ClientHello of another random value, at most [`CONVERSATION_COUNT_MAX`] times after the first one was encrypted.
//!
//! Once all messages are encrypted, both parsers are done, and the rest of the flow causes no cost. A flow whose start
//! was not captured is recognized, and done at once.
//!
//! # Limits
//!
//! A record: 18432 octets. A handshake message: [`HANDSHAKE_LEN_MAX`]; TLS stops parsing beyond it, DTLS ignores the
//! message. At most [`CERTIFICATE_COUNT_MAX`] certificates of a chain are examined. DTLS reassembles up to
//! [`OPEN_MESSAGE_COUNT_MAX`] messages per direction at a time, from up to [`PIECE_COUNT_MAX`] non-adjacent pieces
//! each; a retransmitted handshake message is reported once.
//!
//! After a gap, TLS continues if the next octets look like a record; otherwise it is done.
//!
//! Nothing is decrypted, and neither Finished nor certificates are verified.

mod certificate;
mod cipher_names;
mod client_hello;
mod datagram;
mod fragments;
mod handshake;
mod hello_tables;
mod ja3;
mod ja4;
mod key;
mod lists;
mod message;
mod name;
mod numbers;
mod probe;
mod server_hello;
mod stream;

pub use certificate::{
    CERTIFICATE_COUNT_MAX, Certificate, CertificateChain, CertificateDetails, CertificateTime,
};
pub use client_hello::{ClientHello, Transport};
pub use datagram::{CONVERSATION_COUNT_MAX, DtlsParser};
pub use fragments::{OPEN_MESSAGE_COUNT_MAX, PIECE_COUNT_MAX};
pub use handshake::HANDSHAKE_LEN_MAX;
pub use ja3::Ja3;
pub use ja4::Ja4;
pub use key::{ObjectId, PublicKey};
pub use lists::{AlpnNames, Extension, Extensions, Hex, LISTED_COUNT_MAX, Numbers};
pub use message::{
    Alert, ChangeCipherSpec, HelloVerifyRequest, Message, NewSessionTicket, ServerKeyExchange,
    Ssl2ClientHello,
};
pub use name::{ALT_NAME_COUNT_MAX, AltName, AltNames, Attribute, DistinguishedName};
pub use numbers::{
    AlertDescription, AlertLevel, CipherSuite, ExtensionType, NamedGroup, SignatureScheme, Version, is_grease,
};
pub use server_hello::ServerHello;
pub use stream::TlsParser;

use crate::session::{OctetSet, Protocol};

/// The TLS protocol over streams, recognized by content and by ports with TLS from the first octet: HTTPS, SMTPS,
/// NNTPS, LDAPS, DNS, FTPS, Telnet, IRC, IMAPS, POP3S, SIPS, AMQPS, MQTT.
pub static PROTOCOL: Protocol = Protocol::new("tls")
    .in_zeek("ssl")
    .in_eve("tls")
    .over_streams(
        &[443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 5061, 5671, 8443, 8883],
        Some(probe::probe_stream),
    )
    .resumed_by(probe::search)
    .streams_begin_with(OctetSet::range(20..=23).and(OctetSet::range(0x80..=0xFF)))
    .with_kinds(&["tls", "x509"])
    .with_limits(
        "record of 18,432 octets, handshake message of 64 KiB, 32 certificates; 512 items of a list and \
         1024 names of a certificate are written, no fingerprint of one below 64 octets",
    )
    .with_standards("RFC 6101, 2246, 4346, 5246, 6066, 7301, 8422, 8446; RFC 4514, 5280");

/// The DTLS protocol over datagrams, recognized by content and by the ports of DNS, CAPWAP control and data, SIP, CoAP.
pub static DTLS: Protocol = Protocol::new("dtls")
    .in_zeek("ssl")
    .over_datagrams(&[853, 4433, 5061, 5246, 5247, 5684], Some(probe::probe_datagram))
    .datagrams_begin_with(OctetSet::range(0..=3).and(OctetSet::range(20..=24)))
    .repeated_by((0xff, stream::HANDSHAKE), datagram::begins_another)
    .with_kinds(&["tls", "x509"])
    .with_limits(
        "4 messages of 32 pieces at a time; buffers of 16 octets for each octet received, plus 256 KiB",
    )
    .with_standards("RFC 4347, 6347, 9147");
