//! Messages of the FTP parser.

use std::net::IpAddr;

use crate::row::cells;
use crate::session::{Role, Text};

crate::messages! {
    /// A message of [`FtpParser`](super::FtpParser).
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// The first reply of the server.
        Greeting(Greeting<'m>),
        /// A command of the client.
        Command(Command<'m>),
        /// A reply of the server.
        Reply(Reply<'m>),
        /// Address and port of the next data connection, which was negotiated.
        DataConnection(DataConnection),
        /// A completed or failed transfer of a file or a listing.
        Transfer(Transfer<'m>),
    }
}

crate::message! {
    /// The first reply of the FTP server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ftp.greeting" pub struct Greeting<'m> {
        /// The reply code: 220, or 120 or 421 from a server that is not ready.
        pub code: u16,
        /// The text of the greeting, lines joined by LF.
        pub text: Text<'m>,
    }
}

crate::message! {
    /// An FTP command (RFC 959 section 4.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ftp.command" pub struct Command<'m> {
        /// Number of the command in its connection.
        pub transaction: u64,
        /// The name of the command, as sent; empty if it cannot be a command.
        pub verb: Text<'m>,
        /// The argument of the command; `None` if it may be secret.
        pub argument: Option<Text<'m>>,
        /// Kind of credentials that were sent with the command: `user_pass` after PASS, `account` after ACCT,
        /// `security_data` after ADAT.
        pub credentials: Option<&'static str> [sensitive],
        /// True if the command's line was longer than [`COMMAND_LEN_MAX`](super::COMMAND_LEN_MAX).
        pub is_truncated: bool [sparse],
    }
}

crate::message! {
    /// An FTP reply (RFC 959 section 4.2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ftp.reply" pub struct Reply<'m> {
        /// Number of the command that the reply answers; `None` if it is unknown.
        pub transaction: Option<u64>,
        /// The reply code of three digits.
        pub code: u16,
        /// The text of the reply, lines joined by LF. Empty if a password or an unknown command was refused, because the
        /// text may repeat that secret.
        pub text: Text<'m>,
        /// True if the text of the reply was truncated.
        pub is_truncated: bool [sparse],
        /// True if the code of the reply is followed by neither a space nor a hyphen: the text begins with that octet.
        pub is_malformed: bool [sparse],
    }
}

crate::message! {
    /// The listening end of an FTP data connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    "ftp.data_end" pub struct DataEnd {
        /// The address of the listening end; `None` for EPSV, where it is the server's address of the control connection.
        pub address: Option<IpAddr>,
        /// The TCP port of the listening end.
        pub port: u16,
        /// The role that opens the data connection: the server in active mode, the client in passive mode.
        pub opened_by: Role,
    }
}

crate::checkpoint::state! { struct DataEnd { address, port, opened_by } }

/// An FTP data connection that is expected from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DataConnection {
    /// Number of the command that requested the data connection, if it is known.
    pub transaction: Option<u64>,
    /// The end at which the data connection is accepted.
    pub end: DataEnd,
}

crate::message! {
    /// A requested FTP transfer, reported with its last reply.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ftp.transfer" pub struct Transfer<'m> {
        /// Number of the command that requested the transfer.
        pub transaction: u64,
        /// The command that requested the transfer, in capitals: RETR, STOR, STOU, APPE, LIST, NLST, MLSD.
        pub verb: &'static str,
        /// The file name of the transfer, as the client sent it; `None` for a listing without a name.
        pub name: Option<Text<'m>>,
        /// Length in octets of the file that the server announced: in the preliminary reply, or in the reply to a preceding
        /// SIZE of the same file name.
        pub announced_len: Option<u64> [octets],
        /// Offset in the file at which the transfer began, set by REST.
        pub restart_offset: Option<u64>,
        /// The listening end of the data connection that was negotiated last.
        pub data: Option<DataEnd>,
        /// The code of the last reply about the transfer.
        pub code: u16,
        /// True if the last reply indicates a complete transfer.
        pub is_complete: bool,
    }
}

crate::table! {
    /// An FTP data connection that is expected from now on.
    impl "ftp.data_connection" for DataConnection as connection {
        /// Number of the command that requested the data connection, if it is known.
        "transaction": Option<u64> = connection.transaction;
        /// The address of the listening end; null for EPSV, where it is the server's address of the control connection.
        "address": Option<IpAddr> = connection.end.address;
        /// The TCP port of the listening end.
        "port": u16 = connection.end.port;
        /// The role that opens the data connection: the server in active mode, the client in passive mode.
        "opened_by": Role = connection.end.opened_by;
    }
}

cells! { group DataEnd; }
