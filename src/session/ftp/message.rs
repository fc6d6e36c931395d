//! What is said of a control connection.

use std::net::IpAddr;

use crate::session::{Role, Text};

/// A message of [`FtpParser`](super::FtpParser).
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
    /// Where the next data connection goes.
    DataConnection(DataConnection),
    /// What was transferred.
    Transfer(Transfer<'m>),
}

/// What the server begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Greeting<'m> {
    /// 220, or 120 or 421 from a server that is not ready.
    pub code: u16,
    /// The text, lines joined by LF.
    pub text: Text<'m>,
}

/// A command (RFC 959 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Command<'m> {
    /// Its number.
    pub transaction: u64,
    /// The word, as sent; empty if it cannot be a command.
    pub verb: Text<'m>,
    /// What follows; nothing where it could be secret.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub argument: Option<Text<'m>>,
    /// The kind of credentials that were sent: `user_pass` behind PASS, `account` behind ACCT, `security_data` behind ADAT.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub credentials: Option<&'static str>,
    /// Whether the line was longer than [`COMMAND_LEN_MAX`](super::COMMAND_LEN_MAX).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_cut: bool,
}

/// A reply (RFC 959 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Reply<'m> {
    /// The number of the command; none if it is not known.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transaction: Option<u64>,
    /// Three digits.
    pub code: u16,
    /// The text, lines joined by LF; none if a password or an unknown command was refused, since it may repeat what was given.
    pub text: Text<'m>,
    /// Whether there was more text.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_cut: bool,
    /// A code that neither a space nor a hyphen follows: the text begins with the octet that does.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_malformed: bool,
}

/// An end of a data connection, which its other side opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DataEnd {
    /// The address; none of EPSV, where it is the server's of the control connection.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub address: Option<IpAddr>,
    /// The TCP port.
    pub port: u16,
    /// Who opens the connection to it: the server in active mode, the client in passive mode.
    pub opened_by: Role,
}

/// A data connection that is expected from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DataConnection {
    /// The number of the command, if it is known.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub transaction: Option<u64>,
    /// Where it goes.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub end: DataEnd,
}

/// A transfer that was asked for, when its last reply came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Transfer<'m> {
    /// The number of the command.
    pub transaction: u64,
    /// The command in capitals: RETR, STOR, STOU, APPE, LIST, NLST, MLSD.
    pub verb: &'static str,
    /// The name, as the client wrote it; none of a listing without.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub name: Option<Text<'m>>,
    /// Octets that the server told: in the preliminary reply, or by SIZE of the same name just before.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub told_len: Option<u64>,
    /// Where it began, by REST.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub restart_offset: Option<u64>,
    /// The data connection that was agreed on last.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub data: Option<DataEnd>,
    /// The last reply.
    pub code: u16,
    /// Whether that says that all was transferred.
    pub is_complete: bool,
}
