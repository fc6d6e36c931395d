//! POP3: a row for each command with the answer of the server, up to TLS after STLS.
//!
//! Mails are counted, not kept; passwords neither.
//!
//! Standards: RFC 1939, 2449 (CAPA), 2595 (STLS), 5034 (AUTH).

use super::recognizers::octets::{begins_with, begins_with_word, dialogue};
use super::tls;
use crate::checkpoint::state;
use crate::session::framing::{AfterPdu, Framing, Pdu};
use crate::session::kit::{Kept, Malformed, PduParser, Reply, Rows, exchange, open};
use crate::session::{OctetSet, Protocol, Role, StreamOpening, Verdict};

/// Protocol `pop3`, recognized by the greeting or a command; commands that FTP shares count on port 110 only.
pub static PROTOCOL: Protocol = Protocol::new("pop3")
    .in_zeek("pop3")
    .in_eve("pop3")
    .over_streams(&[110], Some(probe))
    .streams_begin_with(OctetSet::LETTERS.and(OctetSet::of(b"+-")))
    .leading_on()
    .with_kinds(&["pop3"])
    .with_message_len_min(5)
    .with_limits("32 open commands; lines of 4 KiB, texts of 256 octets")
    .with_standards("RFC 1939, 2449, 2595, 5034");

fn probe(opening: &StreamOpening<'_>) -> Verdict {
    let is_on_port = opening.has_port(110);
    let command = |bytes: &[u8]| {
        let plain = begins_with_word(bytes, &[b"CAPA\r\n", b"APOP ", b"UIDL\r\n", b"UIDL ", b"STLS\r\n"]);
        if plain == Verdict::No && is_on_port {
            begins_with_word(
                bytes,
                &[
                    b"AUTH",
                    b"USER ",
                    b"PASS ",
                    b"STAT\r\n",
                    b"LIST",
                    b"RETR ",
                    b"TOP ",
                    b"DELE ",
                    b"QUIT\r\n",
                ],
            )
        } else {
            plain
        }
    };
    // Without text, `+OK` is also a Redis reply.
    let answer = |bytes: &[u8]| {
        let texts: &[&[u8]] = if is_on_port { &[b"+OK ", b"+OK\r\n", b"-ERR"] } else { &[b"+OK "] };
        begins_with(bytes, texts)
    };
    dialogue(opening, command, answer)
}

exchange! {
    /// A command with the answer of the server; the greeting, which has no command.
    "pop3" pub struct Exchange {
        /// Command, in capital letters; null of a greeting, or if it was not captured.
        pub command: Option<Kept<8>>,
        /// Argument: neither passwords nor what proves them, of AUTH the mechanism only.
        pub argument: Option<Kept<256>>,
        /// True if the server accepts the command.
        pub is_success: Option<bool>,
        /// Text of the answer.
        pub reply_text: Option<Kept<256>>,
        /// Number of octets of the lines after it, such as those of a mail; of lines of more than 4 KiB the first ones count.
        pub data_len: Option<u64> [octets],
    }
}

open! {
    /// Rows of POP3.
    pub(crate) enum Row { 0 = Exchange }
}

/// What follows the answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// Nothing.
    Line,
    /// Lines up to one with a single dot.
    Lines,
    /// Questions and answers of an authentication.
    Proof,
    /// TLS.
    Tls,
}

state! { enum Expects { 0 = Line, 1 = Lines, 2 = Proof, 3 = Tls } }

/// Number of commands that may wait for an answer.
const OPEN_MAX: usize = 32;

/// Parser of POP3.
#[derive(Debug, Default)]
pub(crate) struct Pop3 {
    expected: Vec<Expects>,
    has_greeted: bool,
    /// True if the first command is one with which connections begin.
    is_opened: bool,
    /// Number of octets of the lines that follow an answer, while they do.
    data_len: Option<u64>,
}

state! { struct Pop3 { expected, has_greeted, is_opened, data_len } if |parser| parser.expected.len() <= OPEN_MAX }

impl PduParser for Pop3 {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::LINES.keep(4096));
    const OPEN_MAX: usize = OPEN_MAX;
    const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_secs(600);
    type Row = Row;

    fn heap_len(&self) -> usize {
        self.expected.capacity() * size_of::<Expects>()
    }

    fn asked_for(&self) -> Option<&'static Protocol> {
        self.expected.contains(&Expects::Tls).then_some(&tls::PROTOCOL)
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let line = pdu.bytes.strip_suffix(b"\n").unwrap_or(pdu.bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match pdu.from {
            Role::Client => self.command(line, rows),
            Role::Server => Ok(self.answer(line, (pdu.offset, pdu.len), rows)),
        }
    }
}

impl Pop3 {
    fn command(&mut self, line: &[u8], rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        // A line of an authentication is a proof, or a password.
        if self.expected.last() == Some(&Expects::Proof) {
            return Ok(AfterPdu::More);
        }
        let (verb, rest) = split(line);
        let is_verb = (3..=8).contains(&verb.len()) && verb.iter().all(u8::is_ascii_alphanumeric);
        if !is_verb {
            return Err(Malformed);
        }
        // As of the open rows, the oldest one is displaced.
        if self.expected.len() == OPEN_MAX {
            self.expected.remove(0);
        }
        let command = verb.to_ascii_uppercase();
        self.is_opened |= !self.has_greeted
            && self.expected.is_empty()
            && matches!(&*command, b"APOP" | b"AUTH" | b"CAPA" | b"STLS" | b"USER");
        let argument = match &*command {
            b"PASS" => &[][..],
            b"APOP" | b"AUTH" => split(rest).0,
            _ => rest,
        };
        let expects = match (&*command, rest) {
            (b"RETR" | b"TOP" | b"CAPA", _) | (b"LIST" | b"UIDL" | b"AUTH", []) => Expects::Lines,
            (b"AUTH", _) => Expects::Proof,
            (b"STLS", _) => Expects::Tls,
            _ => Expects::Line,
        };
        self.expected.push(expects);
        rows.request(0, |row: &mut Exchange| {
            row.command = Some(Kept::new(&command));
            row.argument = Some(Kept::new(argument)).filter(|_| !argument.is_empty());
        });
        Ok(AfterPdu::More)
    }

    fn answer(&mut self, line: &[u8], (offset, len): (u64, u64), rows: &mut Rows<'_, Row>) -> AfterPdu {
        if let Some(data_len) = &mut self.data_len {
            if line != b"." {
                *data_len += len;
                return AfterPdu::More;
            }
            let data_len = self.data_len.take();
            rows.response(0, |row: &mut Exchange| {
                row.data_len = data_len;
                Reply::Last
            });
            return AfterPdu::More;
        }
        let (status, text) = split(line);
        let is_success = match status {
            b"+OK" => true,
            b"-ERR" => false,
            // A question of an authentication, or the rest of something that is missing.
            _ => return AfterPdu::More,
        };
        let reply_text = Some(Kept::new(text)).filter(|_| !text.is_empty());
        let is_first = !std::mem::replace(&mut self.has_greeted, true);
        // The greeting may be captured after the first commands.
        let is_greeting =
            is_first && (self.expected.is_empty() || (offset == 0 && is_success && self.is_opened));
        if is_greeting {
            rows.acts_as(Role::Server);
            rows.single(Exchange { is_success: Some(is_success), reply_text, ..Exchange::default() });
            return AfterPdu::More;
        }
        let expects = if self.expected.is_empty() { Expects::Line } else { self.expected.remove(0) };
        let has_lines = expects == Expects::Lines && is_success;
        self.data_len = has_lines.then_some(0);
        rows.response(0, |row: &mut Exchange| {
            (row.is_success, row.reply_text) = (Some(is_success), reply_text);
            if has_lines { Reply::More } else { Reply::Last }
        });
        match expects {
            Expects::Tls if is_success => AfterPdu::Handover(Some(&tls::PROTOCOL)),
            _ => AfterPdu::More,
        }
    }
}

/// Returns the first word of a line, and what follows it.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|octet| *octet == b' ').unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (word, rest.trim_ascii())
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, server};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        server(&PROTOCOL, 110, b"+OK POP3 ready <1896.697170952@x>\r\n"),
        server(&PROTOCOL, 1100, b"+OK ready\r\n"),
        server(&PROTOCOL, 110, b"-ERR too many connections\r\n"),
        client(&PROTOCOL, 110, b"USER joe\r\n"),
        client(&PROTOCOL, 1100, b"CAPA\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        server(&PROTOCOL, 6379, b"+OK\r\n"),
        client(&PROTOCOL, 21, b"USER joe\r\n"),
        server(&PROTOCOL, 110, b"+PONG\r\n"),
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
    fn cases_of_commands() {
        let line = |text: &str| text.as_bytes().to_vec();
        let cases = [
            Case {
                name: "a login with a password, and a mail",
                turns: vec![
                    (SERVER, line("+OK ready\r\n")),
                    (CLIENT, line("user alice\r\n")),
                    (SERVER, line("+OK\r\n")),
                    (CLIENT, line("PASS secret\r\n")),
                    (SERVER, line("-ERR no\r\n")),
                    (CLIENT, line("LIST\r\nRETR 1\r\n")),
                    (SERVER, line("+OK 1 message\r\n1 20\r\n.\r\n+OK\r\nSubject: a\r\n\r\n..b\r\n.\r\n")),
                ],
                rows: &[
                    "pop3 is_success=Bool(true) reply_text=ready",
                    "pop3 command=USER argument=alice is_success=Bool(true) response_time=10ms",
                    "pop3 command=PASS reply_text=no response_time=10ms",
                    "pop3 command=LIST is_success=Bool(true) reply_text=1 message data_len=6 response_time=10ms",
                    "pop3 command=RETR argument=1 is_success=Bool(true) data_len=19 response_time=10ms",
                ],
            },
            Case {
                name: "an authentication whose proofs are not read, and TLS",
                turns: vec![
                    (CLIENT, line("AUTH PLAIN\r\n")),
                    (SERVER, line("+ \r\n")),
                    (CLIENT, line("AGFsaWNlAHNlY3JldA==\r\n")),
                    (SERVER, line("-ERR no\r\n")),
                    (CLIENT, line("APOP alice c4c9334bac560ecc979e58001b3e22fb\r\n")),
                    (SERVER, line("-ERR no\r\n")),
                    (CLIENT, line("STLS\r\n")),
                    (SERVER, line("+OK begin\r\n")),
                ],
                rows: &[
                    "pop3 command=AUTH argument=PLAIN reply_text=no response_time=30ms",
                    "pop3 command=APOP argument=alice reply_text=no response_time=10ms",
                    "pop3 command=STLS is_success=Bool(true) reply_text=begin response_time=10ms",
                ],
            },
            Case {
                name: "the server late: a greeting after the first command, and TLS before the answer",
                turns: vec![
                    (CLIENT, line("CAPA\r\n")),
                    (SERVER, line("+OK ready\r\n+OK\r\nSTLS\r\n.\r\n")),
                    (CLIENT, [b"STLS\r\n\x16\x03".as_slice(), &[1; 200]].concat()),
                    (SERVER, line("+OK begin\r\n")),
                ],
                rows: &[
                    "pop3 is_success=Bool(true) reply_text=ready",
                    "pop3 command=CAPA is_success=Bool(true) data_len=6 response_time=10ms",
                    "pop3 command=STLS is_success=Bool(true) reply_text=begin response_time=10ms",
                ],
            },
            Case {
                name: "TLS without an answer that was captured",
                turns: vec![(CLIENT, [b"STLS\r\n\x16\x03".as_slice(), &[1; 5000]].concat())],
                rows: &["pop3 command=STLS lacks=response"],
            },
            Case {
                name: "an answer without its command, and a command without an answer",
                turns: vec![(SERVER, line("-ERR busy\r\n-ERR no\r\n")), (CLIENT, line("STAT\r\n"))],
                rows: &[
                    "pop3 reply_text=busy",
                    "pop3 reply_text=no lacks=request",
                    "pop3 command=STAT lacks=response",
                ],
            },
        ];
        check_stream(&KitEntry::of::<Pop3>(), &cases);
    }
}
