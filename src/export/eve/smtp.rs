//! Events of type `smtp`.

use std::fmt;
use std::net::IpAddr;

use crate::row::{Displayed, Group, List, ListOf};
use crate::transaction::Mail;

/// A mail in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Smtp<'a> {
    mail: &'a Mail,
}

/// The object `smtp`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope<'a>(&'a Mail);

/// The object `email`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a>(&'a Mail);

/// An address in angle brackets.
#[derive(Clone, Copy, Debug)]
struct Path<'a>(&'a str);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.0)
    }
}

impl<'a> Smtp<'a> {
    pub(super) const fn new(mail: &'a Mail) -> Self {
        Self { mail }
    }

    pub(super) const fn envelope(self) -> Envelope<'a> {
        Envelope(self.mail)
    }

    pub(super) const fn header(self) -> Header<'a> {
        Header(self.mail)
    }
}

/// Returns texts as a list.
fn texts(all: &[Box<str>]) -> List<impl Iterator<Item = &str> + Clone> {
    List(all.iter().map(|text| &**text))
}

impl<'a> Envelope<'a> {
    fn recipients(&self) -> List<impl Iterator<Item = Displayed<Path<'a>>> + Clone + use<'a>> {
        List(self.0.recipients.iter().map(|recipient| Displayed(Path(recipient))))
    }
}

impl<'a> Header<'a> {
    fn attachments(&self) -> List<impl Iterator<Item = &'a str> + Clone + use<'a>> {
        List(self.0.attachments.iter().filter_map(|part| part.name.as_deref()))
    }
}

crate::table! {
    /// Mails over SMTP.
    impl['a] "eve.smtp" for Smtp<'a> as row {
        /// Envelope of the mail.
        "smtp": Group<Envelope<'a>> = Group(row.envelope());
        /// Header of the mail; absent without one of its fields. `status` is not written.
        "email": Group<Header<'a>> [sparse] = Group(row.header());
    }
}

crate::table! {
    /// Envelope of a mail.
    impl['a] "eve.smtp.smtp" for Envelope<'a> as envelope {
        /// `helo`.
        "helo": Option<&'a str> => envelope.0.helo.as_deref();
        /// `sender` in angle brackets.
        "mail_from": Displayed<Path<'a>> => Displayed(Path(&envelope.0.sender));
        /// `recipients` in angle brackets.
        "rcpt_to": ListOf<Displayed<Path<'a>>> [sparse] => envelope.recipients();
    }
}

crate::table! {
    /// Fields of the header of a mail: as sent, unfolded.
    impl['a] "eve.smtp.email" for Header<'a> as header {
        /// `from`.
        "from": Option<&'a str> => header.0.from.as_deref();
        /// `to`.
        "to": ListOf<&'a str> [sparse] => texts(&header.0.to);
        /// `cc`.
        "cc": ListOf<&'a str> [sparse] => texts(&header.0.cc);
        /// Names of `attachments`.
        "attachment": ListOf<&'a str> [sparse] => header.attachments();
        /// `subject`; encoded words are not decoded.
        "subject": Option<&'a str> => header.0.subject.as_deref();
        /// `message_id`.
        "message_id": Option<&'a str> => header.0.message_id.as_deref();
        /// `date`.
        "date": Option<&'a str> => header.0.date.as_deref();
        /// `received`: the first two.
        "received": ListOf<&'a str> [sparse] => texts(&header.0.received);
        /// `reply_to`.
        "reply_to": Option<&'a str> => header.0.reply_to.as_deref();
        /// `in_reply_to`.
        "in_reply_to": Option<&'a str> => header.0.in_reply_to.as_deref();
        /// `originating_ip`.
        "x_originating_ip": Option<IpAddr> = header.0.originating_ip;
    }
}
