//! SMTP (RFC 5321): greeting, commands with their replies, and the envelope of each mail; LMTP (RFC 2033) likewise.
//!
//! The content of mails is never kept and no message has it: it is walked for its end, and its octets are counted.
//! After a STARTTLS that was granted (RFC 3207) the connection is handed to TLS when a TLS record follows. Where text
//! follows, as in captures that were decrypted, the dialogue goes on, and its commands are counted on.
//!
//! | message | when |
//! |---|---|
//! | [`Message::Greeting`] | the server's first reply |
//! | [`Message::Command`] | a command; pipelining (RFC 2920) and BDAT (RFC 3030) are understood |
//! | [`Message::Reply`] | a reply, with the number of its command |
//! | [`Message::Mail`] | the reply to a mail's content came, or the connection ended before: its envelope in summary |
//!
//! `transaction` counts commands and pairs them with replies; `mail` counts MAIL commands, and stands in all that belongs to one.
//!
//! What a client answers in an AUTH exchange (RFC 4954), and what follows the mechanism in the AUTH command, is never given out;
//! [`Command::credentials`] tells the mechanism. Since a line out of place could be such an answer, of a command that is not
//! known nothing but that it was there is told ([`Verb::Other`]).
//!
//! Limits: [`COMMAND_LEN_MAX`] octets of a line, 1024 of a reply's line and 4096 of its text; longer ones are cut.
//! [`RECIPIENT_COUNT_MAX`] recipients of a mail are kept, [`MAIL_COUNT_MAX`] mails that wait for replies, and
//! [`PENDING_COUNT_MAX`] commands; beyond, replies have no number until the next turn. [`OTHER_COUNT_MAX`] unknown commands in a
//! row are a fault.
//!
//! After a gap it goes on where a command or a reply begins: behind the gap at once if a command or a code stands
//! there, and at the next line otherwise. The command behind a gap has its reply if exactly one reply came for what is
//! missing; other replies have no number until the next turn. A gap in a mail's content is counted as content; if its
//! end was in it, the server's reply ends it. Of one direction alone, what it has is told.
//!
//! A reply whose code is followed by neither space nor hyphen is malformed ([`Reply::is_malformed`]), and so is one
//! with lines that have no code. Other lines of text that are no reply are left out, and replies have no number until
//! the next turn; more than 16 of them in a row are a fault.
//!
//! The end of content is CR LF, dot, CR LF (section 4.1.1.4); a client whose DATA command ends with a bare LF may end it that
//! way.

mod command;
mod content;
mod envelope;
mod message;
mod parser;
mod probe;

pub use command::Verb;
pub use envelope::Recipient;
pub use message::{Command, Greeting, Mail, Message, Reply};
pub use parser::SmtpParser;
pub(super) use probe::{Words, greeting_words};

use super::Protocol;

/// Octets of a command's line that are looked at. RFC 4954 section 4 asks for 12,288 in an AUTH exchange, of which nothing is
/// wanted; other commands are far below (RFC 5321 section 4.5.3.1).
pub const COMMAND_LEN_MAX: usize = 2048;

/// Octets of an address that are kept for [`Mail`].
pub const ADDRESS_LEN_MAX: usize = 512;

/// Recipients of a mail that are kept; RFC 5321 section 4.5.3.1.8 asks servers to take 100.
pub const RECIPIENT_COUNT_MAX: usize = 128;

/// Mails that wait for the reply to their content.
pub const MAIL_COUNT_MAX: usize = 4;

/// Commands that wait for replies.
pub const PENDING_COUNT_MAX: usize = 512;

/// Unknown commands in a row.
pub const OTHER_COUNT_MAX: u8 = 32;

/// `smtp`: ports 25, 587 and 2525; by content on any port.
pub static PROTOCOL: Protocol =
    Protocol::new("smtp").over_streams(&PORTS, Some(probe::probe)).resumed_anywhere_by(probe::search);

pub(super) const PORTS: [u16; 3] = [25, 587, 2525];

/// What a granted STARTTLS leads to: the protocol of this name in the set.
static TLS: Protocol = Protocol::new("tls");
