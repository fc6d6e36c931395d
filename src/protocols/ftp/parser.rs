//! The FTP parser: lines of the client, replies of the server, and the queue of commands that wait for replies.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::super::ftp_data;
use super::super::reply_order::ReplyOrder;
use super::super::starttls::{Next, StartTls};
use super::address::{announced_len, extended, find_extended_port, find_host_port, host_port};
use super::message::{Command, DataConnection, DataEnd, Greeting, Message, Reply, Transfer};
use super::{COMMAND_LEN_MAX, NAME_LEN_MAX, PENDING_COUNT_MAX, TLS};
use crate::checkpoint::{COUNT_MAX, Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::session::lines::{Line, LineSplitter, decimal, first_word};
use crate::session::replies::{CompleteReply, Item, Middle, ReplyReader};
use crate::session::{AfterGap, Expectation, Fault, Input, Missing, Out, Parser, Progress, Role, Text};

/// Parser of FTP's control connection; see the [module](super).
#[derive(Debug, Default)]
pub struct FtpParser {
    lines: LineSplitter,
    replies: ReplyReader,
    transaction: u64,
    pending: VecDeque<Pending>,
    /// Total length in octets of the file names in `pending` and `size`.
    names_len: usize,
    /// The listening end of the data connection that was granted last.
    data: Option<DataEnd>,
    /// The last reply to SIZE: the file name and the length of the file in octets.
    size: Option<(Box<[u8]>, u64)>,
    restart_offset: Option<u64>,
    reply_order: ReplyOrder,
    has_sent: [bool; 2],
    has_greeted: bool,
    /// True if octets of the client are missing before its next ones.
    follows_gap: bool,
    /// True if the last command is USER with a user who has no password: what PASS states next is no secret.
    is_anonymous: bool,
    tls: StartTls,
}

/// An FTP command that waits for its last reply.
#[derive(Debug)]
struct Pending {
    transaction: u64,
    expects: Expects,
    name: Box<[u8]>,
    announced_len: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Any,
    /// The reply to a command with an argument that is not shown, such as a password.
    Hidden,
    Tls,
    Active(Option<(IpAddr, u16)>),
    Passive,
    Size,
    Restart(Option<u64>),
    Transfer(TransferVerb),
}

/// One of the commands that transfer a file or a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TransferVerb(&'static str);

impl TransferVerb {
    fn of(verb: &Verb) -> Option<Self> {
        TRANSFERS.into_iter().find(|known| known.as_bytes().first_chunk() == Some(verb)).map(Self)
    }
}

impl Saved for TransferVerb {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.array(*self.0.as_bytes().first_chunk::<4>().unwrap_or(&[0; 4]))?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Self::of(&reader.array::<4>()?).ok_or(Invalid::new("a transfer of FTP by another command"))
    }
}

/// Name of an FTP command in capitals; a NUL follows a name of three letters.
type Verb = [u8; 4];

/// FTP commands with arguments that are reported: the commands of RFC 959 and its extensions, those of RFC 775 before
/// it, and other common commands.
const SHOWN: [Verb; 59] = [
    *b"ABOR", *b"ALLO", *b"APPE", *b"AUTH", *b"AVBL", *b"CCC\0", *b"CDUP", *b"CLNT", *b"CWD\0", *b"DELE",
    *b"EPRT", *b"EPSV", *b"FEAT", *b"HASH", *b"HELP", *b"HOST", *b"LANG", *b"LIST", *b"LPRT", *b"LPSV",
    *b"MDTM", *b"MFCT", *b"MFF\0", *b"MFMT", *b"MKD\0", *b"MLSD", *b"MLST", *b"MODE", *b"NLST", *b"NOOP",
    *b"OPTS", *b"PASV", *b"PBSZ", *b"PORT", *b"PROT", *b"PWD\0", *b"QUIT", *b"RANG", *b"REIN", *b"REST",
    *b"RETR", *b"RMD\0", *b"RNFR", *b"RNTO", *b"SITE", *b"SIZE", *b"SMNT", *b"STAT", *b"STOR", *b"STOU",
    *b"STRU", *b"SYST", *b"TYPE", *b"USER", *b"XCUP", *b"XCWD", *b"XMKD", *b"XPWD", *b"XRMD",
];

/// FTP commands with arguments that may be secret and are not reported.
const HIDDEN: [Verb; 6] = [*b"ACCT", *b"ADAT", *b"CONF", *b"ENC\0", *b"MIC\0", *b"PASS"];

/// Returns whether a user needs no password (RFC 1635).
#[must_use]
pub fn is_anonymous(user: &[u8]) -> bool {
    user.eq_ignore_ascii_case(b"anonymous") || user.eq_ignore_ascii_case(b"ftp")
}

/// FTP commands that transfer a file or a listing.
pub(crate) const TRANSFERS: [&str; 7] = ["RETR", "STOR", "STOU", "APPE", "LIST", "NLST", "MLSD"];

state! {
    struct FtpParser {
        lines, replies, transaction, pending, data, size, restart_offset, reply_order, has_sent, has_greeted, follows_gap,
        is_anonymous, tls,
        .. names_len,
    }
    if |parser| {
        let names = || {
            let pending = parser.pending.iter().map(|pending| pending.name.len());
            pending.chain(parser.size.iter().map(|(name, _)| name.len()))
        };
        let (len_max, len) = (names().max(), names().sum());
        parser.names_len = len;
        len_max.is_none_or(|len| len <= NAME_LEN_MAX)
            && parser.pending.len() <= PENDING_COUNT_MAX
            && parser.transaction < COUNT_MAX
    }
}
state! { struct Pending { transaction, expects, name, announced_len } }
state! { enum Expects {
    0 = Any,
    1 = Hidden,
    2 = Tls,
    3 = Active(end),
    4 = Passive,
    5 = Size,
    6 = Restart(offset),
    7 = Transfer(verb),
} }

impl Parser for FtpParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        *input.from.of_mut(&mut self.has_sent) = true;
        match input.from {
            Role::Client => self.client_bytes(input, out),
            Role::Server => self.server_bytes(input, out),
        }
    }

    fn gap(&mut self, missing: &Missing<'_>, _: Out<'_, Self>) -> AfterGap {
        match missing.from {
            Role::Client => {
                (self.lines, self.follows_gap) = (LineSplitter::default(), true);
                self.is_anonymous = false;
            }
            Role::Server => self.replies.resynchronize(),
        }
        self.reply_order.gap(missing.from);
        self.forget_pending();
        AfterGap::Resume
    }

    fn expectation(message: &Message<'_>) -> Option<Expectation> {
        let Message::DataConnection(DataConnection { end: DataEnd { address, port, opened_by }, .. }) =
            *message
        else {
            return None;
        };
        Some(Expectation { protocol: &ftp_data::PROTOCOL, opened_by, address, port: Some(port) })
    }

    fn heap_len(&self) -> usize {
        self.pending.capacity() * size_of::<Pending>() + self.names_len + self.replies.heap_len()
    }
}

impl FtpParser {
    fn client_bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        while let Some(rest) = input.bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match self.next(rest) {
                Next::Tls => return Ok(Progress::Handover { taken, next: Some(&TLS) }),
                Next::Undecided => return Ok(Progress::incomplete(taken, input.bytes.len())),
                Next::Line => {}
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
            self.command(&line, out)?;
        }
        Ok(Progress::incomplete(taken, input.bytes.len()))
    }

    /// Classifies the client's octets after its last complete line: a line, a TLS record, or undecided.
    fn next(&mut self, octets: &[u8]) -> Next {
        if !self.lines.is_at_start() {
            return Next::Line;
        }
        let is_command = if self.follows_gap { begins_with_command(octets) } else { Some(true) };
        // A TLS record waits for the reply to AUTH, unless that reply is lost.
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
            if is_command == Some(true) {
                self.reply_order.command_after_gap();
            } else {
                self.lines.resynchronize();
            }
        }
        next
    }

    fn command(&mut self, line: &Line<'_>, out: Out<'_, Self>) -> Result<(), Fault> {
        let text = without_telnet(line.text);
        if text.is_empty() {
            return Ok(());
        }
        if text.iter().any(|octet| octet.is_ascii_control() && !octet.is_ascii_whitespace()) {
            return Err(Fault::new("not_a_command"));
        }
        self.reply_order.command();
        let (word, argument) = first_word(text);
        let transaction = self.transaction;
        self.transaction += 1;
        let is_verb = (3..=8).contains(&word.len()) && word.iter().all(u8::is_ascii_alphanumeric);
        let verb = verb(word).filter(|_| is_verb).unwrap_or_default();
        // Any other command between them may be a mistyped USER.
        let was_anonymous = std::mem::take(&mut self.is_anonymous);
        let mut expects = Expects::Any;
        // An unknown command may be a mistyped PASS, with a password as its argument.
        let mut is_shown = SHOWN.contains(&verb);
        let mut credentials = None;
        match &verb {
            b"USER" => self.is_anonymous = is_anonymous(argument),
            b"PASS" => (is_shown, credentials) = (was_anonymous, Some("user_pass")),
            b"ACCT" => (is_shown, credentials) = (false, Some("account")),
            b"ADAT" => (is_shown, credentials) = (false, Some("security_data")),
            // Encapsulated commands (RFC 2228 section 3).
            b"MIC\0" | b"CONF" | b"ENC\0" => is_shown = false,
            b"AUTH" if is_tls(argument) => (expects, self.tls) = (Expects::Tls, StartTls::Requested),
            b"PORT" => expects = Expects::Active(host_port(argument)),
            b"EPRT" => expects = Expects::Active(extended(argument)),
            b"PASV" | b"EPSV" => expects = Expects::Passive,
            b"SIZE" => expects = Expects::Size,
            b"REST" => expects = Expects::Restart(decimal(argument)),
            verb => {
                expects = TransferVerb::of(verb).map_or(Expects::Any, Expects::Transfer);
            }
        }
        if !is_shown && expects == Expects::Any {
            expects = Expects::Hidden;
        }
        let given = if verb == *b"SITE" { first_word(argument).0 } else { argument };
        let named = matches!(expects, Expects::Size | Expects::Transfer(_));
        self.wait(transaction, expects, if named { argument } else { &[] });
        out(Message::Command(Command {
            transaction,
            verb: Text(if is_verb { word } else { &[] }),
            argument: Some(Text(given)).filter(|given| is_shown && !given.is_empty()),
            credentials,
            is_truncated: line.is_truncated,
        }));
        Ok(())
    }

    fn wait(&mut self, transaction: u64, expects: Expects, name: &[u8]) {
        if self.reply_order.is_unpaired() {
            return;
        }
        if self.pending.len() >= PENDING_COUNT_MAX {
            return self.lose_pairing();
        }
        let name: Box<[u8]> = name.get(..NAME_LEN_MAX).unwrap_or(name).into();
        self.names_len += name.len();
        self.pending.push_back(Pending { transaction, expects, name, announced_len: None });
    }

    /// Stops matching replies to commands until the client sends a command after a reply.
    fn lose_pairing(&mut self) {
        self.reply_order.lose();
        self.forget_pending();
    }

    fn forget_pending(&mut self) {
        (self.pending, self.size, self.names_len) = (VecDeque::new(), None, 0);
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
            match replies.next(rest, seen_len.saturating_sub(taken), Middle::Free) {
                Err(fault) => break Err(fault),
                Ok((len, None)) => break Ok(taken + len),
                Ok((len, Some(item))) => {
                    taken += len;
                    match item {
                        Item::Reply(reply) => is_tls = self.reply(&reply, out),
                        Item::Empty => {}
                        // It may replace a reply.
                        Item::Invalid => {
                            self.reply_order.gap(Role::Server);
                            self.forget_pending();
                        }
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
        let is_first = !std::mem::replace(&mut self.has_greeted, true);
        if is_first && (code == 220 || (self.pending.is_empty() && (code == 120 || code >= 400))) {
            // 120 means that the greeting follows later (section 5.4).
            self.has_greeted = code != 120;
            self.reply_order.reply(false);
            out(Message::Greeting(Greeting { code, text: Text(text) }));
            return false;
        }
        self.reply_order.reply(self.pending.is_empty() && code >= 200);
        let transaction = self.pending.front().map(|front| front.transaction);
        // Some servers repeat the refused command.
        let is_hidden =
            code >= 400 && self.pending.front().is_some_and(|front| front.expects == Expects::Hidden);
        out(Message::Reply(Reply {
            transaction,
            code,
            text: Text(if is_hidden { &[] } else { text }),
            is_truncated,
            is_malformed,
        }));
        let passive = match code {
            227 => find_host_port(text).map(|(address, port)| (Some(address), port)),
            229 => find_extended_port(text).map(|port| (None, port)),
            _ => None,
        };
        // An unrequested reply announces nothing.
        let is_requested = self.pending.front().is_none_or(|front| front.expects == Expects::Passive);
        if let Some((address, port)) = passive.filter(|_| is_requested) {
            self.expect(DataEnd { address, port, opened_by: Role::Client }, transaction, out);
        }
        if (100..200).contains(&code) {
            if let Some(front) = self.pending.front_mut() {
                front.announced_len = front.announced_len.or(announced_len(text));
            }
            return false;
        }
        let Some(front) = self.pending.pop_front() else {
            let is_of_auth = self.tls.is_requested() || !*Role::Client.of(&self.has_sent);
            return code == 234 && is_of_auth && self.tls.grant();
        };
        self.names_len -= front.name.len();
        let is_success = (200..300).contains(&code);
        match front.expects {
            Expects::Tls if code == 234 => return self.tls.grant(),
            Expects::Tls => self.tls = StartTls::No,
            Expects::Active(Some((address, port))) if is_success => {
                let end = DataEnd { address: Some(address), port, opened_by: Role::Server };
                self.expect(end, transaction, out);
            }
            Expects::Size => {
                let announced = decimal(text.trim_ascii()).filter(|_| code == 213);
                if let Some((name, _)) = self.size.take() {
                    self.names_len -= name.len();
                }
                self.size = announced.map(|len| (front.name, len));
                self.names_len += self.size.as_ref().map_or(0, |(name, _)| name.len());
            }
            Expects::Restart(offset) => self.restart_offset = offset.filter(|_| code == 350),
            Expects::Transfer(TransferVerb(verb)) => {
                let known = self.size.as_ref().filter(|(name, _)| *name == front.name).map(|(_, len)| *len);
                out(Message::Transfer(Transfer {
                    transaction: front.transaction,
                    verb,
                    name: Some(Text(&front.name)).filter(|name| !name.is_empty()),
                    announced_len: front.announced_len.or(known.filter(|_| verb == "RETR")),
                    restart_offset: self.restart_offset.take(),
                    data: self.data.take(),
                    code,
                    is_complete: is_success,
                }));
            }
            _ => {}
        }
        false
    }

    fn expect(&mut self, end: DataEnd, transaction: Option<u64>, out: Out<'_, Self>) {
        self.data = Some(end);
        out(Message::DataConnection(DataConnection { transaction, end }));
    }
}

/// Returns the name of a command in capitals; `None` if it is longer than the known ones.
fn verb(word: &[u8]) -> Option<Verb> {
    let mut verb = Verb::default();
    verb.get_mut(..word.len())?.copy_from_slice(word);
    verb.make_ascii_uppercase();
    Some(verb)
}

/// Returns whether octets after a gap begin with a known FTP command, rather than with the rest of a line; `None` if
/// there are too few octets.
fn begins_with_command(octets: &[u8]) -> Option<bool> {
    let window = octets.get(..=size_of::<Verb>()).unwrap_or(octets);
    let end = window.iter().position(|octet| !octet.is_ascii_alphabetic());
    let Some((word, end)) = end.and_then(|end| Some((window.get(..end)?, window.get(end)?))) else {
        return (window.len() > size_of::<Verb>()).then_some(false);
    };
    let is_known = verb(word).is_some_and(|verb| SHOWN.contains(&verb) || HIDDEN.contains(&verb));
    Some(matches!(end, b' ' | b'\r' | b'\n') && is_known)
}

/// Returns whether the mechanism of an AUTH command requests TLS, under any of its names (RFC 4217 section 4, and
/// drafts before it).
fn is_tls(mechanism: &[u8]) -> bool {
    [b"TLS".as_slice(), b"TLS-C", b"TLS-P", b"SSL"].iter().any(|known| mechanism.eq_ignore_ascii_case(known))
}

/// Returns a command line without the Telnet control characters that are sent with ABOR (RFC 959 section 4.1.3).
fn without_telnet(mut line: &[u8]) -> &[u8] {
    while let [0xFF, sign, rest @ ..] = line {
        line = if (0xFB..=0xFE).contains(sign) { rest.get(1..).unwrap_or_default() } else { rest };
    }
    // The urgent octet of a Synch may occur alone.
    line.strip_prefix(&[0xF2]).unwrap_or(line)
}
