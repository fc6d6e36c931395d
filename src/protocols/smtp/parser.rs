//! The SMTP parser: lines of the client, replies of the server, and the queue of commands that wait for replies.

use std::collections::VecDeque;

use super::super::reply_order::ReplyOrder;
use super::super::starttls::{Next, StartTls};
use super::command::{Path, Verb, begins_with_command, chunk, mechanism};
use super::content::ContentScanner;
use super::envelope::Envelope;
use super::message::{Command, Greeting, Message, Reply};
use super::{COMMAND_LEN_MAX, MAIL_COUNT_MAX, OTHER_COUNT_MAX, PENDING_COUNT_MAX, TLS};
use crate::checkpoint::{COUNT_MAX, state};
use crate::session::lines::{Line, LineSplitter, first_word};
use crate::session::replies::{CompleteReply, Item, Middle, ReplyReader};
use crate::session::{AfterGap, End, Fault, Input, Missing, Out, Parser, Piece, Progress, Role, Text};

/// Parser of SMTP and LMTP; see the [module](super).
#[derive(Debug, Default)]
pub struct SmtpParser {
    lines: LineSplitter,
    replies: ReplyReader,
    client: Client,
    auth: Auth,
    /// Number that the next command receives.
    transaction: u64,
    mail: u64,
    /// Number of the mail to which the client's commands currently belong.
    current: Option<u64>,
    pending: VecDeque<Pending>,
    /// Number of commands in `pending` that wait for the reply 354.
    data_count: usize,
    /// Mails that wait for the reply to their content, the current one last.
    mails: VecDeque<Envelope>,
    other_count: u8,
    reply_order: ReplyOrder,
    has_sent: [bool; 2],
    has_greeted: bool,
    has_ended: bool,
    is_lmtp: bool,
    tls: StartTls,
    /// True if octets of the client are missing before its next ones.
    follows_gap: bool,
    /// True if the server waits for a mail's content, although no DATA command was captured.
    is_content_awaited: bool,
    heap_len: usize,
}

/// Kind of octets that the SMTP client is sending.
#[derive(Clone, Copy, Debug, Default)]
enum Client {
    #[default]
    Commands,
    /// The content after DATA, and whether octets of it are missing.
    Content(ContentScanner, bool),
    /// A chunk after BDAT.
    Chunk(Chunk),
}

/// A chunk after BDAT.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Number of the mail to which the chunk belongs.
    mail: Option<u64>,
    /// Number of octets of the chunk that remain.
    left: u64,
}

/// State of an AUTH exchange, in which the client's next line may be a secret response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Auth {
    #[default]
    None,
    /// The client sent AUTH, and no challenge of the server is pending.
    Requested,
    /// The server replied 334: the client's next line is the response.
    Challenged,
}

/// An SMTP command that waits for its reply.
#[derive(Clone, Copy, Debug)]
struct Pending {
    transaction: u64,
    mail: Option<u64>,
    expects: Expects,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Any(Verb),
    /// The reply to RCPT, and the index of the recipient.
    Recipient(Option<u16>),
    /// The reply to DATA: 354, or a refusal.
    Data,
    /// The reply to the content after DATA.
    Content,
    /// The reply to a chunk after BDAT, and whether it is the last chunk.
    Chunk(bool),
}

state! {
    struct SmtpParser {
        lines, replies, client, auth, transaction, mail, current, pending, mails, other_count, reply_order, has_sent,
        has_greeted, has_ended, is_lmtp, tls, follows_gap, is_content_awaited,
        .. data_count, heap_len,
    }
    if |parser| {
        parser.data_count = parser.pending.iter().filter(|pending| pending.expects == Expects::Data).count();
        parser.count_heap();
        parser.transaction.max(parser.mail) < COUNT_MAX
            && parser.pending.len() <= PENDING_COUNT_MAX
            && parser.mails.len() <= MAIL_COUNT_MAX
            && parser.other_count <= OTHER_COUNT_MAX
    }
}
state! { enum Client { 0 = Commands, 1 = Content(scanner, has_gap), 2 = Chunk(chunk) } }
state! { struct Chunk { mail, left } }
state! { enum Auth { 0 = None, 1 = Requested, 2 = Challenged } }
state! { struct Pending { transaction, mail, expects } }
state! { enum Expects { 0 = Any(verb), 1 = Recipient(place), 2 = Data, 3 = Content, 4 = Chunk(is_last) } }

impl Parser for SmtpParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        *input.from.of_mut(&mut self.has_sent) = true;
        match input.from {
            Role::Client => self.client_bytes(input, out),
            Role::Server => self.server_bytes(input, out),
        }
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        if missing.from == Role::Client {
            self.content_gap(missing.len, out);
        }
        match (missing.from, &mut self.client) {
            (Role::Client, Client::Content(scanner, has_gap)) => {
                scanner.skip(missing.len);
                *has_gap = true;
            }
            (Role::Client, Client::Chunk(chunk)) if chunk.left > missing.len => chunk.left -= missing.len,
            (Role::Client, client) => {
                *client = Client::Commands;
                (self.lines, self.follows_gap) = (LineSplitter::default(), true);
                if self.auth == Auth::Challenged {
                    self.auth = Auth::Requested;
                }
                self.lose_replies(Role::Client);
            }
            (Role::Server, _) => {
                self.replies.resynchronize();
                self.lose_replies(Role::Server);
            }
        }
        if missing.from == Role::Client
            && let Some(envelope) = self.mails.back_mut()
        {
            envelope.is_complete = false;
        }
        AfterGap::Resume
    }

    fn end(&mut self, _: &End<'_>, out: Out<'_, Self>) {
        if !self.has_ended {
            self.has_ended = true;
            return;
        }
        // Replies that were not captured are reported as such.
        if let Client::Content(scanner, _) = self.client
            && let Some(envelope) = self.envelope(self.current)
        {
            envelope.content_len += scanner.len;
        }
        for envelope in std::mem::take(&mut self.mails) {
            if envelope.has_ended || envelope.content_len > 0 || envelope.code.is_some() {
                out(Message::Mail(envelope.summary()));
            }
        }
    }

    #[inline]
    fn piece<'m>(message: &'m Message<'_>) -> Option<Piece<'m>> {
        message.piece()
    }

    fn heap_len(&self) -> usize {
        self.heap_len + self.replies.heap_len()
    }
}

impl SmtpParser {
    fn client_bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        while let Some(rest) = input.bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match &mut self.client {
                Client::Content(scanner, _) => {
                    let mut envelope = of_mail(&mut self.mails, self.current);
                    let (len, is_end) = scanner.scan(rest, |piece| {
                        if let Some(envelope) = &mut envelope {
                            out(Message::Content(envelope.content(piece)));
                        }
                    });
                    taken += len;
                    if is_end {
                        let len = scanner.len;
                        self.client = Client::Commands;
                        self.end_content(len, out);
                    }
                }
                Client::Chunk(Chunk { mail, left }) => {
                    let len = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    if let Some(envelope) = of_mail(&mut self.mails, *mail) {
                        out(Message::Content(envelope.content(rest.get(..len).unwrap_or_default())));
                    }
                    taken += len;
                    *left -= len as u64;
                    if *left == 0 {
                        self.client = Client::Commands;
                    }
                }
                Client::Commands => {
                    match self.next(rest, out) {
                        Next::Tls => return Ok(Progress::Handover { taken, next: Some(&TLS) }),
                        Next::Undecided => return Ok(Progress::incomplete(taken, input.bytes.len())),
                        Next::Line => {}
                    }
                    if matches!(self.client, Client::Content(..)) {
                        continue;
                    }
                    // The octets after a truncated line are classified like any others.
                    let dropped_len = self.lines.skip(rest);
                    if dropped_len > 0 {
                        taken += dropped_len;
                        continue;
                    }
                    // Octets that may have been a TLS record were not searched for the end of a line.
                    let is_searched = rest.first() != Some(&0x16);
                    let seen_len = if is_searched { input.seen_len.saturating_sub(taken) } else { 0 };
                    let (len, line) = self.lines.next(rest, seen_len, COMMAND_LEN_MAX);
                    taken += len;
                    let Some(line) = line else { break };
                    self.line(&line, out)?;
                }
            }
        }
        Ok(Progress::incomplete(taken, input.bytes.len()))
    }

    /// Classifies the client's octets after its last complete line: a line, a TLS record, or undecided.
    fn next(&mut self, octets: &[u8], out: Out<'_, Self>) -> Next {
        if !self.lines.is_at_start() {
            return Next::Line;
        }
        let is_command = if self.follows_gap { begins_with_command(octets) } else { Some(true) };
        // A TLS record waits for the reply to STARTTLS, unless that reply is lost.
        let next = match (self.tls, is_command) {
            (_, None) => Next::Undecided,
            (StartTls::Granted, Some(false)) => Next::Tls,
            (tls, _) => {
                let has_server = *Role::Server.of(&self.has_sent);
                let is_reply_lost = self.reply_order.is_unpaired() || (tls.is_requested() && !has_server);
                self.tls.client(octets, is_reply_lost)
            }
        };
        if next == Next::Line && std::mem::take(&mut self.follows_gap) {
            let is_content = std::mem::take(&mut self.is_content_awaited);
            match is_command {
                Some(true) => self.reply_order.command_after_gap(),
                // The DATA command was in the gap, and maybe some content.
                _ if is_content => {
                    let mut scanner = ContentScanner::new(false);
                    scanner.skip(0);
                    self.client = Client::Content(scanner, true);
                    self.content_gap(0, out);
                }
                _ => self.lines.resynchronize(),
            }
        }
        next
    }

    /// Processes a line of the client that is neither content nor a chunk.
    fn line(&mut self, line: &Line<'_>, out: Out<'_, Self>) -> Result<(), Fault> {
        if self.auth == Auth::Challenged {
            self.auth = Auth::Requested;
            return Ok(());
        }
        let (word, argument) = first_word(line.text);
        let verb = Verb::of(word);
        if verb == Verb::Other {
            if self.auth == Auth::Requested {
                return Ok(());
            }
            if line.text.iter().any(|octet| octet.is_ascii_control() && *octet != b'\t') {
                return Err(Fault::new("not_a_command"));
            }
            self.other_count += 1;
            if self.other_count > OTHER_COUNT_MAX {
                return Err(Fault::new("unknown_commands"));
            }
        } else {
            self.other_count = 0;
        }
        self.auth = if verb == Verb::Auth { Auth::Requested } else { Auth::None };
        self.reply_order.command();
        self.is_content_awaited = false;
        self.command(verb, argument, line, out);
        self.count_heap();
        Ok(())
    }

    fn command(&mut self, verb: Verb, argument: &[u8], line: &Line<'_>, out: Out<'_, Self>) {
        let transaction = self.transaction;
        self.transaction += 1;
        let given = Some(Text(argument)).filter(|argument| !argument.is_empty());
        let mut command = Command {
            transaction,
            mail: None,
            verb,
            argument: given,
            address: None,
            parameters: None,
            credentials: None,
            is_truncated: line.is_truncated,
        };
        let mut expects = Expects::Any(verb);
        let path = |keyword| Path::parse(argument, keyword).unwrap_or_default();
        match verb {
            Verb::Ehlo | Verb::Helo | Verb::Lhlo | Verb::Rset => {
                self.is_lmtp = (self.is_lmtp && !verb.is_hello()) || verb == Verb::Lhlo;
                self.drop_current();
            }
            Verb::Mail => {
                let path = path(b"FROM:");
                self.drop_current();
                self.current = Some(self.mail);
                self.mail += 1;
                self.begin_mail(Envelope::new(self.mail - 1, path.address, path.size()), out);
                command.argument = None;
                command.address = Some(Text(path.address));
                command.parameters = Some(Text(path.parameters)).filter(|text| !text.is_empty());
            }
            Verb::Rcpt => {
                let path = path(b"TO:");
                let place = self.envelope(self.current).and_then(|envelope| envelope.add(path.address));
                expects = Expects::Recipient(place);
                command.argument = None;
                command.address = Some(Text(path.address));
                command.parameters = Some(Text(path.parameters)).filter(|text| !text.is_empty());
            }
            Verb::Data => {
                expects = Expects::Data;
                self.client = Client::Content(ContentScanner::new(!line.has_cr && !line.is_truncated), false);
            }
            Verb::Bdat => {
                let (len, is_last) = chunk(argument).unwrap_or((0, true));
                expects = Expects::Chunk(is_last);
                if len > 0 {
                    self.client = Client::Chunk(Chunk { mail: self.current, left: len });
                }
                if let Some(envelope) = self.envelope(self.current) {
                    envelope.content_len = envelope.content_len.saturating_add(len);
                    envelope.has_ended |= is_last;
                }
            }
            Verb::Burl => {
                // Its URL may grant access.
                command.argument = None;
                let is_last = argument.to_ascii_uppercase().ends_with(b" LAST");
                expects = Expects::Chunk(is_last);
                if let Some(envelope) = self.envelope(self.current) {
                    (envelope.has_ended, envelope.is_complete) = (envelope.has_ended || is_last, false);
                }
            }
            Verb::Auth => {
                let (name, kind) = mechanism(argument);
                (command.argument, command.credentials) = (name, Some(kind));
            }
            Verb::StartTls => self.tls = StartTls::Requested,
            Verb::Other => command.argument = None,
            _ => {}
        }
        let belongs_to_mail = matches!(verb, Verb::Mail | Verb::Rcpt | Verb::Data | Verb::Bdat | Verb::Burl);
        command.mail = self.current.filter(|_| belongs_to_mail);
        self.wait(Pending { transaction, mail: command.mail, expects });
        out(Message::Command(command));
        if expects == Expects::Chunk(true) {
            self.current = None;
        }
    }

    fn wait(&mut self, pending: Pending) {
        if self.reply_order.is_unpaired() {
            return;
        }
        if self.pending.len() >= PENDING_COUNT_MAX {
            self.reply_order.lose();
            return self.forget_pending();
        }
        self.data_count += usize::from(pending.expects == Expects::Data);
        self.pending.push_back(pending);
    }

    /// Records that octets of a direction are missing, and stops matching replies to commands.
    fn lose_replies(&mut self, from: Role) {
        self.reply_order.gap(from);
        self.forget_pending();
    }

    fn forget_pending(&mut self) {
        (self.pending, self.data_count) = (VecDeque::new(), 0);
        self.count_heap();
    }

    fn envelope(&mut self, mail: Option<u64>) -> Option<&mut Envelope> {
        of_mail(&mut self.mails, mail)
    }

    /// Reports that `len` octets of the client are missing, as many of them as are content.
    fn content_gap(&mut self, len: u64, out: Out<'_, Self>) {
        let (mail, len) = match self.client {
            Client::Content(..) => (self.current, len),
            Client::Chunk(Chunk { mail, left }) => (mail, left.min(len)),
            Client::Commands => return,
        };
        if let Some(envelope) = self.envelope(mail) {
            out(Message::Gap(envelope.gap(len)));
        }
    }

    /// Drops the current mail if its content was never sent.
    fn drop_current(&mut self) {
        if let Some(current) = self.current.take() {
            self.mails.retain(|envelope| envelope.mail != current);
        }
    }

    fn begin_mail(&mut self, envelope: Envelope, out: Out<'_, Self>) {
        if self.mails.len() >= MAIL_COUNT_MAX
            && let Some(oldest) = self.mails.pop_front()
        {
            out(Message::Mail(oldest.summary()));
        }
        self.mails.push_back(envelope);
    }

    /// Records that the client has sent all of the current mail's content after DATA, `len` octets.
    fn end_content(&mut self, len: u64, out: Out<'_, Self>) {
        let current = self.current.take();
        if let Some(envelope) = self.envelope(current) {
            envelope.content_len = len;
            envelope.has_ended = true;
            if envelope.code.is_some() {
                self.finish_mail(current, out);
            }
        }
    }

    /// Reports a mail after its result is known, and removes it from the mails that wait for a reply.
    fn finish_mail(&mut self, mail: Option<u64>, out: Out<'_, Self>) {
        if let Some(place) = self.mails.iter().position(|envelope| Some(envelope.mail) == mail)
            && let Some(envelope) = self.mails.remove(place)
        {
            out(Message::Mail(envelope.summary()));
        }
        if self.current == mail {
            self.current = None;
        }
        self.count_heap();
    }

    fn server_bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let (mut taken, mut seen_len) = (0, input.seen_len);
        // Moved out of the parser while a reply borrows it.
        let mut replies = std::mem::take(&mut self.replies);
        let mut is_tls = false;
        let outcome = loop {
            let rest = input.bytes.get(taken..).unwrap_or_default();
            let dropped_len = replies.skip(rest, &mut seen_len);
            if dropped_len > 0 {
                taken += dropped_len;
                continue;
            }
            if replies.is_at_start() && self.tls.server(rest) == Next::Tls {
                is_tls = true;
                break Ok(taken);
            }
            match replies.next(rest, seen_len.saturating_sub(taken), Middle::Coded) {
                Err(fault) => break Err(fault),
                Ok((len, None)) => break Ok(taken + len),
                Ok((len, Some(item))) => {
                    taken += len;
                    match item {
                        Item::Reply(reply) => is_tls = self.reply(&reply, out),
                        Item::Empty => {}
                        // It may replace a reply.
                        Item::Invalid => self.lose_replies(Role::Server),
                    }
                    if is_tls {
                        break Ok(taken);
                    }
                }
            }
        };
        self.replies = replies;
        let taken = outcome?;
        Ok(if is_tls {
            Progress::Handover { taken, next: Some(&TLS) }
        } else {
            Progress::incomplete(taken, input.bytes.len())
        })
    }

    /// Processes a reply of the server. Returns whether this reply granted TLS and the client has already begun it.
    fn reply(&mut self, whole: &CompleteReply<'_>, out: Out<'_, Self>) -> bool {
        let CompleteReply { code, text, is_truncated, is_malformed } = *whole;
        if code == 354 {
            // Only DATA has this reply: the replies to earlier commands were not captured.
            let is_data = |pending: &Pending| pending.expects == Expects::Data;
            let data = if self.data_count > 0 { self.pending.iter().position(is_data) } else { None };
            self.pending.drain(..data.unwrap_or(0));
            self.is_content_awaited = data.is_none() && matches!(self.client, Client::Commands);
        } else {
            self.is_content_awaited = false;
        }
        let front = self.pending.front().copied();
        let is_first = !std::mem::replace(&mut self.has_greeted, true);
        let requested_tls = front.is_some_and(|front| front.expects == Expects::Any(Verb::StartTls));
        let is_greeting = is_first && ((code == 220 && !requested_tls) || (code >= 400 && front.is_none()));
        self.reply_order.reply(!is_greeting && front.is_none());
        if is_greeting {
            let (host, _) = first_word(text);
            out(Message::Greeting(Greeting { code, host: Text(host), text: Text(text) }));
            return false;
        }
        let (transaction, mail) = (front.map(|front| front.transaction), front.and_then(|front| front.mail));
        // Some servers repeat the refused command, and the command of a skipped line is unknown.
        let is_hidden = code >= 400
            && match front.map(|front| front.expects) {
                Some(expects) => matches!(expects, Expects::Any(Verb::Auth | Verb::Other)),
                None => *Role::Client.of(&self.has_sent),
            };
        let shown = Text(if is_hidden { &[] } else { text });
        out(Message::Reply(Reply { transaction, mail, code, text: shown, is_truncated, is_malformed }));
        let Some(front) = front else {
            if code == 334 {
                self.auth = Auth::Challenged;
            }
            // If only the server was captured, a second 220 can only be the reply to STARTTLS.
            let is_of_starttls = self.tls.is_requested() || !*Role::Client.of(&self.has_sent);
            return code == 220 && is_of_starttls && self.tls.grant();
        };
        let is_open = match front.expects {
            Expects::Any(Verb::Auth) if code == 334 => {
                self.auth = Auth::Challenged;
                true
            }
            Expects::Any(verb) => {
                match verb {
                    Verb::Auth => self.auth = Auth::None,
                    Verb::StartTls if code != 220 => self.tls = StartTls::No,
                    _ => {}
                }
                false
            }
            Expects::Recipient(place) => {
                if let (Some(place), Some(envelope)) = (place, self.envelope(mail)) {
                    envelope.answer(place, code);
                }
                false
            }
            Expects::Data => self.data_reply(mail, code, out),
            Expects::Content => self.content_reply(mail, code, out),
            Expects::Chunk(is_last) => (is_last || code >= 400) && self.content_reply(mail, code, out),
        };
        if !is_open && let Some(front) = self.pending.pop_front() {
            self.data_count = self.data_count.saturating_sub(usize::from(front.expects == Expects::Data));
        }
        requested_tls && code == 220 && self.tls.grant()
    }

    /// Processes the reply to DATA. Returns whether another reply to the same command follows.
    fn data_reply(&mut self, mail: Option<u64>, code: u16, out: Out<'_, Self>) -> bool {
        if code == 354 {
            if let Some(front) = self.pending.front_mut() {
                front.expects = Expects::Content;
                self.data_count = self.data_count.saturating_sub(1);
            }
            return true;
        }
        if matches!(self.client, Client::Content(..)) && self.current == mail {
            self.client = Client::Commands;
        }
        if let Some(envelope) = self.envelope(mail) {
            envelope.code = Some(code);
            self.finish_mail(mail, out);
        }
        false
    }

    /// Processes a reply to the content of a mail. Returns whether another reply to the same content follows, as in
    /// LMTP.
    fn content_reply(&mut self, mail: Option<u64>, code: u16, out: Out<'_, Self>) -> bool {
        let is_lmtp = self.is_lmtp;
        // If there was a gap in the content, its end was in the gap; otherwise the server replied early.
        if let Client::Content(scanner, true) = self.client
            && self.current == mail
        {
            self.client = Client::Commands;
            self.end_content(scanner.len, out);
        }
        let is_chunk = self.pending.front().is_some_and(|front| matches!(front.expects, Expects::Chunk(_)));
        let Some(envelope) = self.envelope(mail) else { return false };
        let is_last = if is_lmtp {
            envelope.answer_next(code)
        } else {
            envelope.code = Some(code);
            true
        };
        // A refused chunk ends its mail; content after DATA continues to its end, regardless of the reply.
        if is_last && (envelope.has_ended || is_chunk) {
            self.finish_mail(mail, out);
        }
        !is_last
    }

    fn count_heap(&mut self) {
        let envelopes: usize = self.mails.iter().map(Envelope::heap_len).sum();
        self.heap_len = self.pending.capacity() * size_of::<Pending>()
            + self.mails.capacity() * size_of::<Envelope>()
            + envelopes;
    }
}

/// Returns the envelope of a mail that was not reported yet.
fn of_mail(mails: &mut VecDeque<Envelope>, mail: Option<u64>) -> Option<&mut Envelope> {
    mails.iter_mut().find(|envelope| Some(envelope.mail) == mail)
}
