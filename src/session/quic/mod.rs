//! QUIC: how connections begin.
//!
//! | what | by |
//! |---|---|
//! | versions 1 and 2 | RFC 9000, RFC 9001; RFC 9369 |
//! | drafts 23 to 34 | their salts; transport parameters from draft 27 on |
//! | Google's versions (`Q043`, `T051`) and others | the version alone: [`Unread`] |
//!
//! Everything but Initial packets, Retry and Version Negotiation is for the ends of a connection only. Keys of Initial packets
//! follow from the id that the client made up for the server, which is in its first packet; so they are opened, in both
//! directions, and what the CRYPTO frames in them hold is put together, over packets and datagrams, in any order. A Retry and
//! a compatible change of the version (RFC 9368) are followed. A connection whose beginning was not captured, or was cut by a snap
//! length, cannot be read.
//!
//! Messages: [`ClientHello`] with the server's name, ALPN, JA4 and [`TransportParameters`]; [`ServerHello`];
//! [`VersionNegotiation`]; [`Retry`]; [`Close`]. Once both hellos are known, or a connection was closed, or
//! [`SILENT_COUNT_MAX`] datagrams in turn had nothing to read, the parser is done and the rest of the flow is free. Further
//! connections between the same ports are not read after that; those that begin before are, and have their own `transaction`.
//!
//! What a flow costs while it is read: one allocation for keys and state, at most [`CRYPTO_LEN_MAX`] octets of handshake a
//! direction in at most [`CRYPTO_PIECE_COUNT_MAX`] pieces, and a copy of the packet at hand. Of a datagram 8 packets are
//! looked at. Packets that no key opens are ignored up to [`FAILED_COUNT_MAX`].

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
pub use message::{ClientHello, Close, Message, Retry, ServerHello, Unread, VersionNegotiation, Versions};
pub use packet::ConnectionId;
pub use parser::{CONNECTION_COUNT_MAX, FAILED_COUNT_MAX, QuicParser, SILENT_COUNT_MAX};
pub use transport_parameters::TransportParameters;
pub use version::Version;

/// QUIC, on the port of HTTP/3.
pub static PROTOCOL: Protocol = Protocol::new("quic").over_datagrams(&[443], Some(probe::probe));
