//! Recognition of SSH by the identification line of the client or the server.

use crate::session::lines::search_lines;
use crate::session::{Role, Search, StreamOpening, Verdict};

/// Maximum number of other lines that a server may send before its identification line.
pub const LINES_BEFORE_MAX: u8 = 50;

/// Maximum length of a line before the identification in octets (RFC 4253 section 4.2).
const LINE_LEN_MAX: usize = 255;

/// Recognizes SSH by `SSH-` and a digit in the first octets of the client or the server. Other octets are a mismatch,
/// except for lines that a server sends before its identification; on other ports than 22, they must be text as in RFC
/// 4253 section 4.2, and the first octets of the client decide.
pub(super) fn probe(opening: &StreamOpening<'_>) -> Verdict {
    match (identification(opening.client), identification(opening.server)) {
        (Verdict::Match, _) | (_, Verdict::Match) => Verdict::Match,
        (Verdict::No, _) => Verdict::No,
        (_, Verdict::No) if opening.server_port == 22 || are_lines(opening.server) => {
            behind_lines(opening.server)
        }
        (_, Verdict::No) => Verdict::No,
        _ => Verdict::More,
    }
}

/// Searches octets in the middle of a stream for an SSH identification at the start of a line.
pub(super) fn search(_: Role, bytes: &[u8]) -> Search {
    search_lines(bytes, identification)
}

/// Returns whether the octets of a server may be lines before its identification: text in UTF-8, of which a character may
/// be incomplete, in lines of at most 255 octets. Greetings of FTP, SMTP, POP3 and IMAP are none.
fn are_lines(server: &[u8]) -> bool {
    if let [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b' ' | b'-', ..] | [b'+', b'O', ..] | [b'*', b' ', ..] =
        server
    {
        return false;
    }
    let is_text = std::str::from_utf8(server).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_text && server.split_inclusive(|octet| *octet == b'\n').all(|line| line.len() <= LINE_LEN_MAX)
}

/// Matches an SSH identification that follows other lines of text from a server, at most as many as the parser accepts.
fn behind_lines(server: &[u8]) -> Verdict {
    for (count, line) in server.split_inclusive(|octet| *octet == b'\n').enumerate() {
        match identification(line) {
            _ if count > LINES_BEFORE_MAX.into() => return Verdict::No,
            Verdict::Match => return Verdict::Match,
            _ if line.iter().any(|octet| octet.is_ascii_control() && !octet.is_ascii_whitespace()) => {
                return Verdict::No;
            }
            _ => {}
        }
    }
    Verdict::More
}

fn identification(bytes: &[u8]) -> Verdict {
    let expected = b"SSH-";
    match bytes.get(..expected.len()) {
        None if expected.starts_with(bytes) => Verdict::More,
        None => Verdict::No,
        Some(start) if start != expected => Verdict::No,
        Some(_) => {
            bytes.get(expected.len()).map_or(Verdict::More, |octet| Verdict::of(octet.is_ascii_digit()))
        }
    }
}
