//! Commands of FTP with their replies.

use std::net::IpAddr;

use super::lack::Lack;
use super::open::{Copier, Open, Pending};
use super::span::Span;
use crate::base::Timestamp;
use crate::protocols::ftp::{DataEnd, Message};
use crate::session::{MessageMeta, Role};

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
        /// Time of the last reply.
        pub reply_time: Option<Timestamp>,
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
    }
}

/// The open commands of a connection.
#[derive(Debug, Default)]
pub(super) struct FtpOpen {
    open: Open<Ftp>,
    /// The command that was answered last: its transfer and data connection are reported behind the reply.
    answered: Option<Pending<Ftp>>,
    /// The name in the last USER, and the one that was accepted.
    named: Option<Box<str>>,
    user: Option<Box<str>>,
}

impl FtpOpen {
    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<Ftp>),
    ) {
        let mut copier = Copier::default();
        match message {
            Message::Command(command) => {
                self.answered.take().into_iter().for_each(&mut *out);
                let argument = copier.optional(command.argument);
                if command.verb.0.eq_ignore_ascii_case(b"USER") {
                    self.named.clone_from(&argument);
                }
                let ftp = Ftp {
                    number: command.transaction,
                    user: self.user.clone(),
                    command: copier.text(command.verb),
                    argument,
                    ..Ftp::default()
                };
                self.open.push(Pending::new(command.transaction, Span::of(meta), ftp, &copier), out);
            }
            Message::Reply(reply) => {
                self.answered.take().into_iter().for_each(&mut *out);
                let Some(number) = reply.transaction else { return };
                if reply.code == 230 {
                    self.user.clone_from(&self.named);
                }
                let Some(pending) = self.open.get(number) else { return };
                pending.span.extend(meta);
                pending.content.reply_time = Some(meta.timestamp);
                pending.content.code = Some(reply.code);
                pending.content.reply = Some(copier.text(reply.text));
                pending.add(&copier);
                // A preliminary reply is followed by another one.
                if reply.code >= 200 {
                    self.answered = self.open.take(number);
                }
            }
            Message::DataConnection(connection) => {
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
            }
            Message::Greeting(_) => {}
        }
    }

    /// Returns a command that is open, or was answered last.
    fn get(&mut self, number: u64) -> Option<&mut Ftp> {
        let answered = self.answered.as_mut().filter(|pending| pending.number == number);
        answered.or_else(|| self.open.get(number)).map(|pending| &mut pending.content)
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<Ftp>)) {
        self.answered.take().into_iter().for_each(&mut *out);
        for mut pending in self.open.take_all() {
            pending.lack(if pending.content.code.is_none() { Lack::Response } else { Lack::End });
            out(pending);
        }
    }
}

impl Ftp {
    const fn set_data(&mut self, end: DataEnd) {
        (self.data_address, self.data_port) = (end.address, Some(end.port));
        self.data_opened_by = Some(end.opened_by);
    }
}
