//! Events of type `ftp`.

use crate::row::{Displayed, Group, List, ListOf, Name};
use crate::session::Role;
use crate::transaction;

/// A command of FTP with its reply in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Ftp<'a> {
    exchange: Exchange<'a>,
}

/// The object `ftp`.
#[derive(Clone, Copy, Debug)]
struct Exchange<'a>(&'a transaction::Ftp);

impl<'a> Ftp<'a> {
    pub(super) const fn new(ftp: &'a transaction::Ftp) -> Self {
        Self { exchange: Exchange(ftp) }
    }
}

impl<'a> Exchange<'a> {
    /// Returns whether the command negotiates a data connection.
    fn is_negotiation(&self) -> bool {
        ["PORT", "EPRT", "PASV", "EPSV"].iter().any(|name| self.0.command.eq_ignore_ascii_case(name))
    }

    fn mode(&self) -> Option<Name> {
        let opened_by = self.0.data_opened_by.filter(|_| self.is_negotiation())?;
        Some(Name(if opened_by == Role::Server { "active" } else { "passive" }))
    }

    fn codes(&self) -> List<impl Iterator<Item = Displayed<u16>> + Clone + use<>> {
        List(self.0.code.into_iter().map(Displayed))
    }

    fn replies(&self) -> List<impl Iterator<Item = &'a str> + Clone + use<'a>> {
        List(self.0.reply.as_deref().into_iter())
    }
}

crate::table! {
    /// Commands of FTP with their last replies.
    impl['a] "eve.ftp" for Ftp<'a> as row {
        /// Command and reply.
        "ftp": Group<Exchange<'a>> = Group(row.exchange);
    }
}

crate::table! {
    /// A command and its last reply.
    impl['a] "eve.ftp.ftp" for Exchange<'a> as row {
        /// `command` in upper case.
        "command": String = row.0.command.to_ascii_uppercase();
        /// `argument`; absent if it could be secret, such as that of PASS.
        "command_data": Option<&'a str> => row.0.argument.as_deref();
        /// Code of the last reply.
        "completion_code": ListOf<Displayed<u16>> [sparse] => row.codes();
        /// Text of the last reply.
        "reply": ListOf<&'a str> [sparse] => row.replies();
        /// `data_port`, for PORT, EPRT, PASV and EPSV.
        "dynamic_port": Option<u16> = row.0.data_port.filter(|_| row.is_negotiation());
        /// `active` if the server opens the data connection, otherwise `passive`; for the same commands.
        "mode": Option<Name> = row.mode();
        /// `yes`, or `no` if no reply was captured.
        "reply_received": Name = Name(if row.0.code.is_some() { "yes" } else { "no" });
        /// Always false.
        "reply_truncated": bool = false;
    }
}
