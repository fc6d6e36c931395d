//! Mails over SMTP.

use super::lack::Lack;
use super::open::{Copier, Pending};
use super::span::Span;
use crate::base::Timestamp;
use crate::protocols::smtp::{Message, Verb};
use crate::session::{MessageMeta, Text};

crate::message! {
    /// A mail over SMTP: its envelope and result.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.mail" pub struct Mail {
        /// Number of the mail in its connection, starting at 0.
        pub number: u64,
        /// Argument of the last HELO, EHLO or LHLO.
        pub helo: Option<Box<str>>,
        /// The reverse path of the mail; empty for the null sender.
        pub sender: Box<str>,
        /// The first recipients of the mail.
        pub recipients: Vec<Box<str>>,
        /// Last reply codes about these recipients; null if no reply was captured.
        pub recipient_codes: Vec<Option<u16>>,
        /// Number of RCPT commands for the mail.
        pub recipient_count: u32,
        /// The length of the mail that the client declared.
        pub declared_len: Option<u64> [octets],
        /// Octets of the content of the mail, without the dots added for transparency.
        pub content_len: u64 [octets],
        /// Reply code of the mail.
        pub code: Option<u16>,
        /// Text of the last reply to the mail.
        pub reply: Option<Box<str>>,
        /// True if the server accepted the mail for at least one recipient.
        pub is_accepted: Option<bool>,
    }
}

/// What precedes the mails of a connection.
#[derive(Debug, Default)]
pub(super) struct MailOpen {
    helo: Option<Box<str>>,
    /// Number of the mail whose commands were seen last, and when they began.
    current: Option<(u64, Timestamp)>,
    /// The last reply, and the mail to which it belongs.
    reply: Option<(Option<u64>, Box<str>)>,
}

impl MailOpen {
    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<Mail>),
    ) {
        let mut copier = Copier::default();
        match message {
            Message::Command(command) => {
                if matches!(command.verb, Verb::Helo | Verb::Ehlo | Verb::Lhlo) {
                    self.helo = copier.optional(command.argument);
                }
                if let Some(mail) = command.mail
                    && self.current.is_none_or(|(current, _)| current != mail)
                {
                    self.current = Some((mail, meta.timestamp));
                }
            }
            Message::Reply(reply) => self.reply = Some((reply.mail, copier.text(reply.text))),
            Message::Mail(mail) => {
                let addresses = mail.recipients.iter().map(|recipient| copier.text(Text(&recipient.address)));
                let recipients = addresses.collect();
                let reply = self.reply.take().filter(|(of, _)| *of == Some(mail.mail)).map(|(_, text)| text);
                let content = Mail {
                    number: mail.mail,
                    helo: self.helo.clone(),
                    sender: copier.text(mail.reverse_path),
                    recipients,
                    recipient_codes: mail.recipients.iter().map(|recipient| recipient.code).collect(),
                    recipient_count: mail.recipient_count,
                    declared_len: mail.declared_len,
                    content_len: mail.content_len,
                    code: mail.code,
                    reply,
                    is_accepted: mail.is_accepted,
                };
                let mut pending = Pending::new(mail.mail, Span::of(meta), content, &copier);
                if let Some((_, start)) = self.current.take().filter(|(current, _)| *current == mail.mail) {
                    pending.span.start = start;
                }
                if mail.code.is_none() {
                    pending.lack(Lack::Response);
                } else if !mail.is_complete {
                    pending.lack(Lack::Body);
                }
                out(pending);
            }
            Message::Greeting(_) | Message::Content(_) | Message::Gap(_) => {}
        }
    }
}
