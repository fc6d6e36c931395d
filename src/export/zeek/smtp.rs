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
    uid: Uid,
    is_tls: bool,
}

impl<'a> Smtp<'a> {
    /// `ends` are the addresses of originator and responder. `is_tls` states that TLS was started.
    pub(super) const fn new(mail: &'a Mail, ends: (IpAddr, IpAddr), uid: Uid, is_tls: bool) -> Self {
        Self { mail, ends, uid, is_tls }
    }

    /// Returns code and text of the last reply: its last line.
    fn last_reply(&self) -> Option<String> {
        let (code, text) = (self.mail.code?, self.mail.reply.as_deref()?);
        Some(format!("{code} {}", text.lines().next_back().unwrap_or_default()))
    }

    /// Returns the way of the mail: the ends of the connection, and the hosts in the Received fields.
    fn path(&self) -> Vec<IpAddr> {
        let mut path = vec![self.ends.1, self.ends.0];
        for address in self.mail.received_from.iter().copied() {
            if path.last() != Some(&address) {
                path.push(address);
            }
        }
        path
    }

    fn fuids(&self) -> List<impl Iterator<Item = Uid> + Clone + use<>> {
        let (uid, number) = (self.uid, self.mail.number);
        List((0..self.mail.part_count).map(move |part| fuid(uid, number, part)))
    }
}

/// Returns the identifier of a part of a mail.
pub(super) fn fuid(uid: Uid, number: u64, part: u32) -> Uid {
    uid.of_file("SMTP", number << 32 | u64::from(part))
}

/// Returns the items of a list, unless it is empty.
fn texts(items: &[Box<str>]) -> Option<List<impl Iterator<Item = &str> + Clone>> {
    (!items.is_empty()).then(|| List(items.iter().map(|item| &**item)))
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
        "rcptto": Option<ListOf<&'a str>> [set] => texts(&row.mail.recipients);
        /// `date`.
        "date": Option<&'a str> => row.mail.date.as_deref();
        /// `from`.
        "from": Option<&'a str> => row.mail.from.as_deref();
        /// `to`; unset if empty.
        "to": Option<ListOf<&'a str>> [set] => texts(&row.mail.to);
        /// `cc`; unset if empty.
        "cc": Option<ListOf<&'a str>> [set] => texts(&row.mail.cc);
        /// `reply_to`.
        "reply_to": Option<&'a str> => row.mail.reply_to.as_deref();
        /// `message_id`.
        "msg_id": Option<&'a str> => row.mail.message_id.as_deref();
        /// `in_reply_to`.
        "in_reply_to": Option<&'a str> => row.mail.in_reply_to.as_deref();
        /// `subject`, as sent.
        "subject": Option<&'a str> => row.mail.subject.as_deref();
        /// `originating_ip`.
        "x_originating_ip": Option<IpAddr> = row.mail.originating_ip;
        /// The last of all Received fields, which was added first.
        "first_received": Option<&'a str> => row.mail.last_received.first().map(|value| &**value);
        /// The Received field before it.
        "second_received": Option<&'a str> => row.mail.last_received.split_first().and_then(|(_, rest)| rest.first()).map(|value| &**value);
        /// `code` and the last line of `reply`.
        "last_reply": Option<String> = row.last_reply();
        /// Addresses of responder and initiator, and those in the Received fields.
        "path": Option<ListOf<IpAddr>> => Some(List(row.path().into_iter()));
        /// `user_agent`.
        "user_agent": Option<&'a str> => row.mail.user_agent.as_deref();
        /// True if TLS was started.
        "tls": bool = row.is_tls;
        /// Identifiers of the parts.
        "fuids": ListOf<Uid> => row.fuids();
    }
}
