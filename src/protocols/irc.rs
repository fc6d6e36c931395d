//! IRC: a row for each command of a client, and for what the server passes on from others.
//!
//! Of the numeric replies, those of errors, the welcome and topics have rows; pings have none. Passwords are not kept, nor what a
//! client tells a service that authenticates it. TLS follows STARTTLS.
//!
//! Standards: RFC 1459, 2812; DCC; capabilities and STARTTLS of `IRCv3`.

use super::recognizers::octets::{begins_with, begins_with_word, dialogue};
use super::tls;
use crate::checkpoint::state;
use crate::row::Displayed;
use crate::session::framing::{AfterPdu, Framing, Pdu};
use crate::session::kit::{Kept, Malformed, PduParser, Rows, exchange, open};
use crate::session::{OctetSet, Protocol, Role, StreamOpening, Text, Verdict};

/// Protocol `irc`, recognized by the registration of a client, a request for TLS, or the first messages of a server.
pub static PROTOCOL: Protocol = Protocol::new("irc")
    .in_zeek("irc")
    .in_eve("irc")
    .over_streams(&[6667], Some(probe))
    .streams_begin_with(OctetSet::LETTERS.and(OctetSet::of(b":")))
    .leading_on()
    .with_kinds(&["irc"])
    .with_message_len_min(5)
    .with_limits("lines of 4 KiB, texts of 256 octets, 16 channels of a command")
    .with_standards("RFC 1459, 2812");

/// Number of octets within which the first line must end.
const HEAD_LEN_MAX: usize = 256;

/// Matches the commands with which a client registers. FTP and POP3 share some of these commands.
fn registration(bytes: &[u8]) -> Verdict {
    let line_len = || bytes.iter().take(HEAD_LEN_MAX).position(|octet| *octet == b'\n');
    match begins_with_word(bytes, &[b"NICK ", b"CAP LS", b"CAP REQ ", b"USER ", b"PASS "]) {
        // NICK or CAP follows on the next line.
        Verdict::Match if matches!(bytes, [b'P' | b'p', ..]) => {
            match line_len().and_then(|len| bytes.get(len + 1..)) {
                Some(next) => begins_with_word(next, &[b"NICK ", b"CAP "]),
                None if bytes.len() < HEAD_LEN_MAX => Verdict::More,
                None => Verdict::No,
            }
        }
        // USER has four parameters; the same command of other protocols has one.
        Verdict::Match if matches!(bytes, [b'U' | b'u', ..]) => {
            let line_len = line_len();
            let line = bytes.get(..line_len.unwrap_or(bytes.len())).unwrap_or_default();
            match line.iter().filter(|octet| **octet == b' ').count() {
                4.. => Verdict::Match,
                _ if line_len.is_none() && bytes.len() < HEAD_LEN_MAX => Verdict::More,
                _ => Verdict::No,
            }
        }
        verdict => verdict,
    }
}

fn probe(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(6667);
    let answers = |bytes: &[u8]| match bytes {
        // A server name, then a notice or the first numerics.
        [b':', rest @ ..] => {
            let head = rest.get(..64).unwrap_or(rest);
            match head.iter().position(|octet| *octet == b' ').and_then(|at| rest.get(at + 1..)) {
                Some(command) => begins_with(
                    command,
                    &[b"NOTICE ", b"001 ", b"020 ", b"670 ", b"CAP ", b"PRIVMSG ", b"JOIN "],
                ),
                None if rest.len() < 64 => Verdict::More,
                None => Verdict::No,
            }
        }
        _ => begins_with(bytes, &[b"NOTICE AUTH :", b"NOTICE * :"]),
    };
    let commands = |bytes: &[u8]| match registration(bytes) {
        Verdict::No if is_on_port => begins_with_word(bytes, &[b"STARTTLS\r\n"]),
        verdict => verdict,
    };
    dialogue(opening, commands, answers)
}

exchange! {
    /// A command of a client, or a message of the server.
    "irc" pub struct Event {
        /// True if the client of the connection sends it.
        pub is_from_client: bool,
        /// Command in capital letters, or the number of a reply.
        pub command: Option<Kept<32>>,
        /// Nickname of the client until now.
        pub nick: Option<Kept<64>>,
        /// Name of the user that the client stated.
        pub user_name: Option<Kept<64>>,
        /// Who sends it, as the server says.
        pub prefix: Option<Kept<128>>,
        /// Channel, nickname or other first parameter.
        pub target: Option<Kept<128>>,
        /// Further parameters, and the text.
        pub text: Option<Kept<256>>,
        /// Name of a file that is offered (DCC).
        pub file_name: Option<Kept<128>>,
        /// Length of that file.
        pub file_len: Option<u64> [octets],
        ..
        /// Column `value` of Zeek.
        value: Option<Kept<128>>,
        /// Column `addl` of Zeek.
        addition: Option<Kept<256>>,
    }
    /// Names, channels and offers of files.
    zeek "irc" ['a] as row if (row.value.is_some()) {
        /// `nick`.
        "nick": Option<Text<'a>> = row.nick.as_ref().map(Kept::text);
        /// `user_name`.
        "user": Option<Text<'a>> = row.user_name.as_ref().map(Kept::text);
        /// `command`: NICK, USER, JOIN, or DCC for an offer.
        "command": Option<Text<'a>> =
            if row.file_name.is_some() { Some(Text(b"DCC")) } else { row.command.as_ref().map(Kept::text) };
        /// New nickname, user or channel; of DCC that of the row before.
        "value": Option<Text<'a>> = row.value.as_ref().map(Kept::text);
        /// Host, server and name of a user, or the key of a channel, which is not written.
        "addl": Option<Displayed<String>> =
            row.addition.as_ref().map(|addition| Displayed(addition.text().to_str_lossy().into_owned()));
        /// `file_name`.
        "dcc_file_name": Option<Text<'a>> = row.file_name.as_ref().map(Kept::text);
        /// `file_len`.
        "dcc_file_size": Option<u64> = row.file_len;
    }
}

open! {
    /// Rows of IRC.
    pub(crate) enum Row { 0 = Event }
}

/// Channels of a command that have rows.
const CHANNELS_MAX: usize = 16;

/// Services that authenticate users.
const SERVICES: [&[u8]; 5] = [b"nickserv", b"authserv", b"chanserv", b"userserv", b"q@cserve.quakenet.org"];

/// Parser of IRC.
#[derive(Debug, Default)]
pub(crate) struct Irc {
    nick: Option<Kept<64>>,
    user_name: Option<Kept<64>>,
    /// Columns `value` and `addl` of Zeek's latest row.
    value: Option<Kept<128>>,
    addition: Option<Kept<256>>,
    awaits_tls: bool,
}

state! { struct Irc { nick, user_name, value, addition, awaits_tls } }

/// A line: who sends it, the command, and its parameters, of which the last one may have spaces.
struct Line<'a> {
    prefix: &'a [u8],
    command: Vec<u8>,
    parameters: [&'a [u8]; 5],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = line.trim_ascii();
        // Tags (IRCv3).
        if rest.starts_with(b"@") {
            rest = word(rest).1;
        }
        let mut prefix = &[][..];
        if let Some(named) = rest.strip_prefix(b":") {
            (prefix, rest) = word(named);
        }
        let (command, mut rest) = word(rest);
        let is_command = (2..=20).contains(&command.len()) && command.iter().all(u8::is_ascii_alphanumeric);
        let mut parameters = [&[][..]; 5];
        for parameter in &mut parameters {
            if let Some(text) = rest.strip_prefix(b":") {
                *parameter = text;
                break;
            }
            (*parameter, rest) = word(rest);
        }
        is_command.then(|| Self { prefix, command: command.to_ascii_uppercase(), parameters })
    }

    /// Returns the parameters from a place on.
    fn from(&self, place: usize) -> Vec<u8> {
        let parameters = self.parameters.get(place..).unwrap_or_default();
        let given = parameters.iter().rposition(|parameter| !parameter.is_empty()).map_or(0, |last| last + 1);
        parameters.get(..given).unwrap_or_default().join(&b' ')
    }
}

/// Returns the first word of a line, and what follows it.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|octet| *octet == b' ').unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (word, rest.trim_ascii_start())
}

fn kept<const N: usize>(octets: &[u8]) -> Option<Kept<N>> {
    (!octets.is_empty()).then(|| Kept::new(octets))
}

/// Returns the name and the length of a file that a text offers: `DCC SEND name address port length` between octets of value 1.
fn offered(text: &[u8]) -> Option<(&[u8], Option<u64>)> {
    let offer = text.strip_prefix(b"\x01DCC SEND ")?;
    let offer = offer.strip_suffix(b"\x01").unwrap_or(offer);
    let (name, rest) = match offer.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = quoted.iter().position(|octet| *octet == b'"')?;
            (quoted.get(..end)?, quoted.get(end + 1..)?.trim_ascii_start())
        }
        None => word(offer),
    };
    let len = rest.split(|octet| *octet == b' ').nth(2);
    Some((name, len.and_then(|len| std::str::from_utf8(len).ok()?.parse().ok())))
}

impl PduParser for Irc {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::LINES.keep(4096));
    type Row = Row;

    fn heap_len(&self) -> usize {
        let texts = [self.nick.as_ref(), self.user_name.as_ref()]
            .into_iter()
            .flatten()
            .map(|kept| kept.text().0.len());
        let value = self.value.as_ref().map_or(0, |kept| kept.text().0.len());
        texts.sum::<usize>() + value + self.addition.as_ref().map_or(0, |kept| kept.text().0.len())
    }

    fn asked_for(&self) -> Option<&'static Protocol> {
        self.awaits_tls.then_some(&tls::PROTOCOL)
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        if pdu.bytes.trim_ascii().is_empty() {
            return Ok(AfterPdu::More);
        }
        let line = Line::parse(pdu.bytes).ok_or(Malformed)?;
        match pdu.from {
            Role::Client => self.command(&line, rows),
            Role::Server => return Ok(self.message(&line, rows)),
        }
        Ok(AfterPdu::More)
    }
}

impl Irc {
    fn row(&self, line: &Line<'_>, is_from_client: bool) -> Event {
        Event {
            is_from_client,
            command: kept(&line.command),
            nick: self.nick.clone(),
            user_name: self.user_name.clone(),
            prefix: kept(line.prefix),
            ..Event::default()
        }
    }

    fn command(&mut self, line: &Line<'_>, rows: &mut Rows<'_, Row>) {
        let mut row = self.row(line, true);
        let [first, second, third, fourth, _] = line.parameters;
        match &*line.command {
            b"PING" | b"PONG" => return,
            b"PASS" | b"AUTHENTICATE" => {}
            b"OPER" => row.target = kept(first),
            b"NICK" => {
                row.target = kept(first);
                self.value = kept(first);
                self.nick = kept(first);
            }
            b"USER" => {
                (row.target, row.text) = (kept(first), kept(&line.from(1)));
                (self.value, self.addition) = (kept(first), kept(&[second, third, fourth].join(&b' ')));
                self.user_name = kept(first);
            }
            b"JOIN" => return self.join(row, (first, second), rows),
            b"STARTTLS" => self.awaits_tls = true,
            _ => {
                row.target = kept(first);
                let is_secret = SERVICES.iter().any(|service| {
                    let is_service = |name: &[u8]| name.eq_ignore_ascii_case(service);
                    is_service(first) || is_service(&line.command) || is_service(word(first).0)
                });
                let text = line.from(1);
                if !is_secret {
                    row.text = kept(&text);
                }
                self.offer(&mut row, &text);
            }
        }
        if matches!(&*line.command, b"NICK" | b"USER") {
            (row.value, row.addition) = (self.value.clone(), self.addition.clone());
        }
        rows.single(row);
    }

    /// Adds a row for each channel that a client joins. The keys of channels are not kept.
    fn join(&mut self, row: Event, (channels, keys): (&[u8], &[u8]), rows: &mut Rows<'_, Row>) {
        let mut keys = keys.split(|octet| *octet == b',');
        for channel in channels.split(|octet| *octet == b',').take(CHANNELS_MAX) {
            let has_key = keys.next().is_some_and(|key| !key.is_empty());
            self.value = kept(channel);
            // Zeek writes `(empty)` for a text without octets.
            self.addition = Some(Kept::new(if has_key { b"with channel key" } else { b"" }));
            let (value, addition) = (self.value.clone(), self.addition.clone());
            rows.single(Event { target: kept(channel), value, addition, ..row.clone() });
        }
    }

    fn message(&mut self, line: &Line<'_>, rows: &mut Rows<'_, Row>) -> AfterPdu {
        let is_answer = std::mem::take(&mut self.awaits_tls);
        match &*line.command {
            b"670" if is_answer => return AfterPdu::Handover(Some(&tls::PROTOCOL)),
            b"691" | b"451" | b"421" if is_answer => {}
            // Notices come at any time.
            _ => self.awaits_tls = is_answer,
        }
        let number = std::str::from_utf8(&line.command).ok().and_then(|command| command.parse::<u16>().ok());
        let has_row = match number {
            Some(number) => matches!(number, 1 | 332 | 400..=599),
            None => !matches!(&*line.command, b"PING" | b"PONG" | b"CAP"),
        };
        if !has_row {
            return AfterPdu::More;
        }
        let mut row = self.row(line, false);
        // The first parameter of a reply is the client.
        let first = usize::from(number.is_some());
        let text = line.from(first + 1);
        (row.target, row.text) = (kept(line.parameters.get(first).copied().unwrap_or_default()), kept(&text));
        self.offer(&mut row, &text);
        rows.single(row);
        AfterPdu::More
    }

    fn offer(&self, row: &mut Event, text: &[u8]) {
        if let Some((name, len)) = offered(text) {
            (row.file_name, row.file_len) = (kept(name), len);
            (row.value, row.addition) = (self.value.clone(), self.addition.clone());
        }
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&PROTOCOL, 6667, b"NICK nemo\r\nUSER nemo 0 * :No one\r\n"),
        client(&PROTOCOL, 6667, b"USER nemo 0 * :No one\r\n"),
        client(&PROTOCOL, 6667, b"PASS secret\nNICK nemo\n"),
        client(&PROTOCOL, 6667, b"STARTTLS\r\n"),
        server(&PROTOCOL, 6667, b":irc.example NOTICE AUTH :*** Looking up your name\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&PROTOCOL, 21, b"USER nemo\r\n"),
        client(&PROTOCOL, 110, b"PASS secret\r\nSTAT\r\n"),
        client(&PROTOCOL, 21, b"STARTTLS\r\n"),
        server(&PROTOCOL, 6667, b":this is nothing of the kind\r\n"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    #[test]
    fn cases_of_lines() {
        let line = |text: &str| text.as_bytes().to_vec();
        let cases = [
            Case {
                name: "a registration, channels, and texts of both sides",
                turns: vec![
                    (CLIENT, line("PASS secret\r\nNICK joe\r\nUSER joe 0 * :Joe Doe\r\n")),
                    (
                        SERVER,
                        line(":irc.example 001 joe :Welcome\r\n:irc.example 372 joe :- text\r\nPING :1\r\n"),
                    ),
                    (CLIENT, line("PONG :1\r\njoin #a,#b key\r\n")),
                    (
                        SERVER,
                        line(":irc.example 332 joe #a :The topic\r\n:ann!a@h PRIVMSG #a :hello joe\r\n"),
                    ),
                    (
                        CLIENT,
                        line("PRIVMSG NickServ :IDENTIFY secret\r\nPRIVMSG #a :hello\r\nOPER joe secret\r\n"),
                    ),
                    (SERVER, line(":ann!a@h PRIVMSG joe :\x01DCC SEND a.zip 167772161 5000 42208\x01\r\n")),
                ],
                rows: &[
                    "irc is_from_client=Bool(true) command=PASS",
                    "irc is_from_client=Bool(true) command=NICK target=joe",
                    "irc is_from_client=Bool(true) command=USER nick=joe target=joe text=0 * Joe Doe",
                    "irc command=001 nick=joe user_name=joe prefix=irc.example target=Welcome",
                    "irc is_from_client=Bool(true) command=JOIN nick=joe user_name=joe target=#a",
                    "irc is_from_client=Bool(true) command=JOIN nick=joe user_name=joe target=#b",
                    "irc command=332 nick=joe user_name=joe prefix=irc.example target=#a text=The topic",
                    "irc command=PRIVMSG nick=joe user_name=joe prefix=ann!a@h target=#a text=hello joe",
                    "irc is_from_client=Bool(true) command=PRIVMSG nick=joe user_name=joe target=NickServ",
                    "irc is_from_client=Bool(true) command=PRIVMSG nick=joe user_name=joe target=#a text=hello",
                    "irc is_from_client=Bool(true) command=OPER nick=joe user_name=joe target=joe",
                    "irc command=PRIVMSG nick=joe user_name=joe prefix=ann!a@h target=joe \
                    text=\u{1}DCC SEND a.zip 167772161 5000 42208\u{1} file_name=a.zip file_len=42208",
                ],
            },
            Case {
                name: "TLS that is refused, and TLS",
                turns: vec![
                    (CLIENT, line("STARTTLS\r\n")),
                    (SERVER, line(":irc.example 691 * :No\r\n")),
                    (CLIENT, line("STARTTLS\r\n")),
                    (SERVER, line(":irc.example 670 * :Go\r\n")),
                ],
                rows: &[
                    "irc is_from_client=Bool(true) command=STARTTLS",
                    "irc is_from_client=Bool(true) command=STARTTLS",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Irc>(), &cases);
    }
}
