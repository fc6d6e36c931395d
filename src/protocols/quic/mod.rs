//! QUIC connection establishment.
//!
//! | versions | basis, or extent of parsing |
//! |---|---|
//! | versions 1 and 2 | RFC 9000, RFC 9001; RFC 9369 |
//! | drafts 22 to 34 | their salts; transport parameters from draft 27 on |
//! | Facebook's versions (mvfst, `0xfaceb001` to `0xfaceb0ff`) | salts of draft 22, draft 23 and version 1 |
//! | Google's versions (`Q043`, `T051`), drafts up to 21, registered versions | the version alone: [`UnsupportedVersion`] |
//!
//! A program can log server names, fingerprints and versions with these messages. The parser can be used alone, here on
//! the beginning of a packet of a version that preceded the standard:
//!
//! ```
//! use flowgauge::protocols::quic::{Message, QuicParser};
//! use flowgauge::session::Datagram;
//! use flowgauge::{Parser, Role, Timestamp};
//!
//! let datagram = Datagram::new(b"\xc3T051\x08identity\0", Role::Client, Timestamp::ZERO);
//! let mut versions = Vec::new();
//! QuicParser::default().datagram(&datagram, &mut |message| {
//!     if let Message::UnsupportedVersion(unsupported) = message {
//!         versions.push(unsupported.quic_version.to_string());
//!     }
//! })?;
//! assert_eq!(versions, ["T051"]);
//! # Ok::<(), flowgauge::Fault>(())
//! ```
//!
//! Only Initial, Retry and Version Negotiation packets can be parsed by an observer. The keys of Initial packets are
//! derived from the connection id that the client chooses for the server, which its first packet contains. Initial
//! packets of both directions are therefore decrypted, and their CRYPTO frames are reassembled across packets and
//! datagrams, in any order. A Retry and a compatible version change (RFC 9368) are followed. A connection cannot be
//! parsed if its first packet was not captured, or was truncated by the snap length.
//!
//! Messages: [`ClientHello`] with the server name, ALPN, JA4 and [`TransportParameters`]; [`ServerHello`];
//! [`VersionNegotiation`]; [`Retry`]; [`Close`]. The parser is done once both hellos are known, a connection was
//! closed, or [`SILENT_COUNT_MAX`] consecutive datagrams contained nothing to parse; the rest of the connection then causes
//! no cost. Further connections between the same ports, which have other connection ids, are parsed too, each with its own
//! `transaction`, up to [`CONNECTION_COUNT_MAX`].
//!
//! Cost of a flow until then: one allocation for keys and state, at most [`CRYPTO_LEN_MAX`] octets of handshake per
//! direction in at most [`CRYPTO_PIECE_COUNT_MAX`] pieces, and a copy of the current packet. At most 8 packets of a
//! datagram are examined. Packets that cannot be decrypted are ignored, up to [`FAILED_COUNT_MAX`].

mod connection;
mod crypto_stream;
mod frames;
mod keys;
mod message;
mod packet;
mod parser;
mod probe;
#[cfg(test)]
mod tests;
mod transport_parameters;
#[cfg(test)]
mod vectors;
mod version;

use crate::session::Protocol;

pub use crypto_stream::{CRYPTO_LEN_MAX, CRYPTO_PIECE_COUNT_MAX};
pub use message::{ClientHello, Close, Message, Retry, ServerHello, UnsupportedVersion, VersionNegotiation};
pub use packet::ConnectionId;
pub use parser::{CONNECTION_COUNT_MAX, FAILED_COUNT_MAX, QuicParser, SILENT_COUNT_MAX};
pub use transport_parameters::TransportParameters;
pub use version::{Version, Versions};

/// The QUIC protocol: recognized by content, and by UDP port 443 of HTTP/3.
pub static PROTOCOL: Protocol = Protocol::new("quic")
    .in_zeek("quic,ssl")
    .in_eve("quic")
    .over_datagrams(&[443], Some(probe::probe))
    // Initial packets of versions 1 and 2.
    .repeated_by((0xe0, 0xc0), parser::begins_another)
    .with_kinds(&["quic", "x509"])
    .with_limits(
        "32 KiB of handshake in 128 pieces; 8 packets of a datagram, all with the same connection ID, \
         none after one that cannot be decrypted; 64 connections, each started by a datagram of 1200 \
         octets",
    )
    .with_standards("RFC 8999, 9000, 9001, 9368, 9369");
