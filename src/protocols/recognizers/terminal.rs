//! Recognizers of terminals and lookups: telnet, X11, whois.

use super::octets::{dialogue, either, is_printable};
use crate::session::{OctetSet, Protocol, StreamOpening, Verdict};

/// telnet (RFC 854), recognized by an option negotiation at the start.
pub static TELNET: Protocol = Protocol::new("telnet")
    .in_eve("telnet")
    .over_streams(&[23], Some(|opening| either(opening, telnet)))
    .streams_begin_with(OctetSet::of(b"\xFF"));

/// X11, recognized by the setup request of a client on ports 6000 to 6063.
pub static X11: Protocol =
    Protocol::new("x11").over_streams(&[6000, 6001], Some(x11)).streams_begin_with(OctetSet::of(b"lB"));

/// whois (RFC 3912), recognized by port 43, and a request of one line.
pub static WHOIS: Protocol = Protocol::new("whois").over_streams(&[43], Some(whois));

fn telnet(bytes: &[u8]) -> Verdict {
    match bytes {
        // WILL, WONT, DO, DONT, and a registered option; or the start of a subnegotiation.
        [0xFF, 0xFB..=0xFE, 0..=49 | 138..=140 | 255, ..] | [0xFF, 0xFA, 0..=49, ..] => Verdict::Match,
        [0xFF, 0xFA..=0xFE] | [0xFF] | [] => Verdict::More,
        _ => Verdict::No,
    }
}

fn x11(opening: &StreamOpening<'_>) -> Verdict {
    if !(6000..=6063).contains(&opening.server_port) {
        return Verdict::No;
    }
    let setup = |bytes: &[u8]| match bytes {
        [b'l', 0, 11, 0, 0, 0, ..] | [b'B', 0, 0, 11, 0, 0, ..] => Verdict::Match,
        [b'l' | b'B', ..] | [] if bytes.len() < 6 => Verdict::More,
        _ => Verdict::No,
    };
    dialogue(opening, setup, |_| Verdict::No)
}

fn whois(opening: &StreamOpening<'_>) -> Verdict {
    if opening.server_port != 43 || opening.client.is_empty() {
        return Verdict::No;
    }
    match opening.client {
        [line @ .., b'\r', b'\n'] | [line @ .., b'\r'] | line if is_printable(line) => {
            if opening.client.ends_with(b"\r\n") { Verdict::Match } else { Verdict::More }
        }
        _ => Verdict::No,
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, server};
    use super::{TELNET, WHOIS, X11};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        client(&TELNET, 23, b"\xFF\xFD\x03\xFF\xFB\x18"),
        server(&TELNET, 2323, b"\xFF\xFB\x01"),
        client(&X11, 6000, b"l\0\x0B\0\0\0\x12\0\x10\0\0\0"),
        client(&WHOIS, 43, b"example.com\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&TELNET, 23, b"\xFF\xFF\xFF\xFF"),
        client(&X11, 80, b"l\0\x0B\0\0\0\x12\0\x10\0\0\0"),
        client(&X11, 6000, b"l\0\x0C\0\0\0"),
        client(&WHOIS, 43, b"\x01\x02\r\n"),
        client(&WHOIS, 80, b"example.com\r\n"),
    ];
}
