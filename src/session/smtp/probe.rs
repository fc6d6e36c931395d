//! How SMTP is recognised: by words of the greeting, or the client's first command.

use memchr::memrchr;

use super::super::lines::{first_word, search_lines, starts_with_ignore_case};
use super::PORTS;
use super::command::Verb;
use crate::session::{Role, Search, StreamOpening, Verdict};

/// A greeting that says SMTP, or a 220 that the client answers with HELO in one of its forms. Without a server's word, HELO or
/// MAIL FROM. On the ports of SMTP, refusals too. The other way round where a capture began in the middle.
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
                // In the middle of a dialogue, MAIL or RCPT may yet come.
                (false, _) if has_port => Verdict::More,
                _ => Verdict::No,
            }
        }
        // Either words are still to come, or the client is to tell.
        Words::Beginning | Words::Silent | Words::Greeting => match client {
            Verdict::No if !(has_port && may_be_command(opening.client)) => Verdict::No,
            _ => Verdict::More,
        },
    }
}

/// Searches for a command that only SMTP has, or a greeting with its word.
pub(super) fn search(from: Role, bytes: &[u8]) -> Search {
    search_lines(bytes, |line| match from {
        Role::Client => client_verdict(line),
        Role::Server => Verdict::of(greeting_words(line) == Words::Smtp),
    })
}

/// What a server's first octets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Words {
    /// Nothing.
    Silent,
    /// Something that is no reply.
    Refuted,
    /// A greeting whose first line is not whole, without words so far.
    Beginning,
    /// 220 with the word SMTP or LMTP.
    Smtp,
    /// 220 with the word FTP.
    Ftp,
    /// 220 with neither.
    Greeting,
    /// Another reply.
    Reply,
}

/// Looks for words in the lines of a greeting.
pub(in crate::session) fn greeting_words(server: &[u8]) -> Words {
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
    // A word of a line that is not whole may go on.
    let Some(end) = memrchr(b'\n', rest) else { return Words::Beginning };
    let lines = rest.get(..end).unwrap_or_default();
    let found = lines.split(u8::is_ascii_whitespace).find_map(|word| {
        // Names of hosts say nothing: `smtp.example.org` may well serve files.
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

/// Commands that only SMTP has, at the start of what a client said.
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

/// Whether the first word is a command that is known, or not whole.
fn may_be_command(client: &[u8]) -> bool {
    let (word, _) = first_word(client);
    Verb::of(word) != Verb::Other
        || (word.len() == client.len() && word.len() < 10 && word.iter().all(u8::is_ascii_alphabetic))
}
