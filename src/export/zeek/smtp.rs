//! Rows of `smtp.log`.

use std::net::IpAddr;

use crate::export::Uid;
use crate::row::{List, ListOf};
use crate::transaction::Mail;

/// A mail in `smtp.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Smtp<'a> {
    mail: &'a Mail,
    ends: (IpAddr, IpAddr),
    is_tls: bool,
}

impl<'a> Smtp<'a> {
    /// `ends` are the addresses of originator and responder. `is_tls` states that TLS was started.
    pub(super) const fn new(mail: &'a Mail, ends: (IpAddr, IpAddr), is_tls: bool) -> Self {
        Self { mail, ends, is_tls }
    }

    /// Returns code and text of the last reply: its last line.
    fn last_reply(&self) -> Option<String> {
        let (code, text) = (self.mail.code?, self.mail.reply.as_deref()?);
        Some(format!("{code} {}", text.lines().next_back().unwrap_or_default()))
    }

    fn recipients(&self) -> Option<List<impl Iterator<Item = &str> + Clone>> {
        let all = &self.mail.recipients;
        (!all.is_empty()).then(|| List(all.iter().map(|address| &**address)))
    }
}

crate::table! {
    /// Mails over SMTP.
    impl['a] "zeek.smtp" for Smtp<'a> as row {
        /// Number of the mail in the connection, from 1.
        "trans_depth": u64 = row.mail.number.saturating_add(1);
        /// `helo`.
        "helo": Option<&'a str> => row.mail.helo.as_deref();
        /// `sender`; unset for the null sender.
        "mailfrom": Option<&'a str> => Some(&*row.mail.sender).filter(|sender| !sender.is_empty());
        /// `recipients`.
        "rcptto": Option<ListOf<&'a str>> [set] => row.recipients();
        /// Unset: the content of mails is not parsed.
        "date": Option<&'a str> = None;
        /// Unset.
        "from": Option<&'a str> = None;
        /// Unset.
        "to": Option<ListOf<&'a str>> [set] = None;
        /// Unset.
        "cc": Option<ListOf<&'a str>> [set] = None;
        /// Unset.
        "reply_to": Option<&'a str> = None;
        /// Unset.
        "msg_id": Option<&'a str> = None;
        /// Unset.
        "in_reply_to": Option<&'a str> = None;
        /// Unset.
        "subject": Option<&'a str> = None;
        /// Unset.
        "x_originating_ip": Option<IpAddr> = None;
        /// Unset.
        "first_received": Option<&'a str> = None;
        /// Unset.
        "second_received": Option<&'a str> = None;
        /// `code` and the last line of `reply`.
        "last_reply": Option<String> = row.last_reply();
        /// Addresses of responder and initiator.
        "path": Option<ListOf<IpAddr>> => Some(List([row.ends.1, row.ends.0]));
        /// Unset.
        "user_agent": Option<&'a str> = None;
        /// True if TLS was started.
        "tls": bool = row.is_tls;
        /// Always empty.
        "fuids": ListOf<Uid> = List(std::iter::empty());
    }
}
