//! Rows of `ftp.log`.

use std::net::IpAddr;

use super::http::mime_type;
use crate::export::Uid;
use crate::session::Role;
use crate::transaction::{self, join_path};

/// The commands that are logged.
const LOGGED: [&str; 10] = ["APPE", "DELE", "RETR", "STOR", "STOU", "ACCT", "PORT", "PASV", "EPRT", "EPSV"];

/// The commands among these whose argument is a file.
const OF_FILES: [&str; 5] = ["APPE", "DELE", "RETR", "STOR", "STOU"];

/// The commands among these that announce a data connection.
const ANNOUNCING: [&str; 4] = ["PORT", "PASV", "EPRT", "EPSV"];

/// A command of FTP with its reply in `ftp.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Ftp<'a> {
    ftp: &'a transaction::Ftp,
    /// Addresses of the client and the server.
    ends: (IpAddr, IpAddr),
    seed: u64,
}

/// Returns the identifier of the file of a sender in a data connection.
pub(super) fn fuid(uid: Uid, role: Role) -> Uid {
    uid.of_file("FTP_DATA", role.index() as u64)
}

impl<'a> Ftp<'a> {
    /// Returns the row of a command; `None` for the commands that Zeek does not log by default. `ends` are the addresses of
    /// client and server, and `seed` is that of identifiers.
    pub(super) fn new(ftp: &'a transaction::Ftp, ends: (IpAddr, IpAddr), seed: u64) -> Option<Self> {
        LOGGED.contains(&&*ftp.command.to_ascii_uppercase()).then_some(Self { ftp, ends, seed })
    }

    fn arg(&self) -> Option<String> {
        let argument = self.ftp.argument.as_deref().filter(|argument| !argument.is_empty())?;
        if !OF_FILES.contains(&&*self.ftp.command.to_ascii_uppercase()) {
            return Some(argument.to_owned());
        }
        let host = match self.ends.1 {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let path = join_path(self.ftp.folder.as_deref().unwrap_or("."), argument);
        let slash = if path.starts_with('/') { "" } else { "/" };
        Some(format!("ftp://{host}{slash}{path}"))
    }

    fn fuid(&self) -> Option<Uid> {
        let file = self.ftp.transferred.as_deref()?;
        Some(fuid(Uid::of_origin(&file.flow, self.seed), file.role))
    }

    /// Returns the ends of the data connection that the command announces: the one that opens it, then address and port of the
    /// one that listens.
    fn data(&self) -> Option<(bool, IpAddr, IpAddr, u16)> {
        if !ANNOUNCING.contains(&&*self.ftp.command.to_ascii_uppercase()) {
            return None;
        }
        let (client, server) = self.ends;
        let port = self.ftp.data_port?;
        let is_passive = self.ftp.data_opened_by == Some(Role::Client);
        let (opener, listener) = if is_passive { (client, server) } else { (server, client) };
        Some((is_passive, opener, self.ftp.data_address.unwrap_or(listener), port))
    }
}

crate::table! {
    /// Commands of FTP that concern files or data connections, with their replies.
    impl['a] "zeek.ftp" for Ftp<'a> as row {
        /// Name in the last USER command; `<unknown>` without one.
        "user": &'a str => row.ftp.named.as_deref().unwrap_or("<unknown>");
        /// What the users `anonymous` and `ftp` state; `<hidden>` if another user sent a password, which is never written.
        "password": Option<&'a str> => row.ftp.stated_password.as_deref().or(row.ftp.has_password.then_some("<hidden>"));
        /// `command` in upper case.
        "command": Option<String> = Some(row.ftp.command.to_ascii_uppercase());
        /// `argument`; for files a URL with the path from the folder of the session, as far as it is known.
        "arg": Option<String> = row.arg();
        /// `detected_type` under Zeek's name.
        "mime_type": Option<&'a str> = row.ftp.detected_type.map(mime_type);
        /// `file_len`.
        "file_size": Option<u64> = row.ftp.file_len;
        /// `code`.
        "reply_code": Option<u64> = row.ftp.code.map(u64::from);
        /// The last line of `reply`.
        "reply_msg": Option<&'a str> => row.ftp.reply.as_deref().map(|text| text.lines().next_back().unwrap_or_default());
        /// True if the client opens the data connection that the command announces.
        "data_channel.passive": Option<bool> = row.data().map(|(is_passive, ..)| is_passive);
        /// Address of the end that opens the data connection.
        "data_channel.orig_h": Option<IpAddr> = row.data().map(|(_, opener, ..)| opener);
        /// Address of the end that listens.
        "data_channel.resp_h": Option<IpAddr> = row.data().map(|(_, _, listener, _)| listener);
        /// Port of the end that listens.
        "data_channel.resp_p": Option<u16> = row.data().map(|(.., port)| port);
        /// Identifier of the file in `files.log`, if the data connection ended before the next command.
        "fuid": Option<Uid> = row.fuid();
    }
}
