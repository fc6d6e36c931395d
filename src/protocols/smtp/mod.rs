//! SMTP (RFC 5321): greeting, commands with their replies, and the envelope of each mail; LMTP (RFC 2033) likewise.
//!
//! The content of mails is reported in pieces, as it arrives, and never kept. After a granted STARTTLS (RFC 3207), the
//! connection changes to TLS when a TLS record follows. If text follows, as in captures that were decrypted, parsing
//! continues, and so does the numbering of commands.
//!
//! A program can log mails with these messages, or find rejected ones. In this capture, the server rejects one
//! recipient:
//!
//! ```
//! use flowgauge::protocols::smtp::Message as Smtp;
//! use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, on_message};
//!
//! let mut rejections = Vec::new();
//! let sink = on_message::<Standard>(|_, _, message| match message {
//!     Message::Smtp(Smtp::Reply(reply)) if reply.code >= 500 => rejections.push(reply.code),
//!     _ => {}
//! });
//! let mut source = FileSource::open("examples/data/mail.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(rejections, [550]);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! | message | when |
//! |---|---|
//! | [`Message::Greeting`] | the server's first reply |
//! | [`Message::Command`] | a command; pipelining (RFC 2920) and BDAT (RFC 3030) are supported |
//! | [`Message::Reply`] | a reply, with the number of its command |
//! | [`Message::Content`] | octets of a mail's content, without the dots added for transparency (section 4.5.2) |
//! | [`Message::Gap`] | octets of a mail's content are missing |
//! | [`Message::Mail`] | the reply to a mail's content was received, or the connection ended before: summary of its envelope |
//!
//! `transaction` counts commands and matches replies to them; `mail` counts MAIL commands, and is set in all messages
//! of a mail. Content is reported only between the MAIL command of its mail and the summary: without the command, it
//! has no number.
//!
//! The responses of a client in an AUTH exchange (RFC 4954), and the text after the mechanism in the AUTH command, are
//! never reported; [`Command::credentials`] is the mechanism. Because a misplaced line could be such a response, only
//! the presence of an unknown command is reported ([`Verb::Other`]).
//!
//! Limits: [`COMMAND_LEN_MAX`] octets of a line, 1024 of a reply's line and 4096 of its text; longer ones are
//! truncated. [`RECIPIENT_COUNT_MAX`] recipients of a mail are kept, [`MAIL_COUNT_MAX`] mails that wait for replies,
//! and [`PENDING_COUNT_MAX`] commands; beyond that, replies have no number until the next turn. More than
//! [`OTHER_COUNT_MAX`] unknown commands in a row are a fault.
//!
//! After a gap, parsing continues at the next command or reply: directly after the gap if a command or a code begins
//! there, otherwise at the next line. The command after a gap is matched to its reply if exactly one reply was received
//! for the missing octets; other replies have no number until the next turn. A gap in a mail's content is counted as
//! content; if the end of the content was in the gap, the server's reply ends it. If only one direction was captured,
//! its messages are reported.
//!
//! A reply whose code is followed by neither space nor hyphen is malformed ([`Reply::is_malformed`]), and so is one
//! with lines that have no code. Other lines that are not replies are skipped, and replies have no number until the
//! next turn; more than 16 of them in a row are a fault.
//!
//! The end of content is CR LF, dot, CR LF (section 4.1.1.4); a client whose DATA command ends with a bare LF may end
//! the content with bare LFs as well.

mod command;
mod content;
mod envelope;
mod message;
mod parser;
mod probe;

pub use command::Verb;

pub use message::{Command, Content, ContentGap, Greeting, Mail, Message, Recipient, Reply};
pub use parser::SmtpParser;
pub(super) use probe::{Words, greeting_words};

use crate::session::{OctetSet, Protocol};

/// Maximum number of octets of a command's line that are parsed. RFC 4954 section 4 requires 12,288 in an AUTH
/// exchange, which is not parsed; other commands are far shorter (RFC 5321 section 4.5.3.1).
pub const COMMAND_LEN_MAX: usize = 2048;

/// Maximum number of octets of an address that are kept for [`Mail`].
pub const ADDRESS_LEN_MAX: usize = 512;

/// Maximum number of recipients of a mail that are kept; RFC 5321 section 4.5.3.1.8 requires servers to accept 100.
pub const RECIPIENT_COUNT_MAX: usize = 128;

/// Maximum number of mails that wait for the reply to their content.
pub const MAIL_COUNT_MAX: usize = 4;

/// Maximum number of commands that wait for replies; beyond that, replies are not matched to commands.
pub const PENDING_COUNT_MAX: usize = 512;

/// Maximum number of unknown commands in a row; more are a fault.
pub const OTHER_COUNT_MAX: u8 = 32;

/// Protocol `smtp`: recognized on ports 25, 587 and 2525, and by content on any port.
pub static PROTOCOL: Protocol = Protocol::new("smtp")
    .in_zeek("smtp")
    .in_eve("smtp")
    .over_streams(&probe::PORTS, Some(probe::probe))
    .resumed_anywhere_by(probe::search)
    .streams_begin_with(
        OctetSet::LETTERS
            .and(OctetSet::range(b'1'..=b'5'))
            .and(OctetSet::range(b'\t'..=b'\r'))
            .and(OctetSet::of(b" ")),
    )
    .with_kinds(&["smtp", "mail"])
    .leading_on()
    .with_limits("lines of 2 KiB, 128 recipients (512 octets each), 4 pending mails, 512 pending commands")
    .with_standards("RFC 5321, 2033, 2920, 3030, 3207, 4954");

/// Protocol that follows a granted STARTTLS: the protocol of this name in the driver's set of protocols.
static TLS: Protocol = Protocol::new("tls");
