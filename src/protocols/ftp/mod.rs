//! FTP's control connection (RFC 959): commands with their replies, the data connections that follow, and transfers.
//!
//! | message | when |
//! |---|---|
//! | [`Message::Greeting`] | the server's first reply |
//! | [`Message::Command`] | a command |
//! | [`Message::Reply`] | a reply, with the number of its command |
//! | [`Message::DataConnection`] | PORT, EPRT, PASV or EPSV was granted: address and port of the next data connection, and who opens it |
//! | [`Message::Transfer`] | a file or a listing was transferred, or refused |
//!
//! A program can log transfers with these messages, or match data connections to their control connection. The parser
//! can be used alone:
//!
//! ```
//! use flowgauge::protocols::ftp::{FtpParser, Message};
//! use flowgauge::{Input, Parser, Role, Timestamp};
//!
//! let mut ports = Vec::new();
//! let mut parser = FtpParser::default();
//! for (offset, from, line) in [
//!     (0, Role::Server, &b"220 ready\r\n"[..]),
//!     (0, Role::Client, b"PASV\r\n"),
//!     (11, Role::Server, b"227 Entering Passive Mode (192,0,2,1,195,80)\r\n"),
//! ] {
//!     parser.bytes(&Input::new(line, offset, from, Timestamp::ZERO), &mut |message| {
//!         if let Message::DataConnection(data) = message {
//!             ports.push((data.end.port, data.end.opened_by));
//!         }
//!     })?;
//! }
//! assert_eq!(ports, [(50_000, Role::Client)]);
//! # Ok::<(), flowgauge::Fault>(())
//! ```
//!
//! `transaction` counts commands; preliminary replies (1yz) and the last one have the number of their command. After a
//! granted AUTH TLS (RFC 4217), the connection changes to TLS when a TLS record follows. If text follows, as in
//! captures that were decrypted, parsing continues. The octets of a data connection are another flow, of protocol [`ftp_data`](super::ftp_data).
//!
//! The arguments of PASS and ACCT, and those of the security exchanges of RFC 2228, are never reported, except that of PASS directly after USER with
//! `anonymous` or `ftp`, who have no password and state an address (RFC 1635);
//! [`Command::credentials`] indicates that they were present. For SITE, with which some servers change passwords, only
//! the first word of the argument is reported, and for an unknown command only the command: it may be a mistyped PASS.
//!
//! Limits: [`COMMAND_LEN_MAX`] octets of a line, 1024 of a reply's line and 4096 of its text; longer ones are
//! truncated. [`NAME_LEN_MAX`] octets of a file's name, [`PENDING_COUNT_MAX`] commands that wait for replies; beyond
//! that, replies have no number until the next turn.
//!
//! After a gap, parsing continues at the next command or reply: directly after the gap if a known command or a code
//! begins there, otherwise at the next line. The command after a gap is matched to its reply if exactly one reply was
//! received for the missing octets; other replies have no number until the next turn.
//!
//! A reply whose code is followed by neither space nor hyphen is malformed ([`Reply::is_malformed`]). Other lines that
//! are not replies are skipped, and replies have no number until the next turn; more than 16 of them in a row are a
//! fault.
//!
//! Standards: RFC 959, 1635, 2228, 2389, 2428 (EPRT, EPSV), 3659 (SIZE, MLSD), 4217.

mod address;
mod message;
mod parser;
mod probe;

pub use message::{Command, DataConnection, DataEnd, Greeting, Message, Reply, Transfer};
pub(crate) use parser::TRANSFERS;
pub use parser::{FtpParser, is_anonymous};

use crate::session::{OctetSet, Protocol};

/// Maximum number of octets of a command's line that are kept.
pub const COMMAND_LEN_MAX: usize = 2048;

/// Maximum number of octets of a file's name that are kept for [`Transfer`].
pub const NAME_LEN_MAX: usize = 1024;

/// Maximum number of commands that wait for replies; beyond that, replies are not matched to commands.
pub const PENDING_COUNT_MAX: usize = 64;

/// Protocol `ftp`: recognized on port 21, and by content on any port.
pub static PROTOCOL: Protocol = Protocol::new("ftp")
    .in_zeek("ftp")
    .in_eve("ftp")
    .over_streams(&probe::PORTS, Some(probe::probe))
    .resumed_anywhere_by(probe::search)
    .announcing_streams()
    .streams_begin_with(OctetSet::LETTERS.and(OctetSet::range(b'1'..=b'5')))
    .with_kinds(&["ftp"])
    .leading_on()
    .with_limits("lines of 2 KiB, file names of 1 KiB, 64 pending commands")
    .with_standards("RFC 959, 2228, 2389, 2428, 3659, 4217");

/// Protocol that follows a granted AUTH TLS: the protocol of this name in the driver's set of protocols.
static TLS: Protocol = Protocol::new("tls");
