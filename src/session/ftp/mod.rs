//! FTP's control connection (RFC 959): commands with their replies, the data connections that follow, and transfers.
//!
//! | message | when |
//! |---|---|
//! | [`Message::Greeting`] | the server's first reply |
//! | [`Message::Command`] | a command |
//! | [`Message::Reply`] | a reply, with the number of its command |
//! | [`Message::DataConnection`] | PORT, EPRT, PASV or EPSV was granted: where the next data connection goes, and who opens it |
//! | [`Message::Transfer`] | a file or a listing was transferred, or refused |
//!
//! `transaction` counts commands; preliminary replies (1yz) and the last one have the number of their command. After an
//! AUTH TLS that was granted (RFC 4217) the connection is handed to TLS when a TLS record follows. Where text follows,
//! as in captures that were decrypted, the dialogue goes on. What a data connection carries is another flow.
//!
//! What stands behind PASS and ACCT, and in the security exchanges of RFC 2228, is never given out; [`Command::credentials`] says
//! that it was there. Of SITE, which servers have passwords changed by, its first word is all that is told, and of what is no
//! command of FTP nothing but the word: it may be PASS with a slip in it.
//!
//! Limits: [`COMMAND_LEN_MAX`] octets of a line, 1024 of a reply's line and 4096 of its text; longer ones are cut.
//! [`NAME_LEN_MAX`] octets of a file's name, [`PENDING_COUNT_MAX`] commands that wait for replies; beyond, replies have no number
//! until the next turn.
//!
//! After a gap it goes on where a command or a reply begins: behind the gap at once if a known command or a code stands
//! there, and at the next line otherwise. The command behind a gap has its reply if exactly one reply came for what is
//! missing; other replies have no number until the next turn.
//!
//! A reply whose code is followed by neither space nor hyphen is malformed ([`Reply::is_malformed`]). Other lines of
//! text that are no reply are left out, and replies have no number until the next turn; more than 16 of them in a row
//! are a fault.
//!
//! Standards: RFC 959, 2228, 2389, 2428 (EPRT, EPSV), 3659 (SIZE, MLSD), 4217.

mod address;
mod message;
mod parser;
mod probe;

pub use message::{Command, DataConnection, DataEnd, Greeting, Message, Reply, Transfer};
pub use parser::FtpParser;

use super::Protocol;

/// Octets of a command's line that are kept.
pub const COMMAND_LEN_MAX: usize = 2048;

/// Octets of a file's name that are kept for [`Transfer`].
pub const NAME_LEN_MAX: usize = 1024;

/// Commands that wait for replies.
pub const PENDING_COUNT_MAX: usize = 64;

/// `ftp`: port 21; by content on any port.
pub static PROTOCOL: Protocol =
    Protocol::new("ftp").over_streams(&PORTS, Some(probe::probe)).resumed_anywhere_by(probe::search);

const PORTS: [u16; 1] = [21];

/// What a granted AUTH TLS leads to: the protocol of this name in the set.
static TLS: Protocol = Protocol::new("tls");
