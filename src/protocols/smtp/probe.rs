//! Recognition of SMTP by words of the server's greeting, or by the client's first command.

use memchr::memrchr;

use super::command::Verb;
use crate::session::lines::{first_word, search_lines, starts_with_ignore_case};
use crate::session::{Role, Search, StreamOpening, Verdict};

/// Ports of servers.
pub(in crate::protocols) const PORTS: [u16; 3] = [25, 587, 2525];

/// Probe for SMTP. Matches a greeting that contains SMTP, or a 220 that the client answers with a form of HELO. Without
/// the server's octets, matches HELO or MAIL FROM. On the ports of SMTP, matches a refusal too. Roles may be reversed
/// if a capture began in the middle.
pub(super) fn probe(opening: &StreamOpening<'_>) -> Verdict {
    match (straight(opening), straight(&opening.reversed())) {
        (Verdict::Match, _) => Verdict::Match,
        (_, Verdict::Match) => Verdict::MatchReversed,
        (Verdict::No, Verdict::No) => Verdict::No,
        _ => Verdict::More,
    }
}

fn straight(opening: &StreamOpening<'_>) -> Verdict {
    let client = client_verdict(opening.client);
    if client == Verdict::Match && (opening.server.is_empty() || starts_with_digits(opening.server)) {
        return Verdict::Match;
    }
    let has_port = PORTS.contains(&opening.server_port);
    match greeting_words(opening.server) {
        Words::Refuted => Verdict::No,
        Words::Smtp => Verdict::Match,
        Words::Ftp => Verdict::No,
        Words::Reply => {
            let is_refusal = matches!(opening.server.first(), Some(b'4' | b'5'));
            match (is_refusal && has_port, client) {
                (true, _) => Verdict::Match,
                // In the middle of a connection, MAIL or RCPT may still follow.
                (false, _) if has_port => Verdict::More,
                _ => Verdict::No,
            }
        }
        // Either words of the greeting are incomplete, or the client's octets decide.
        Words::Beginning | Words::Silent | Words::Greeting => match client {
            Verdict::No if !(has_port && may_be_command(opening.client)) => Verdict::No,
            _ => Verdict::More,
        },
    }
}

/// Searches the octets of the client for a command that only SMTP has, or those of the server for a greeting that
/// contains SMTP.
pub(super) fn search(from: Role, bytes: &[u8]) -> Search {
    search_lines(bytes, |line| match from {
        Role::Client => client_verdict(line),
        Role::Server => Verdict::of(greeting_words(line) == Words::Smtp),
    })
}

/// Classification of a server's first octets, which distinguishes SMTP and FTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocols) enum Words {
    /// The server sent no octets.
    Silent,
    /// The octets are not a reply.
    Refuted,
    /// The octets are a greeting of which the first line is incomplete, and contains none of the words so far.
    Beginning,
    /// The greeting is a 220 with the word SMTP or LMTP.
    Smtp,
    /// The greeting is a 220 with the word FTP.
    Ftp,
    /// The greeting is a 220 with none of the words SMTP, LMTP and FTP.
    Greeting,
    /// The octets are a reply other than 220.
    Reply,
}

/// Searches for the words SMTP, LMTP and FTP in the lines of a server's greeting.
pub(in crate::protocols) fn greeting_words(server: &[u8]) -> Words {
    if server.is_empty() {
        return Words::Silent;
    }
    let Some((code, rest)) = server.split_first_chunk::<3>() else {
        return if starts_with_digits(server) { Words::Beginning } else { Words::Refuted };
    };
    if !starts_with_digits(server) || !matches!(rest.first(), None | Some(b' ' | b'-' | b'\r' | b'\n')) {
        return Words::Refuted;
    }
    if code != b"220" {
        return Words::Reply;
    }
    // A word of an incomplete line may continue.
    let Some(end) = memrchr(b'\n', rest) else { return Words::Beginning };
    let lines = rest.get(..end).unwrap_or_default();
    let found = lines.split(u8::is_ascii_whitespace).find_map(|word| {
        // Host names are no evidence: `smtp.example.org` may be a file server.
        let word = word.strip_suffix(b".").unwrap_or(word);
        let has = |part: &[u8]| word.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
        match () {
            () if word.contains(&b'.') => None,
            () if has(b"SMTP") || has(b"LMTP") => Some(Words::Smtp),
            () if has(b"FTP") || has(b"FileZilla") => Some(Words::Ftp),
            () => None,
        }
    });
    found.unwrap_or(Words::Greeting)
}

fn starts_with_digits(bytes: &[u8]) -> bool {
    let first = bytes.get(..3).unwrap_or(bytes);
    first.iter().all(u8::is_ascii_digit) && matches!(first.first(), Some(b'1'..=b'5'))
}

/// Classifies the client's first octets: matches commands that only SMTP has.
fn client_verdict(client: &[u8]) -> Verdict {
    const STARTS: [&[u8]; 5] = [b"EHLO ", b"HELO ", b"LHLO ", b"MAIL FROM:", b"RCPT TO:"];
    let of = |start: &&[u8]| match client.get(..start.len()) {
        Some(_) => Verdict::of(starts_with_ignore_case(client, start)),
        None if starts_with_ignore_case(start, client) => Verdict::More,
        None => Verdict::No,
    };
    let verdicts = STARTS.map(|start| of(&start));
    [Verdict::Match, Verdict::More]
        .into_iter()
        .find(|verdict| verdicts.contains(verdict))
        .unwrap_or(Verdict::No)
}

/// Returns whether the client's first word is a known SMTP command, or the start of one.
fn may_be_command(client: &[u8]) -> bool {
    let (word, _) = first_word(client);
    Verb::of(word) != Verb::Other
        || (word.len() == client.len() && word.len() < 10 && word.iter().all(u8::is_ascii_alphabetic))
}
