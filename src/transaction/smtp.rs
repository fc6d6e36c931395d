//! Mails over SMTP, and their parts.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::file::{File, OpenFile, ended};
use super::mail::{Event, Header, Part, Reader, addresses};
use super::open::{Copier, HeapLen, Open, Pending, allocated};
use super::span::Span;
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::protocols::smtp::{MAIL_COUNT_MAX, Message, Verb};
use crate::session::{Lack, MessageMeta, Piece, PieceContent, Role, Text};

/// Maximum number of attachments that are listed.
const ATTACHMENTS_MAX: usize = 32;

/// Maximum number of mails of a flow whose content is open: those that the parser keeps, and as many that were aborted.
const CONTENTS_MAX: usize = 2 * MAIL_COUNT_MAX;

/// Maximum number of mails of which the start is known.
const STARTS_MAX: usize = CONTENTS_MAX;

crate::message! {
    /// A mail over SMTP: its envelope, result and header. Texts of the header are as sent, unfolded; a field that the
    /// header does not have is absent.
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
        /// Value of the Date field.
        pub date: Option<Box<str>>,
        /// Value of the From field.
        pub from: Option<Box<str>>,
        /// Addresses in the To field.
        pub to: Vec<Box<str>> [sparse],
        /// Addresses in the Cc field.
        pub cc: Vec<Box<str>> [sparse],
        /// Value of the Reply-To field.
        pub reply_to: Option<Box<str>>,
        /// Value of the Message-ID field.
        pub message_id: Option<Box<str>>,
        /// Value of the In-Reply-To field.
        pub in_reply_to: Option<Box<str>>,
        /// Value of the Subject field; encoded words (RFC 2047) are not decoded.
        pub subject: Option<Box<str>>,
        /// Values of the first two Received fields: those of the servers that received the mail last.
        pub received: Vec<Box<str>> [sparse],
        /// Value of the User-Agent field, or else of the X-Mailer field.
        pub user_agent: Option<Box<str>>,
        /// Address in the X-Originating-IP field.
        pub originating_ip: Option<IpAddr>,
        /// The first 32 parts of the mail with a name or the disposition of an attachment.
        pub attachments: Vec<Attachment> [sparse],
        /// Reply code of the mail.
        pub code: Option<u16>,
        /// Text of the last reply to the mail.
        pub reply: Option<Box<str>>,
        /// True if the server accepted the mail for at least one recipient.
        pub is_accepted: Option<bool>,
        ..
        /// Values of the last two Received fields, the last one first: those of the servers that received the mail first.
        pub last_received: Vec<Box<str>>,
        /// Addresses of the hosts in the Received fields, at most 64.
        pub received_from: Vec<IpAddr>,
        /// Number of parts.
        pub part_count: u32,
    }
}

crate::message! {
    /// A part of a mail with a name or the disposition of an attachment.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.attachment" pub struct Attachment {
        /// Name of the part, without folders.
        pub name: Option<Box<str>>,
        /// Value of the Content-Type field of the part, or the default, `text/plain` or `message/rfc822`.
        pub content_type: Box<str>,
    }
}

state! { struct Mail {
    number, helo, sender, recipients, recipient_codes, recipient_count, declared_len, content_len, date, from, to, cc,
    reply_to, message_id, in_reply_to, subject, received, user_agent, originating_ip, attachments, code, reply,
    is_accepted, last_received, received_from, part_count,
} }
state! { struct Attachment { name, content_type } }

crate::row::cells! { group Attachment; }

/// What precedes the mails of a connection, and the content of those that have not ended.
#[derive(Debug, Default)]
pub(super) struct MailOpen {
    helo: Option<Box<str>>,
    /// The mails that have not ended, oldest first, and when their commands began.
    starts: VecDeque<(u64, Timestamp)>,
    /// The last reply, and the mail to which it belongs.
    reply: Option<(Option<u64>, Box<str>)>,
    contents: Open<OpenContent>,
}

/// Content of a mail that has not ended.
#[derive(Debug, Default)]
struct OpenContent {
    reader: Reader,
    /// Columns of the header.
    mail: Mail,
    part: Option<Pending<OpenFile>>,
    /// Number of octets that were read.
    read_len: u64,
    /// True if the mail has more parts or attachments than are reported.
    is_limited: bool,
}

state! {
    struct MailOpen { helo, starts, reply, contents }
    if |open| open.starts.len() <= STARTS_MAX
}
state! { struct OpenContent { reader, mail, part, read_len, is_limited } }

impl HeapLen for OpenContent {
    fn heap_len(&self) -> usize {
        // The texts of the columns are counted, and their lists are short.
        let part = self.part.as_ref().map_or(0, Pending::heap_len);
        self.reader.heap_len() + part + self.mail.heap_len()
    }
}

impl HeapLen for Mail {
    fn heap_len(&self) -> usize {
        let text_count = self.to.capacity() + self.cc.capacity();
        allocated(16 * text_count)
            + allocated(16 * (self.received.capacity() + self.last_received.capacity()))
            + allocated(size_of::<Attachment>() * self.attachments.capacity())
            + allocated(size_of::<IpAddr>() * self.received_from.capacity())
    }
}

/// The end of a content of which more octets may follow.
const CUT: PieceContent<'static> = PieceContent::End { is_complete: false };

/// What ended.
#[allow(clippy::large_enum_variant, reason = "it is passed on at once")]
pub(super) enum Ended {
    Mail(Pending<Mail>),
    File(Pending<File>),
}

/// Receives what ended.
type Out<'o> = &'o mut dyn FnMut(Ended);

impl MailOpen {
    pub(super) fn heap_len(&self) -> usize {
        let texts = [self.helo.as_deref(), self.reply.as_ref().map(|(_, text)| &**text)];
        let texts: usize = texts.into_iter().flatten().map(|text| allocated(text.len())).sum();
        let starts = allocated(self.starts.capacity() * size_of::<(u64, Timestamp)>());
        self.contents.heap_len() + texts + starts
    }

    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        (message, has_hashes): (&Message<'_>, bool),
        out: Out<'_>,
    ) {
        let mut copier = Copier::default();
        match message {
            Message::Command(command) => {
                if matches!(command.verb, Verb::Helo | Verb::Ehlo | Verb::Lhlo) {
                    self.helo = copier.optional(command.argument);
                }
                if let Some(mail) = command.mail
                    && self.starts.back().is_none_or(|(last, _)| *last != mail)
                {
                    if self.starts.len() == STARTS_MAX {
                        self.starts.pop_front();
                    }
                    self.starts.push_back((mail, meta.timestamp));
                }
            }
            Message::Reply(reply) => self.reply = Some((reply.mail, copier.text(reply.text))),
            Message::Content(_) | Message::Gap(_) => {
                if let Some(piece) = message.piece() {
                    self.content(meta, (piece, has_hashes), out);
                }
            }
            Message::Mail(mail) => {
                let addresses = mail.recipients.iter().map(|recipient| copier.text(Text(&recipient.address)));
                let recipients = addresses.collect();
                let reply = self.reply.take().filter(|(of, _)| *of == Some(mail.mail)).map(|(_, text)| text);
                let content = self.contents.take(mail.mail).map(|mut content| {
                    // The reply to a chunk may be captured before the chunk.
                    let is_complete = mail.is_complete && content.content.read_len == mail.content_len;
                    content.read(Some(meta), has_hashes, PieceContent::End { is_complete }, out);
                    content
                });
                // A content that is not known any more was evicted.
                let is_limited = content.as_ref().map_or(mail.content_len > 0, Pending::is_limited);
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
                    ..content.map(|pending| pending.content.mail).unwrap_or_default()
                };
                let mut pending = Pending::new(mail.mail, Span::of(meta), content, &copier);
                // Mails end in order; those before were abandoned.
                while let Some((number, start)) =
                    self.starts.front().filter(|(number, _)| *number <= mail.mail)
                {
                    if *number == mail.mail {
                        pending.span.start = *start;
                    }
                    self.starts.pop_front();
                }
                if is_limited {
                    pending.lack(Lack::Limit);
                } else if mail.code.is_none() {
                    pending.lack(Lack::Response);
                } else if !mail.is_complete {
                    pending.lack(Lack::Body);
                }
                out(Ended::Mail(pending));
            }
            Message::Greeting(_) => {}
        }
    }

    /// Reads a piece of the content of a mail.
    fn content(&mut self, meta: &MessageMeta, (piece, has_hashes): (Piece<'_>, bool), out: Out<'_>) {
        let mail = piece.file;
        if self.contents.get(mail).is_none() {
            let mut evicted = Vec::new();
            evicted.extend(self.contents.take_oldest(CONTENTS_MAX));
            let pending = Pending::new(mail, Span::of(meta), OpenContent::default(), &Copier::default());
            self.contents.push(pending, &mut |pending| evicted.push(pending));
            for mut pending in evicted {
                if let Some(part) = &mut pending.content.part {
                    part.lack(Lack::Limit);
                }
                pending.read(None, false, CUT, out);
            }
        }
        if let Some(pending) = self.contents.get(mail) {
            pending.read(Some(meta), has_hashes, piece.content, out);
        }
    }

    pub(super) fn finish(&mut self, out: Out<'_>) {
        for mut pending in self.contents.take_all() {
            pending.read(None, false, CUT, out);
        }
    }
}

impl Pending<OpenContent> {
    fn is_limited(&self) -> bool {
        self.content.is_limited || self.lacks.is_some()
    }

    /// Reads a piece of the content, which a message completes unless the flow ended.
    fn read(
        &mut self,
        meta: Option<&MessageMeta>,
        has_hashes: bool,
        content: PieceContent<'_>,
        out: Out<'_>,
    ) {
        let (number, span) = (self.number, meta.map_or(self.span, Span::of));
        let OpenContent { reader, mail, part, read_len, is_limited } = &mut self.content;
        let mut copier = Copier::default();
        let mut add = |event: Event<'_>| {
            if let (Some(meta), Some(part)) = (meta, part.as_mut())
                && !matches!(event, Event::End(_))
            {
                part.span.extend(meta);
            }
            match (event, part.as_mut()) {
                (Event::Header(header), _) => {
                    describe(mail, header, &mut copier);
                    *is_limited |= header.is_truncated;
                }
                (Event::Part(head), _) => {
                    mail.part_count = head.number + 1;
                    if head.is_attachment && mail.attachments.len() < ATTACHMENTS_MAX {
                        mail.attachments.push(attachment(&head, &mut copier));
                    } else {
                        *is_limited |= head.is_attachment;
                    }
                    *part = Some(begun(number, span, &head, has_hashes));
                }
                (Event::Octets(octets), Some(part)) => part.add_octets(octets),
                (Event::Missing(len), Some(part)) => part.add_missing(len),
                (Event::End(is_complete), _) => {
                    let ended = part.take().map(|part| ended(part, is_complete));
                    ended.into_iter().for_each(|file| out(Ended::File(file)));
                }
                (Event::Limit, _) => *is_limited = true,
                (Event::Octets(_) | Event::Missing(_), None) => {}
            }
        };
        match content {
            PieceContent::Octets(octets) => {
                *read_len = read_len.saturating_add(octets.len() as u64);
                reader.read(octets, &mut add);
            }
            PieceContent::Gap(len) => reader.gap(len, &mut add),
            PieceContent::End { is_complete } => reader.end(is_complete, &mut add),
        }
        self.add(&copier);
    }
}

/// Returns a part that begins as a file.
fn begun(mail: u64, span: Span, head: &Part<'_>, has_hashes: bool) -> Pending<OpenFile> {
    let mut copier = Copier::default();
    let Attachment { name, content_type } = attachment(head, &mut copier);
    let file = File {
        number: mail,
        part: Some(head.number),
        entity: head.entity,
        role: Some(Role::Client),
        name,
        content_type: Some(content_type),
        ..File::default()
    };
    Pending::new(mail, span, OpenFile::new(file, has_hashes), &copier)
}

fn attachment(head: &Part<'_>, copier: &mut Copier) -> Attachment {
    let name = copier.optional(head.name.map(Text));
    Attachment { name, content_type: copier.text(Text(head.content_type)) }
}

/// Sets the columns of the header of a mail.
fn describe(mail: &mut Mail, header: &Header, copier: &mut Copier) {
    let list = |field: &Option<Vec<u8>>, copier: &mut Copier| {
        let list = field.as_deref().unwrap_or_default();
        addresses(list).map(|address| copier.text(Text(address))).collect()
    };
    mail.to = list(&header.to, copier);
    mail.cc = list(&header.cc, copier);
    mail.received = header.received.iter().map(|value| copier.text(Text(value))).collect();
    mail.last_received = header.last_received.iter().map(|value| copier.text(Text(value))).collect();
    mail.received_from.clone_from(&header.hops);
    let mut text = |field: &Option<Vec<u8>>| copier.optional(field.as_deref().map(Text));
    mail.date = text(&header.date);
    mail.from = text(&header.from);
    mail.reply_to = text(&header.reply_to);
    mail.message_id = text(&header.message_id);
    mail.in_reply_to = text(&header.in_reply_to);
    mail.subject = text(&header.subject);
    mail.user_agent = text(&header.user_agent).or_else(|| text(&header.mailer));
    mail.originating_ip = header.originating_ip.as_deref().and_then(address);
}

/// Returns an address, which may be in brackets.
fn address(value: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    inner.strip_prefix("IPv6:").unwrap_or(inner).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Side;
    use crate::protocols::smtp::{PROTOCOL, SmtpParser};
    use crate::session::{Input, Parser};

    /// A connection whose turns are passed to the parser and the joiner.
    #[derive(Default)]
    struct Connection {
        parser: SmtpParser,
        open: MailOpen,
        mails: Vec<(Mail, Option<Lack>)>,
        files: Vec<(File, Option<Lack>)>,
        /// Time of the next turn.
        time: Timestamp,
        /// Start times of the mails.
        starts: Vec<Timestamp>,
    }

    impl Connection {
        fn turn(&mut self, from: Role, octets: &str) {
            let side = if from == Role::Client { Side::A } else { Side::B };
            let timestamp = self.time;
            let meta = MessageMeta { protocol: &PROTOCOL, from, side, timestamp, received_len: 0 };
            let Self { parser, open, mails, files, starts, .. } = self;
            let input = Input::new(octets.as_bytes(), 0, from, timestamp);
            let progress = parser.bytes(&input, &mut |message| {
                open.message(&meta, (&message, true), &mut |ended| match ended {
                    Ended::Mail(mail) => {
                        starts.push(mail.span.start);
                        mails.push((mail.content, mail.lacks));
                    }
                    Ended::File(file) => files.push((file.content, file.lacks)),
                });
            });
            progress.expect("SMTP");
        }

        fn finish(&mut self) {
            let files = &mut self.files;
            self.open.finish(&mut |ended| {
                if let Ended::File(file) = ended {
                    files.push((file.content, file.lacks));
                }
            });
        }
    }

    const ENVELOPE: &str = "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n";

    #[test]
    fn a_mail_has_the_columns_of_its_header_and_its_parts_as_files() {
        let mut connection = Connection::default();
        connection.turn(Role::Client, &format!("EHLO e\r\n{ENVELOPE}DATA\r\n"));
        connection.turn(
            Role::Client,
            "Received: from x\r\n\tby y\r\nReceived: z\r\nReceived: last\r\nDate: today\r\nFrom: a\r\n\
             To: \"b, c\" <b@c>, d\r\nCc: e\r\nReply-To: f\r\nMessage-ID: <g@h>\r\nIn-Reply-To: <i@j>\r\n\
             Subject: =?utf-8?q?=C3=A4?=\r\nX-Mailer: k\r\nX-Originating-IP: [192.0.2.1]\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n..dot\r\n--b\r\n\
             Content-Disposition: attachment; filename=x.png\r\nContent-Type: image/png\r\n\
             Content-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n--b--\r\n.\r\n",
        );
        assert_eq!(connection.files.len(), 2);
        connection.turn(Role::Server, "220 a ESMTP\r\n250 e\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n");
        let (mail, lacks) = connection.mails.pop().expect("a mail");
        let text = |text: &str| Some(Box::from(text));
        let list = |texts: &[&str]| texts.iter().map(|text| Box::from(*text)).collect::<Vec<Box<str>>>();
        let attachment = Attachment { name: text("x.png"), content_type: "image/png".into() };
        let expected = Mail {
            date: text("today"),
            from: text("a"),
            to: list(&["\"b, c\" <b@c>", "d"]),
            cc: list(&["e"]),
            reply_to: text("f"),
            message_id: text("<g@h>"),
            in_reply_to: text("<i@j>"),
            subject: text("=?utf-8?q?=C3=A4?="),
            received: list(&["from x\tby y", "z"]),
            user_agent: text("k"),
            originating_ip: Some([192, 0, 2, 1].into()),
            attachments: vec![attachment],
            ..mail.clone()
        };
        assert_eq!((mail, lacks), (expected, None));
        let [(plain, None), (image, None)] = connection.files.as_slice() else { panic!("two files") };
        assert_eq!(
            (plain.part, plain.seen_len, plain.content_type.as_deref()),
            (Some(0), 4, Some("text/plain"))
        );
        assert!(plain.is_complete && plain.md5.is_some());
        assert_eq!((image.part, image.seen_len, image.name.as_deref()), (Some(1), 8, Some("x.png")));
        assert_eq!((image.detected_type, image.role), (Some("image/png"), Some(Role::Client)));
    }

    #[test]
    fn contents_of_pipelined_mails_are_open_together() {
        let mut connection = Connection::default();
        for subject in ["one", "two"] {
            connection.turn(
                Role::Client,
                &format!("{ENVELOPE}DATA\r\nSubject: {subject}\r\n\r\n{subject}\r\n.\r\n"),
            );
        }
        assert!(connection.files.is_empty(), "the end of a mail is known with its summary");
        connection.turn(Role::Server, &"250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n".repeat(2));
        let subjects = connection.mails.iter().map(|(mail, lacks)| (mail.subject.as_deref(), *lacks));
        assert_eq!(subjects.collect::<Vec<_>>(), [(Some("one"), None), (Some("two"), None)]);
        let files = connection.files.iter().map(|(file, _)| (file.number, file.seen_len, file.is_complete));
        assert_eq!(files.collect::<Vec<_>>(), [(0, 5, true), (1, 5, true)]);
    }

    #[test]
    fn a_mail_starts_with_its_first_command() {
        let mut connection = Connection::default();
        let body = "DATA\r\nSubject: x\r\n\r\nx\r\n.\r\n";
        for second in [10, 20, 30] {
            connection.time = Timestamp::from_parts(second, 0);
            connection.turn(Role::Client, &format!("{ENVELOPE}{body}"));
        }
        connection.time = Timestamp::from_parts(40, 0);
        connection.turn(Role::Server, &"250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n".repeat(3));
        assert_eq!(connection.starts, [10, 20, 30].map(|second| Timestamp::from_parts(second, 0)));
    }

    #[test]
    fn a_name_of_a_field_without_its_end_is_no_part() {
        for content in [
            "From: a\r\nSubj",
            "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Ty",
        ] {
            let mut connection = Connection::default();
            connection.turn(Role::Client, &format!("{ENVELOPE}DATA\r\n{content}"));
            connection.finish();
            assert!(connection.files.is_empty(), "{content}");
        }
    }

    #[test]
    fn a_mail_without_its_evicted_content_lacks_it() {
        let mut connection = Connection::default();
        connection.turn(Role::Client, &format!("{ENVELOPE}DATA\r\nSubject: one\r\n\r\nx\r\n.\r\n"));
        for _ in 0..CONTENTS_MAX {
            connection.turn(Role::Client, &format!("{ENVELOPE}BDAT 3\r\n\r\naRSET\r\n"));
        }
        connection.turn(Role::Server, "250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n");
        let mails: Vec<_> =
            connection.mails.iter().map(|(mail, lacks)| (mail.subject.as_deref(), *lacks)).collect();
        assert_eq!(mails, [(None, Some(Lack::Limit))]);
    }

    #[test]
    fn aborted_mails_end_with_the_flow_or_at_the_limit() {
        let mut connection = Connection::default();
        let count = CONTENTS_MAX + 3;
        for _ in 0..count {
            connection.turn(Role::Client, &format!("{ENVELOPE}BDAT 3\r\n\r\naRSET\r\n"));
        }
        assert_eq!((connection.files.len(), connection.mails.len()), (3, 0));
        assert!(connection.files.iter().all(|(_, lacks)| *lacks == Some(Lack::Limit)));
        connection.finish();
        let of_end = connection.files.get(3..).expect("more files");
        assert!(of_end.len() == CONTENTS_MAX && of_end.iter().all(|(file, _)| !file.is_complete));
        assert!(of_end.iter().all(|(_, lacks)| *lacks == Some(Lack::End)));
    }

    #[test]
    fn a_reply_before_the_last_chunk_ends_its_files_incomplete() {
        let mut connection = Connection::default();
        connection.turn(Role::Client, &format!("{ENVELOPE}BDAT 9 LAST\r\n\r\nabc"));
        connection.turn(Role::Server, "250 ok\r\n250 ok\r\n250 ok\r\n");
        connection.turn(Role::Client, "defg");
        let files: Vec<_> =
            connection.files.iter().map(|(file, _)| (file.seen_len, file.is_complete)).collect();
        assert_eq!((files, connection.mails.len()), (vec![(3, false)], 1));
    }
}
