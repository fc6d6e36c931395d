//! Recognition of FTP by words of the server's greeting, or by the client's first command after a reply 220.

use super::super::smtp::{Words, greeting_words};
use crate::session::lines::{first_word, search_lines};
use crate::session::{Role, Search, StreamOpening, Verdict};

/// Ports of servers.
pub(super) const PORTS: [u16; 1] = [21];

/// Number of octets that suffice for a command and the first word of its argument.
const HEAD_LEN: usize = 64;

/// Probe for FTP. Matches a greeting that contains FTP, or a 220 that the client answers with a command that only FTP
/// has. On port 21, matches a refusal too, and the octets of only one side. Roles may be reversed if a capture began in
/// the middle.
pub(super) fn probe(opening: &StreamOpening<'_>) -> Verdict {
    match (straight(opening), straight(&opening.reversed())) {
        (Verdict::Match, _) => Verdict::Match,
        (_, Verdict::Match) => Verdict::MatchReversed,
        (Verdict::No, Verdict::No) => Verdict::No,
        _ => Verdict::More,
    }
}

fn straight(opening: &StreamOpening<'_>) -> Verdict {
    let has_port = PORTS.contains(&opening.server_port);
    let client = client_verdict(opening.client);
    match greeting_words(opening.server) {
        Words::Refuted | Words::Smtp => Verdict::No,
        Words::Ftp => Verdict::Match,
        Words::Greeting => client,
        Words::Beginning if client == Verdict::No => Verdict::No,
        Words::Beginning => Verdict::More,
        Words::Silent | Words::Reply if !has_port => Verdict::No,
        // POP3 and IRC have USER too: here the port is the only evidence.
        Words::Silent if client == Verdict::No => Verdict::No,
        Words::Silent => Verdict::More,
        Words::Reply => match opening.server.first() {
            Some(b'4' | b'5') => Verdict::Match,
            _ if client == Verdict::No => Verdict::No,
            _ => client,
        },
    }
}

/// Searches the octets of the client for a command of FTP, or those of the server for a greeting that contains FTP.
pub(super) fn search(from: Role, bytes: &[u8]) -> Search {
    search_lines(bytes, |line| match from {
        Role::Client => client_verdict(line),
        Role::Server => Verdict::of(greeting_words(line) == Words::Ftp),
    })
}

/// Classifies the client's first command: a command that SMTP does not have is evidence for FTP, other commands may
/// belong to either protocol.
fn client_verdict(client: &[u8]) -> Verdict {
    const OWN: [&[u8]; 16] = [
        b"USER", b"PASS", b"FEAT", b"SYST", b"OPTS", b"HOST", b"CLNT", b"PBSZ", b"PROT", b"TYPE", b"PASV",
        b"EPSV", b"PORT", b"RETR", b"CWD", b"PWD",
    ];
    const SHARED: [&[u8]; 4] = [b"AUTH", b"HELP", b"NOOP", b"QUIT"];
    // Commands are short, so that a few octets suffice to reject other text, regardless of its length.
    let letter_count = client.iter().take(5).take_while(|octet| octet.is_ascii_alphabetic()).count();
    if letter_count > 4 || (letter_count == 0 && !client.is_empty()) {
        return Verdict::No;
    }
    let head = client.get(..HEAD_LEN).unwrap_or(client);
    let (word, rest) = first_word(head);
    let is_complete = word.len() < head.len();
    let is_one_of = |words: &[&[u8]]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    match () {
        () if is_complete && is_one_of(&OWN) => Verdict::Match,
        () if is_complete && word.eq_ignore_ascii_case(b"AUTH") => {
            // The mechanisms of RFC 4217; those of SMTP differ.
            let (mechanism, _) = first_word(rest);
            match [b"TLS".as_slice(), b"SSL"].iter().any(|known| mechanism.eq_ignore_ascii_case(known)) {
                true => Verdict::Match,
                false if client.ends_with(b"\n") => Verdict::No,
                false => Verdict::More,
            }
        }
        () if is_complete => {
            if is_one_of(&SHARED) {
                Verdict::More
            } else {
                Verdict::No
            }
        }
        () if word.len() <= 4 && word.iter().all(u8::is_ascii_alphabetic) => Verdict::More,
        () => Verdict::No,
    }
}
