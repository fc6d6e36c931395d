//! SSH up to where it is encrypted (RFC 4253): identification lines, key exchange offers, HASSH, and what both sides agree on.
//!
//! Parsed are the identification of both sides, with lines that a server may send before its own (section 4.2), and the packets
//! up to each side's first SSH_MSG_KEXINIT (section 7.1), in any number of segments; an SSH_MSG_DISCONNECT before it too. Behind
//! its KEXINIT a direction is done, so that whatever is transferred costs nothing. SSH 1 is told by its identification and no
//! further; 1.99 is SSH 2 (section 5.1).
//!
//! | message | when |
//! |---|---|
//! | [`Message::Identification`] | the line of a side |
//! | [`Message::KexInit`] | its offer, with HASSH for a client and HASSHServer for a server |
//! | [`Message::Negotiated`] | both offers are known |
//! | [`Message::Disconnect`] | a side gave up before its offer |
//!
//! Limits: an identification line of [`IDENTIFICATION_LEN_MAX`] octets, [`LINES_BEFORE_MAX`] lines before it, packets of
//! [`PACKET_LEN_MAX`] octets, [`PACKETS_BEFORE_MAX`] packets before KEXINIT. More is a fault. Of the peer that offers first, its
//! lists are kept until the other one's came. After a gap it stops: nothing marks a packet's beginning.
//!
//! Standards: RFC 4250, 4251, 4253; HASSH as published with github.com/salesforce/hassh.

mod kexinit;
mod message;
mod parser;
mod probe;

pub use kexinit::{KexInit, NameList, Negotiated};
pub use message::{Disconnect, Identification, Message};
pub use parser::SshParser;

use super::Protocol;

/// Octets of an identification line with its end (RFC 4253 section 4.2).
pub const IDENTIFICATION_LEN_MAX: usize = 255;

/// Lines that a server may send before its identification.
pub const LINES_BEFORE_MAX: u8 = 50;

/// Octets of a packet (RFC 4253 section 6.1 asks for 35,000).
pub const PACKET_LEN_MAX: usize = 35_000;

/// Packets of a side before its KEXINIT.
pub const PACKETS_BEFORE_MAX: u8 = 8;

/// `ssh`: port 22, and by its identification on any port.
pub static PROTOCOL: Protocol =
    Protocol::new("ssh").over_streams(&[22], Some(probe::probe)).resumed_by(probe::search);
