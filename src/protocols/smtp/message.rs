//! Messages of the SMTP parser.

use super::command::Verb;
use crate::row::{Cell, Column, Group, List, ListOf, Type, Visitor};
use crate::session::{Piece, Text};

crate::messages! {
    /// A message of [`SmtpParser`](super::SmtpParser).
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// The first reply of the server.
        Greeting(Greeting<'m>),
        /// A command of the client.
        Command(Command<'m>),
        /// A reply of the server.
        Reply(Reply<'m>),
        /// A piece of the content of a mail.
        Content(Content<'m>),
        /// Octets of the content of a mail that were not captured.
        Gap(ContentGap),
        /// Summary of a mail: its envelope and result.
        Mail(Mail<'m>),
    }
}

impl<'m> Message<'m> {
    /// Returns the piece of the content of a mail that the message is; the summary of a mail is its end.
    #[inline]
    #[must_use]
    pub const fn piece(&self) -> Option<Piece<'m>> {
        match self {
            Self::Content(content) => Some(Piece::octets(content.mail, content.offset, content.bytes)),
            Self::Gap(gap) => Some(Piece::gap(gap.mail, gap.offset, gap.len)),
            Self::Mail(mail) => Some(Piece::end(mail.mail, mail.content_len, mail.is_complete)),
            _ => None,
        }
    }
}

crate::message! {
    /// The first reply of the SMTP server (RFC 5321 section 4.2, Greeting).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "smtp.greeting" pub struct Greeting<'m> {
        /// The reply code: 220, or 554 or another one from a server that is not available.
        pub code: u16,
        /// The first word of the greeting, which is the server's name.
        pub host: Text<'m>,
        /// The complete text of the greeting, lines joined by LF.
        pub text: Text<'m>,
    }
}

crate::message! {
    /// An SMTP command and its argument.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "smtp.command" pub struct Command<'m> {
        /// Number of the command in its connection.
        pub transaction: u64,
        /// Number of the mail to which the command belongs.
        pub mail: Option<u64>,
        /// The name of the command.
        pub verb: Verb,
        /// The argument of the command. For AUTH, only the mechanism; nothing for MAIL and RCPT, of which the argument is
        /// in `address` and `parameters`.
        pub argument: Option<Text<'m>>,
        /// The address in the path of MAIL or RCPT, without brackets; empty for the null sender.
        pub address: Option<Text<'m>>,
        /// The text after the path of MAIL or RCPT.
        pub parameters: Option<Text<'m>>,
        /// Kind of credentials that the client presents with the command: the mechanism of AUTH in lower case.
        pub credentials: Option<&'static str> [sensitive],
        /// True if the command's line was longer than [`COMMAND_LEN_MAX`](super::COMMAND_LEN_MAX).
        pub is_truncated: bool [sparse],
    }
}

crate::message! {
    /// An SMTP reply (RFC 5321 section 4.2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "smtp.reply" pub struct Reply<'m> {
        /// Number of the command that the reply answers; `None` if it is unknown. DATA has two replies, and the AUTH
        /// command several.
        pub transaction: Option<u64>,
        /// Number of the mail to which the reply belongs.
        pub mail: Option<u64>,
        /// The reply code of three digits.
        pub code: u16,
        /// The text of the reply, lines joined by LF. Empty if AUTH or an unknown command was refused, because the text may
        /// repeat the credentials.
        pub text: Text<'m>,
        /// True if the text of the reply was truncated.
        pub is_truncated: bool [sparse],
        /// True if a code of the reply is followed by neither a space nor a hyphen, so that the text begins with that
        /// octet; or if a middle line has no code.
        pub is_malformed: bool [sparse],
    }
}

/// A piece of the content of a mail, without the dots added for transparency (RFC 5321 section 4.5.2). Its length
/// depends on the captured segments.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Content<'m> {
    /// Number of the mail in its connection.
    pub mail: u64,
    /// Number of octets of the content before this piece, including missing ones.
    pub offset: u64,
    /// The octets of this piece; written as their number, `len`.
    pub bytes: &'m [u8],
}

crate::table! {
    /// A piece of the content of a mail, without the dots added for transparency (RFC 5321 section 4.5.2). Its length
    /// depends on the captured segments.
    impl['m] "smtp.content" for Content<'m> as content {
        /// Number of the mail in its connection.
        "mail": u64 = content.mail;
        /// Number of octets of the content before this piece, including missing ones.
        "offset": u64 [octets] = content.offset;
        /// Number of octets of this piece.
        "len": usize [octets] = content.bytes.len();
    }
}

crate::message! {
    /// Octets of the content of a mail that were not captured.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "smtp.gap" pub struct ContentGap {
        /// Number of the mail in its connection.
        pub mail: u64,
        /// Number of octets of the content before the gap.
        pub offset: u64,
        /// Number of octets of the content that are missing in this gap. Zero if the gap began before the content, so
        /// that it is unknown how many octets of the content are missing.
        pub len: u64 [octets],
    }
}

crate::message! {
    /// The envelope of an SMTP mail, and its result.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "smtp.mail" pub struct Mail<'m> {
        /// Number of the mail in its connection.
        pub mail: u64,
        /// The reverse path of the mail, the address in MAIL; empty for the null sender.
        pub reverse_path: Text<'m>,
        /// The first recipients of the mail, in the order of their RCPT commands.
        pub recipients: &'m [Recipient],
        /// Number of RCPT commands for the mail.
        pub recipient_count: u32,
        /// The length of the mail in octets that the client declared with SIZE.
        pub declared_len: Option<u64> [octets],
        /// Number of octets of the mail's content, without the dots added for transparency.
        pub content_len: u64 [octets],
        /// True if all of the mail's content and all of its commands were captured.
        pub is_complete: bool,
        /// The code of the reply to the content, or to a DATA command that was refused; in LMTP, of the first positive
        /// reply, or else of the last one. `None` if no reply was captured.
        pub code: Option<u16>,
        /// True if `code` is positive: the server accepted the mail for at least one recipient.
        pub is_accepted: Option<bool>,
    }
}

/// A recipient of a mail, and the last reply about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recipient {
    /// The recipient's address, as sent; truncated to [`ADDRESS_LEN_MAX`](super::ADDRESS_LEN_MAX) octets.
    pub address: Vec<u8>,
    /// The code of the reply to RCPT; in LMTP, of the reply to the content for this recipient. `None` if it was not
    /// captured.
    pub code: Option<u16>,
}

impl Recipient {
    /// Returns whether the server accepted the recipient, according to the last reply about it.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.code.is_some_and(is_success)
    }
}

crate::table! {
    /// A recipient of a mail, and the last reply about it.
    impl "smtp.recipient" for Recipient as recipient {
        /// The recipient's address, as sent.
        "address": Text<'static> => Text(&recipient.address);
        /// The code of the last reply about the recipient.
        "code": Option<u16> = recipient.code;
    }
}

impl Cell for &[Recipient] {
    const TYPE: Type = ListOf::<Group<Recipient>>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter().map(Group)).visit(column, visitor);
    }
}

/// Returns whether a reply code is positive (RFC 5321 section 4.2.1).
pub(super) const fn is_success(code: u16) -> bool {
    matches!(code, 200..=299)
}
