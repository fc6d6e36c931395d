//! What is said of a mail connection.

use super::command::Verb;
use super::envelope::Recipient;
use crate::session::Text;

/// A message of [`SmtpParser`](super::SmtpParser).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "message", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Message<'m> {
    /// The server's first reply.
    Greeting(Greeting<'m>),
    /// A command of the client.
    Command(Command<'m>),
    /// A reply of the server.
    Reply(Reply<'m>),
    /// A mail in summary.
    Mail(Mail<'m>),
}

/// What the server begins with (RFC 5321 section 4.2, Greeting).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Greeting<'m> {
    /// 220, or 554 or another one from a server that is not at service.
    pub code: u16,
    /// The first word, which is the server's name.
    pub host: Text<'m>,
    /// All of the text, lines joined by LF.
    pub text: Text<'m>,
}

/// A command and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Command<'m> {
    /// The number of the command.
    pub transaction: u64,
    /// The number of the mail that it is about.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub mail: Option<u64>,
    /// Which one.
    pub verb: Verb,
    /// What follows; of AUTH the mechanism alone, of MAIL and RCPT nothing, since `address` and `parameters` have it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub argument: Option<Text<'m>>,
    /// The path of MAIL or RCPT without brackets, empty for the null sender.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub address: Option<Text<'m>>,
    /// What follows the path.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub parameters: Option<Text<'m>>,
    /// The kind of credentials that the client presents: the mechanism of AUTH in lower case.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// Whether the line was longer than [`COMMAND_LEN_MAX`](super::COMMAND_LEN_MAX).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_cut: bool,
}

/// A reply (RFC 5321 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Reply<'m> {
    /// The number of the command; none if it is not known. DATA has two replies, commands of an AUTH exchange several.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transaction: Option<u64>,
    /// The number of the mail that it is about.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub mail: Option<u64>,
    /// Three digits.
    pub code: u16,
    /// The text, lines joined by LF; none if AUTH or an unknown command was refused, since it may repeat what was given.
    pub text: Text<'m>,
    /// Whether there was more text.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_cut: bool,
    /// A code that neither a space nor a hyphen follows, so that the text begins with the octet that does; or a line
    /// between without a code.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_malformed: bool,
}

/// A mail's envelope, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Mail<'m> {
    /// Its number.
    pub mail: u64,
    /// The reverse path, empty for the null sender.
    pub reverse_path: Text<'m>,
    /// The first recipients, in the order of their commands.
    pub recipients: &'m [Recipient],
    /// How many RCPT commands there were.
    pub recipient_count: u32,
    /// What the client declared with SIZE.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub declared_len: Option<u64>,
    /// Octets of the content, without the dots that transparency adds.
    pub content_len: u64,
    /// Whether all of the content, and of the commands, was seen.
    pub is_whole: bool,
    /// The reply to the content, or to a DATA command that was refused; in LMTP the first one that says yes, or else the last
    /// one. None if it was not seen.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub code: Option<u16>,
    /// Whether that says yes: the server took it, for one recipient at least.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub is_accepted: Option<bool>,
}
