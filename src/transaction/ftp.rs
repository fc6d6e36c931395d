//! Commands of FTP with their replies.

use std::net::IpAddr;
use std::time::Duration;

use super::data_connections::DataConnections;
use super::digests::media_type;
use super::open::{Copier, HeapLen, Open, Pending, TEXT_LEN_MAX, allocated};
use super::span::Span;
use super::transfer::{FlowOrigin, Transfer, Transferred, last_part};
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::protocols::ftp::{self, DataEnd, Message};
use crate::session::Lack;
use crate::session::{MessageMeta, Role, Text};

crate::message! {
    /// A command of FTP, with its last reply.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.ftp" pub struct Ftp {
        /// Number of the command in its connection, starting at 0.
        pub number: u64,
        /// Name of the user, once the server accepted it.
        pub user: Option<Box<str>>,
        /// The name of the command.
        pub command: Box<str>,
        /// The argument of the command; absent if it could be secret.
        pub argument: Option<Box<str>>,
        /// Time from the command to its last reply.
        pub reply_time: Option<Duration>,
        /// Time of the last reply.
        pub reply_timestamp: Option<Timestamp>,
        /// Code of the last reply.
        pub code: Option<u16>,
        /// Text of the last reply.
        pub reply: Option<Box<str>>,
        /// Length of the file that the server announced.
        pub file_len: Option<u64> [octets],
        /// Offset in the file at which the transfer began.
        pub restart_offset: Option<u64>,
        /// True if the transfer of the command is complete; absent for other commands.
        pub is_transferred: Option<bool>,
        /// Address of the listening end of the data connection; absent if it is that of the server.
        pub data_address: Option<IpAddr>,
        /// Port of the listening end of the data connection.
        pub data_port: Option<u16>,
        /// Role that opens the data connection.
        pub data_opened_by: Option<Role>,
        /// Octets of the file or listing that were captured in the data connection; absent if it had not ended before the next
        /// command, or was not captured.
        pub seen_len: Option<u64> [octets],
        /// Octets of the file that are known to be missing.
        pub missing_len: Option<u64> [octets],
        /// Type of the file by its first octets.
        pub detected_type: Option<&'static str>,
        ..
        /// Name in the last USER command.
        pub named: Option<Box<str>>,
        /// True if the client sent a PASS command.
        pub has_password: bool,
        /// What an anonymous user stated instead of a password.
        pub stated_password: Option<Box<str>>,
        /// Folder of the session, as far as it is known.
        pub folder: Option<Box<str>>,
        /// The data connection.
        pub(crate) transferred: Option<Box<Transferred>>,
    }
}

state! { struct Ftp {
    number, user, command, argument, reply_time, reply_timestamp, code, reply, file_len, restart_offset, is_transferred,
    data_address, data_port, data_opened_by, seen_len, missing_len, detected_type as media_type, named, has_password, stated_password,
    folder,    transferred,
} }

/// The open commands of a connection.
#[derive(Debug, Default)]
pub(super) struct FtpOpen {
    open: Open<Ftp>,
    /// The command that was answered last: its transfer and data connection are reported behind the reply.
    answered: Option<Pending<Ftp>>,
    /// The name in the last USER, and the one that was accepted.
    named: Option<Box<str>>,
    user: Option<Box<str>>,
    /// A PASS command was seen.
    has_password: bool,
    /// What an anonymous user stated instead of a password.
    stated_password: Option<Box<str>>,
    /// The folder of the session, relative to the first one unless it begins with a slash.
    folder: Option<Box<str>>,
}

state! { struct FtpOpen { open, answered, named, user, has_password, stated_password, folder } }

/// Returns a path in a folder. Folders before `..` are removed, and `.` but for the first folder, which is not known; nothing is
/// above the root.
pub(crate) fn join_path(folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for (index, part) in whole.split('/').enumerate() {
        match (part, parts.last()) {
            ("" | ".", _) if index > 0 => {}
            ("..", Some(&"")) => {}
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            (part, _) => parts.push(part),
        }
    }
    if parts == [""] { "/".to_owned() } else { parts.join("/") }
}

/// Returns the path in quotes that begins the reply to PWD; a quotation mark in it is doubled (RFC 959 appendix II).
fn quoted_path(reply: &str) -> Option<String> {
    let mut path = String::new();
    let mut letters = reply.strip_prefix('"')?.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '"' && letters.next_if_eq(&'"').is_none() {
            return Some(path);
        }
        path.push(letter);
    }
    None
}

/// Returns whether a command transfers a file or a listing.
fn is_transfer(verb: Text<'_>) -> bool {
    ftp::TRANSFERS.iter().any(|known| verb.0.eq_ignore_ascii_case(known.as_bytes()))
}

impl HeapLen for Ftp {
    fn heap_len(&self) -> usize {
        self.transferred.as_ref().map_or(0, |_| allocated(size_of::<Transferred>()))
    }
}

impl FtpOpen {
    pub(super) fn heap_len(&self) -> usize {
        let texts = [&self.named, &self.user, &self.stated_password, &self.folder];
        let texts: usize = texts.into_iter().flatten().map(|text| allocated(text.len())).sum();
        self.open.heap_len() + self.answered.as_ref().map_or(0, Pending::heap_len) + texts
    }

    /// Notes the folder that the reply to the last command states or confirms.
    fn change_folder(&mut self) {
        let Some(ftp) = self.answered.as_ref().map(|pending| &pending.content) else { return };
        let current = self.folder.as_deref().unwrap_or(".");
        let folder = match (&*ftp.command.to_ascii_uppercase(), ftp.code) {
            ("CWD", Some(250)) => ftp.argument.as_deref().map(|path| join_path(current, path)),
            ("CDUP", Some(200 | 250)) => Some(join_path(current, "..")),
            ("PWD" | "XPWD", Some(257)) => ftp.reply.as_deref().and_then(quoted_path),
            _ => return,
        };
        self.folder = folder.filter(|folder| folder.len() <= TEXT_LEN_MAX).map(Into::into);
    }

    pub(super) fn message(
        &mut self,
        (connections, control): (&mut DataConnections, FlowOrigin),
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<Ftp>),
    ) {
        let mut copier = Copier::default();
        match message {
            Message::Command(command) => {
                self.end_answered(connections, control, out);
                let argument = copier.optional(command.argument);
                if command.verb.0.eq_ignore_ascii_case(b"USER") {
                    self.named.clone_from(&argument);
                    self.stated_password = None;
                }
                if command.verb.0.eq_ignore_ascii_case(b"PASS") {
                    self.has_password = true;
                    self.stated_password.clone_from(&argument);
                }
                for text in [&self.user, &self.named, &self.stated_password, &self.folder] {
                    copier.count(text.as_deref());
                }
                if is_transfer(command.verb) {
                    let transfer = Transfer {
                        control,
                        number: command.transaction,
                        command: copier.text(command.verb),
                        name: argument.as_deref().and_then(last_part).map(Into::into),
                    };
                    connections.transfer(transfer, meta.timestamp);
                }
                let ftp = Ftp {
                    number: command.transaction,
                    user: self.user.clone(),
                    command: copier.text(command.verb),
                    argument,
                    named: self.named.clone(),
                    has_password: self.has_password,
                    stated_password: self.stated_password.clone(),
                    folder: self.folder.clone(),
                    ..Ftp::default()
                };
                let pending = Pending::new(command.transaction, Span::of(meta), ftp, &copier);
                self.open.push(pending, &mut |evicted| out(with_file(evicted, connections, control)));
            }
            Message::Reply(reply) => {
                self.end_answered(connections, control, out);
                let Some(number) = reply.transaction else { return };
                if reply.code == 230 {
                    self.user.clone_from(&self.named);
                }
                let Some(pending) = self.open.get(number) else { return };
                pending.span.extend(meta);
                pending.content.reply_time = Some(meta.timestamp.saturating_since(pending.span.start));
                pending.content.reply_timestamp = Some(meta.timestamp);
                pending.content.code = Some(reply.code);
                pending.content.reply = Some(copier.text(reply.text));
                pending.add(&copier);
                // A preliminary reply is followed by another one.
                if reply.code >= 200 {
                    self.answered = self.open.take(number);
                }
                self.change_folder();
            }
            Message::DataConnection(connection) => {
                connections.announce(control, meta, connection.end);
                if let Some(ftp) = connection.transaction.and_then(|number| self.get(number)) {
                    ftp.set_data(connection.end);
                }
            }
            Message::Transfer(transfer) => {
                let Some(ftp) = self.get(transfer.transaction) else { return };
                ftp.file_len = transfer.announced_len;
                ftp.restart_offset = transfer.restart_offset;
                ftp.is_transferred = Some(transfer.is_complete);
                if let Some(end) = transfer.data {
                    ftp.set_data(end);
                }
                connections.replied(control, transfer.transaction, transfer.is_complete);
            }
            Message::Greeting(_) => {}
        }
    }

    /// Returns a command that is open, or was answered last.
    fn get(&mut self, number: u64) -> Option<&mut Ftp> {
        let answered = self.answered.as_mut().filter(|pending| pending.number == number);
        answered.or_else(|| self.open.get(number)).map(|pending| &mut pending.content)
    }

    /// Ends the command that was answered last.
    fn end_answered(
        &mut self,
        connections: &DataConnections,
        control: FlowOrigin,
        out: &mut dyn FnMut(Pending<Ftp>),
    ) {
        self.answered.take().into_iter().for_each(|pending| out(with_file(pending, connections, control)));
    }

    pub(super) fn finish(
        &mut self,
        (connections, control): (&mut DataConnections, FlowOrigin),
        out: &mut dyn FnMut(Pending<Ftp>),
    ) {
        self.end_answered(connections, control, out);
        for mut pending in self.open.take_all() {
            pending.lack(if pending.content.code.is_none() { Lack::Response } else { Lack::End });
            out(with_file(pending, connections, control));
        }
        connections.close(control);
    }
}

/// Returns a command that ends, with the file that it transferred.
fn with_file(mut pending: Pending<Ftp>, connections: &DataConnections, control: FlowOrigin) -> Pending<Ftp> {
    if let Some(file) = connections.file(control, pending.number) {
        if file.missing_len > 0 {
            pending.lack(Lack::Body);
        }
        pending.content.set_file(file);
    }
    pending
}

impl Ftp {
    const fn set_data(&mut self, end: DataEnd) {
        (self.data_address, self.data_port) = (end.address, Some(end.port));
        self.data_opened_by = Some(end.opened_by);
    }

    fn set_file(&mut self, file: Transferred) {
        (self.seen_len, self.missing_len) = (Some(file.seen_len), Some(file.missing_len));
        self.detected_type = file.detected_type;
        self.transferred = Some(Box::new(file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined() {
        for (folder, path, expected) in [
            (".", "robots.txt", "./robots.txt"),
            ("/pub", "a/../b", "/pub/b"),
            ("/pub", "/etc//passwd", "/etc/passwd"),
            ("/", "x", "/x"),
            ("/pub", "..", "/"),
            ("/pub", "../../x", "/x"),
            ("/samba", "./x", "/samba/x"),
            (".", "./x", "./x"),
            (".", "../x", "x"),
            (".", "..", ""),
            ("", "x", "/x"),
            ("./a", "../b/..", "."),
            ("..", "../x", "../../x"),
        ] {
            assert_eq!(join_path(folder, path), expected);
        }
    }

    #[test]
    fn the_path_of_a_reply_is_in_quotes() {
        // From RFC 959 appendix II.
        assert_eq!(quoted_path("\"/usr/dm\" directory created").as_deref(), Some("/usr/dm"));
        assert_eq!(quoted_path("\"/foo\"\"bar\" directory created").as_deref(), Some("/foo\"bar"));
        assert_eq!(quoted_path("/usr/dm"), None);
        assert_eq!(quoted_path("\"/usr"), None);
    }
}
