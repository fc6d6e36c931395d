//! Mail that is fetched: IMAP, POP3.

use super::octets::{begins_with, begins_with_word, dialogue};
use crate::session::{Protocol, StreamOpening, Verdict};

/// IMAP (RFC 9051): the greeting, or in the middle a tagged command or an answer.
pub static IMAP: Protocol = Protocol::new("imap").over_streams(&[143], Some(imap));

/// POP3 (RFC 1939): the greeting; commands that FTP has as well count on port 110 only.
pub static POP3: Protocol = Protocol::new("pop3").over_streams(&[110], Some(pop3));

/// Octets that a tag may have here; those that programs make have five or six.
const TAG_LEN_MAX: usize = 16;

const IMAP_COMMANDS: &[&[u8]] = &[
    b"APPEND ",
    b"AUTHENTICATE ",
    b"CAPABILITY\r\n",
    b"CLOSE\r\n",
    b"EXAMINE ",
    b"FETCH ",
    b"IDLE\r\n",
    b"LIST \"",
    b"LOGIN ",
    b"LOGOUT\r\n",
    b"LSUB \"",
    b"NAMESPACE\r\n",
    b"SELECT ",
    b"STARTTLS\r\n",
    b"STATUS ",
    b"STORE ",
    b"UID FETCH ",
    b"UID SEARCH ",
    b"UID STORE ",
];

const IMAP_UNTAGGED: &[&[u8]] = &[
    b"BYE ",
    b"CAPABILITY IMAP",
    b"FLAGS (",
    b"LIST (",
    b"LSUB (",
    b"OK ",
    b"PREAUTH ",
    b"SEARCH ",
    b"STATUS ",
];

fn imap(opening: &StreamOpening<'_>) -> Verdict {
    dialogue(opening, imap_command, imap_answer)
}

/// What follows the tag, if one is whole; three digits alone are a reply of SMTP or FTP.
fn after_tag(bytes: &[u8]) -> Result<(&[u8], &[u8]), Verdict> {
    let head = bytes.get(..TAG_LEN_MAX + 1).unwrap_or(bytes);
    let tag_len = head.iter().position(|octet| !octet.is_ascii_alphanumeric() && *octet != b'.');
    let Some((tag, rest)) = tag_len.and_then(|len| bytes.split_at_checked(len)) else {
        return Err(if bytes.len() <= TAG_LEN_MAX { Verdict::More } else { Verdict::No });
    };
    let has_digit = tag.iter().any(u8::is_ascii_digit) || tag == b".";
    let is_reply = tag.len() == 3 && tag.iter().all(u8::is_ascii_digit);
    match rest {
        [b' ', rest @ ..] if has_digit && !is_reply => Ok((tag, rest)),
        _ => Err(Verdict::No),
    }
}

fn imap_command(bytes: &[u8]) -> Verdict {
    match after_tag(bytes) {
        Ok((_, rest)) => begins_with_word(rest, IMAP_COMMANDS),
        Err(verdict) => verdict,
    }
}

fn imap_answer(bytes: &[u8]) -> Verdict {
    match bytes {
        [] | [b'*'] | [b'*', b' '] => Verdict::More,
        [b'*', b' ', rest @ ..] => {
            let digit_count = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
            match rest.split_at_checked(digit_count) {
                Some((number, after)) if (1..=10).contains(&number.len()) => {
                    begins_with(after, &[b" EXISTS\r\n", b" RECENT\r\n", b" FETCH (", b" EXPUNGE\r\n"])
                }
                _ => begins_with_word(rest, IMAP_UNTAGGED),
            }
        }
        _ => match after_tag(bytes) {
            Ok((tag, rest)) if tag.iter().any(u8::is_ascii_alphabetic) => {
                begins_with(rest, &[b"OK ", b"NO ", b"BAD "])
            }
            Ok(_) => Verdict::No,
            Err(verdict) => verdict,
        },
    }
}

fn pop3(opening: &StreamOpening<'_>) -> Verdict {
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
    // Without a text, `+OK` is what Redis says too.
    let answer = |bytes: &[u8]| {
        let texts: &[&[u8]] = if is_on_port { &[b"+OK ", b"+OK\r\n", b"-ERR"] } else { &[b"+OK "] };
        begins_with(bytes, texts)
    };
    dialogue(opening, command, answer)
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::samples::{Sample, client, server};
    use super::{IMAP, POP3};

    pub(in super::super) const SAMPLES: &[Sample] = &[
        server(&IMAP, 143, b"* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n"),
        client(&IMAP, 143, b"a1 login joe secret\r\n"),
        client(&IMAP, 10_143, b"7.1 UID FETCH 1:* (FLAGS)\r\n"),
        server(&IMAP, 143, b"* 23 EXISTS\r\n"),
        server(&IMAP, 143, b"A0001 OK LOGIN completed\r\n"),
        server(&POP3, 110, b"+OK POP3 ready <1896.697170952@x>\r\n"),
        server(&POP3, 1100, b"+OK ready\r\n"),
        server(&POP3, 110, b"-ERR too many connections\r\n"),
        client(&POP3, 110, b"USER joe\r\n"),
        client(&POP3, 1100, b"CAPA\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        client(&IMAP, 143, b"250 STARTTLS\r\n"),
        server(&IMAP, 143, b"250 OK done\r\n"),
        client(&IMAP, 143, b"GET / HTTP/1.1\r\n"),
        server(&IMAP, 143, b"*3\r\n$3\r\nSET\r\n"),
        server(&IMAP, 143, b"220 mail.example ESMTP\r\n"),
        server(&POP3, 6379, b"+OK\r\n"),
        client(&POP3, 21, b"USER joe\r\n"),
        server(&POP3, 110, b"+PONG\r\n"),
    ];
}
