//! syslog: a row for each message, in datagrams and in streams.
//!
//! Standards: RFC 5424, RFC 3164 (the older format, as it is in use), RFC 6587 (messages in streams: each follows its length, or ends
//! with LF). Structured data is part of the message.

use super::recognizers::octets::{is_printable, once};
use crate::checkpoint::state;
use crate::row::Name;
use crate::session::framing::{AfterPdu, Framing, Pdu, counted};
use crate::session::kit::{Kept, Malformed, PduParser, Rows, exchange, names, open};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, Search, StreamOpening, Text, Verdict};

/// Protocol `syslog`: recognized by a priority in angle brackets, and text; on port 514 also by text without a priority; on other
/// ports by a date or a version in addition. In streams, a priority of a client on port 514 or 601, after the length of the message
/// or at its beginning.
pub static PROTOCOL: Protocol = Protocol::new("syslog")
    .in_zeek("syslog")
    .over_datagrams(&[514], Some(probe))
    .datagrams_begin_with(OctetSet::LETTERS.and(OctetSet::of(b"<")))
    .over_streams(&[514, 601], Some(probe_stream))
    .streams_begin_with(OctetSet::of(b"<123456789"))
    .with_kinds(&["syslog"])
    .with_message_len_min(4)
    .with_limits("in streams messages of 4 KiB; texts of 2 KiB")
    .with_standards("RFC 3164, 5424, 6587");

/// Returns the priority at the start of a message, and what follows.
fn priority(message: &[u8]) -> Option<(u8, &[u8])> {
    let [b'<', rest @ ..] = message else { return None };
    let digits = rest.iter().take(4).take_while(|octet| octet.is_ascii_digit()).count();
    let (number, [b'>', text @ ..]) = rest.split_at_checked(digits)? else { return None };
    let priority = number.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    let priority =
        u8::try_from(priority).ok().filter(|priority| (1..=3).contains(&digits) && *priority <= 191);
    priority.map(|priority| (priority, text))
}

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let Some((_, text)) = priority(opening.bytes) else {
        // A message without a priority (RFC 3164 section 4.3.3) begins with its text.
        let is_text = |text: &[u8]| {
            is_printable(text) && text.contains(&b' ') && text.first().is_some_and(u8::is_ascii_alphabetic)
        };
        return Verdict::of(opening.has_port(514) && opening.bytes.get(..16).is_some_and(is_text));
    };
    if !is_printable(text.get(..8).unwrap_or(text)) {
        return Verdict::No;
    }
    let has_date = match text {
        // RFC 5424 section 6.2.2.
        [b'1'..=b'9', b' ', ..] => true,
        // RFC 3164 section 4.1.2: the abbreviation of a month.
        [a, b, c, b' ', ..] => MONTHS.contains(&[*a, *b, *c]),
        _ => false,
    };
    Verdict::of(opening.has_port(514) || has_date)
}

const MONTHS: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct", *b"Nov",
    *b"Dec",
];

fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    if !matches!(opening.server_port, 514 | 601) || !opening.server.is_empty() {
        return Verdict::No;
    }
    let message = match (opening.client, counted(opening.client)) {
        (_, Some((_, head_len))) => opening.client.get(head_len..).unwrap_or_default(),
        ([b'1'..=b'9', digits @ ..], None) if digits.iter().all(u8::is_ascii_digit) && digits.len() < 6 => {
            &[]
        }
        (octets, None) => octets,
    };
    match message {
        [] => Verdict::More,
        [b'<', ..] => once(message, 6, || priority(message).is_some()),
        _ => Verdict::No,
    }
}

/// Searches the next message after a gap: a priority, after a length or the end of a line.
fn search(_: Role, octets: &[u8]) -> Search {
    for at in memchr::memchr_iter(b'<', octets) {
        let (before, message) = octets.split_at(at);
        if message.len() < 5 {
            // The rest of the priority, and the digits in front of it, follow or are kept.
            return search_from(octets, at);
        }
        if priority(message).is_none() {
            continue;
        }
        if let Some(number) = before.strip_suffix(b" ") {
            let digits = number.iter().rev().take(6).take_while(|octet| octet.is_ascii_digit()).count();
            if digits > 0 {
                return Search::Found(at - 1 - digits);
            }
        }
        if before.last().is_none_or(|octet| *octet == b'\n') {
            return Search::Found(at);
        }
    }
    search_from(octets, octets.len())
}

/// Keeps the last octets before a place: a length with what precedes it, so that it is not taken for a shorter one, and a `<` with
/// what precedes it, so that it is not taken for the begin of a line.
fn search_from(octets: &[u8], place: usize) -> Search {
    let is_kept = |at: &usize| octets.get(*at).is_some_and(|octet| *octet == b'<' || octet.is_ascii_digit());
    let first = place.saturating_sub(8);
    let before = (first.saturating_sub(8)..=first).rev().find(|at| !is_kept(at));
    Search::From(before.unwrap_or(first.saturating_sub(8)))
}

/// Octets of a message that are kept.
const KEEP: usize = 4096;

names! {
    /// Part of the system from which a message is (RFC 5424 section 6.2.1).
    pub struct Facility: u8 {
        0 => "kern", 1 => "user", 2 => "mail", 3 => "daemon", 4 => "auth", 5 => "syslog", 6 => "lpr", 7 => "news",
        8 => "uucp", 9 => "cron", 10 => "authpriv", 11 => "ftp", 12 => "ntp", 13 => "audit", 14 => "alert",
        15 => "clock", 16 => "local0", 17 => "local1", 18 => "local2", 19 => "local3", 20 => "local4",
        21 => "local5", 22 => "local6", 23 => "local7",
    }
}

names! {
    /// Severity of a message (RFC 5424 section 6.2.1).
    pub struct Severity: u8 {
        0 => "emerg", 1 => "alert", 2 => "crit", 3 => "err", 4 => "warning", 5 => "notice", 6 => "info",
        7 => "debug",
    }
}

exchange! {
    /// A message.
    "syslog" pub struct Entry {
        /// Part of the system; null if the message has no priority.
        pub facility: Option<Facility>,
        /// Severity.
        pub severity: Option<Severity>,
        /// Version of the format: 1 for RFC 5424; null for the older one.
        pub version: Option<u8>,
        /// Name of the system that sent the message.
        pub hostname: Option<Kept<255>>,
        /// Name of the program.
        pub program: Option<Kept<64>>,
        /// Number of the process.
        pub process_id: Option<Kept<128>>,
        /// Everything after the priority: date, name of the system and program included.
        pub text: Kept<2048>,
        /// Octets of the message; of a longer line in a stream 4,097.
        pub message_octet_count: u64 [octets],
        ..
        /// True if the message was in a stream.
        is_in_stream: bool,
    }
    /// Messages of syslog.
    zeek "syslog" ['a] as row {
        /// `tcp` or `udp`.
        "proto": Name = Name(if row.is_in_stream { "tcp" } else { "udp" });
        /// `facility`, in capital letters.
        "facility": String = capitals(row.facility.map(|facility| facility.to_string()));
        /// `severity`, in capital letters.
        "severity": String = capitals(row.severity.map(|severity| severity.to_string()));
        /// `text`.
        "message": Text<'a> = row.text.text();
    }
}

fn capitals(name: Option<String>) -> String {
    name.map_or_else(|| "UNSPECIFIED".to_owned(), |name| name.to_ascii_uppercase())
}

open! {
    /// Rows of syslog.
    pub(crate) enum Row { 0 = Entry }
}

impl Entry {
    /// Reads what precedes the text of a message.
    fn read(&mut self, text: &[u8]) {
        let mut words = text.split(|octet| *octet == b' ');
        let present =
            |word: Option<&[u8]>| word.filter(|word| !word.is_empty() && *word != b"-").map(<[u8]>::to_vec);
        if let [version @ b'1'..=b'9', b' ', ..] = text {
            // RFC 5424 section 6: version, timestamp, host, program, process.
            self.version = Some(version - b'0');
            self.hostname = present(words.nth(2)).map(|word| Kept::new(&word));
            self.program = present(words.next()).map(|word| Kept::new(&word));
            self.process_id = present(words.next()).map(|word| Kept::new(&word));
            return;
        }
        // RFC 3164 section 4.1: "Mmm dd hh:mm:ss host program[process]:", where the day may begin with a space.
        let is_dated = text.get(..3).is_some_and(|month| MONTHS.iter().any(|known| known == month));
        let Some(rest) = text.get(16..).filter(|_| is_dated && text.get(15) == Some(&b' ')) else { return };
        let mut words = rest.splitn(3, |octet| *octet == b' ');
        let (host, tag) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // Some leave out the name of the system.
        let (host, tag) = if host.ends_with(b":") { (&b""[..], host) } else { (host, tag) };
        self.hostname = (!host.is_empty()).then(|| Kept::new(host));
        let Some(tag) = tag.strip_suffix(b":") else { return };
        let (program, process) = match memchr::memchr(b'[', tag) {
            Some(at) => (tag.get(..at), tag.get(at + 1..).and_then(|rest| rest.strip_suffix(b"]"))),
            None => (Some(tag), None),
        };
        self.program = program.map(Kept::new);
        self.process_id = process.map(Kept::new);
    }
}

/// Parser of syslog.
#[derive(Debug, Default)]
pub(crate) struct Syslog;

state! { struct Syslog {} }

impl PduParser for Syslog {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::COUNTED_LINES.keep(KEEP).resync(search));
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let is_in_stream = rows.is_in_stream();
        let mut octets = pdu.bytes;
        let mut len = pdu.len;
        if is_in_stream {
            if let Some((counted_len, head_len)) = counted(octets) {
                (octets, len) = (octets.get(head_len..).unwrap_or_default(), counted_len);
            } else if let Some(line) = octets.strip_suffix(b"\n") {
                (octets, len) = (line, len.saturating_sub(1));
            }
        }
        if octets.is_empty() {
            return Ok(AfterPdu::More);
        }
        let read = priority(octets);
        let text = read.map_or(octets, |(_, text)| text);
        let mut row = Entry {
            facility: read.map(|(priority, _)| Facility(priority >> 3)),
            severity: read.map(|(priority, _)| Severity(priority & 7)),
            text: Kept::new(text),
            message_octet_count: len,
            is_in_stream,
            ..Entry::default()
        };
        row.read(text);
        rows.acts_as(Role::Client);
        rows.single(row);
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&PROTOCOL, 514, b"<34>su: failed"),
        datagram(&PROTOCOL, 514, b"su: failed without a priority"),
        datagram(&PROTOCOL, 5140, b"<34>Oct 11 22:14:15 host su: failed"),
        datagram(&PROTOCOL, 5140, b"<165>1 2003-10-11T22:14:15.003Z host app - - - x"),
        client(&PROTOCOL, 514, b"<34>Oct 11 22:14:15 host su: failed\n"),
        client(&PROTOCOL, 601, b"15 <34>1 - - - - -"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&PROTOCOL, 514, b"<192>su: failed"),
        datagram(&PROTOCOL, 5140, b"<34>su: failed"),
        datagram(&PROTOCOL, 5140, b"su: failed without a priority"),
        datagram(&PROTOCOL, 514, b"<?xml version"),
        client(&PROTOCOL, 514, b"<?xml version"),
        client(&PROTOCOL, 5140, b"<34>Oct 11 22:14:15 host su: failed\n"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, check_stream};

    const CLIENT: Role = Role::Client;

    #[test]
    fn the_next_message_is_found_after_a_gap() {
        let found = |octets: &[u8]| search(CLIENT, octets);
        assert_eq!(found(b"est <1> no\n<13>a b"), Search::Found(11));
        assert_eq!(found(b"rest of one12 <13>a b c de"), Search::Found(11));
        assert_eq!(found(b"5 <13>a"), Search::Found(0));
        assert_eq!(found(b"<13>a b"), Search::Found(0));
        // Its number is kept until the priority is complete.
        assert_eq!(found(b"rest of one12 <1"), Search::From(6));
        assert_eq!(found(b"nothing of the kind"), Search::From(11));
        // What precedes a number, or a priority within a text, is kept with it: it decides what they are.
        for (octets, rest) in
            [(&b"length 125 <1"[..], &b"3>a b"[..]), (b"in a text <13><14><15", b"> and on")]
        {
            let Search::From(place) = found(octets) else { panic!("it is incomplete") };
            let followed = [&octets[place..], rest].concat();
            let found = found(&followed);
            let is_right = matches!(found, Search::Found(at) if followed[at..].starts_with(b"125 "));
            assert!(is_right || matches!(found, Search::From(_)), "{found:?} of {:?}", Text(&followed));
        }
    }

    #[test]
    fn cases_of_messages() {
        // RFC 5424 section 6.5, and RFC 3164 section 5.4.
        let new = b"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su 7 ID47 - 'su root' failed";
        let old = b"<13>Feb  5 17:32:18 10.0.0.99 cron[42]: job";
        let rows: &[&str] = &[
            "syslog facility=auth severity=crit version=1 hostname=mymachine.example.com program=su process_id=7 \
            text=1 2003-10-11T22:14:15.003Z mymachine.example.com su 7 ID47 - 'su root' failed message_octet_count=81",
            "syslog facility=user severity=notice hostname=10.0.0.99 program=cron process_id=42 \
            text=Feb  5 17:32:18 10.0.0.99 cron[42]: job message_octet_count=43",
        ];
        let datagrams = vec![(CLIENT, new.to_vec()), (CLIENT, old.to_vec())];
        check(&KitEntry::of::<Syslog>(), &[Case { name: "datagrams", turns: datagrams, rows }]);
        let counted = [new.len().to_string().as_bytes(), b" ", new].concat();
        let lines = [&old[..], b"\n"].concat();
        check_stream(
            &KitEntry::of::<Syslog>(),
            &[
                Case { name: "a stream", turns: vec![(CLIENT, counted), (CLIENT, lines)], rows },
                Case {
                    name: "a message without a host, one that begins with a digit, and the last one without an end",
                    turns: vec![(
                        CLIENT,
                        b"<34>Oct 11 22:14:15 sshd[1]: error: x\n2003-10-11 files\n<13>a".to_vec(),
                    )],
                    rows: &[
                        "syslog facility=auth severity=crit program=sshd process_id=1 \
                        text=Oct 11 22:14:15 sshd[1]: error: x message_octet_count=37",
                        "syslog text=2003-10-11 files message_octet_count=16",
                        "syslog facility=user severity=notice text=a message_octet_count=5",
                    ],
                },
            ],
        );
    }
}
