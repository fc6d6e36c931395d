//! Recognition of HTTP/1.x by the first line of a stream.

use memchr::memchr;

use crate::session::{StreamOpening, Verdict};

/// Ports of servers.
pub(super) const PORTS: [u16; 6] = [80, 591, 3128, 8000, 8008, 8080];

/// Maximum length in octets of an HTTP method.
const METHOD_LEN_MAX: usize = 20;

/// Number of octets of an incomplete request line that suffice if no other protocol's lines begin in the same way.
/// Small, because a stream that arrives octet by octet is probed a few times only.
const LINE_LEN_ENOUGH: usize = 12;

/// Number of octets of a first line after which only the end of the line can identify a request.
pub(super) const BEGINNING_LEN: usize = 64;

/// Classification of the octets of one direction by the HTTP probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Nothing,
    Request,
    /// A request line without a version that is followed by nothing but empty lines.
    SimpleRequest,
    Response,
    Unlike,
    Undecided,
}

/// Probe for HTTP/1.x: searches for a request line or a status line in both directions. A request of HTTP/0.9 has few
/// distinctive octets, so that it is accepted on the ports of HTTP only.
pub(super) fn probe(opening: &StreamOpening<'_>) -> Verdict {
    match (looks(opening.client), looks(opening.server)) {
        (Looks::Request, _) | (_, Looks::Response) => Verdict::Match,
        (Looks::SimpleRequest, _) if PORTS.contains(&opening.server_port) => Verdict::Match,
        (Looks::Response, _) | (_, Looks::Request) => Verdict::MatchReversed,
        (Looks::Undecided, _) | (_, Looks::Undecided) => Verdict::More,
        (Looks::Nothing, Looks::Nothing) => Verdict::More,
        _ => Verdict::No,
    }
}

/// Returns whether octets begin with an HTTP/1.x request line.
pub(super) fn is_request(bytes: &[u8]) -> bool {
    looks(bytes) == Looks::Request
}

/// Returns whether octets begin with a request line, after empty lines (RFC 9112 section 2.2); `None` if there are too
/// few octets. The first `seen_len` octets were too few. The result does not depend on how the octets are divided, and a
/// line of more than `len_max` octets is not a request line.
pub(super) fn begins_request(bytes: &[u8], seen_len: usize, len_max: usize) -> Option<bool> {
    let (seen, new) = bytes.split_at_checked(seen_len).unwrap_or((&[], bytes));
    let too_long = (bytes.len() > len_max).then_some(false);
    if seen.len() >= BEGINNING_LEN && memchr(b'\n', new).is_none() {
        return too_long;
    }
    let start = bytes.iter().position(|octet| !is_line_end(octet)).unwrap_or(bytes.len());
    let line = bytes.get(start..bytes.len().min(len_max)).unwrap_or_default();
    match memchr(b'\n', line) {
        Some(end) => Some(looks(line.get(..=end).unwrap_or_default()) == Looks::Request),
        None if matches!(looks(line), Looks::Unlike | Looks::Response) => Some(false),
        None => too_long,
    }
}

fn looks(bytes: &[u8]) -> Looks {
    // Empty lines before a request are ignored (RFC 9112 section 2.2).
    let start = bytes.iter().position(|octet| !is_line_end(octet)).unwrap_or(bytes.len());
    match bytes.get(start..) {
        _ if bytes.is_empty() => Looks::Nothing,
        None | Some([]) if start <= 4 => Looks::Undecided,
        Some(bytes) if start <= 4 => match is_status_line(bytes) {
            Some(true) => Looks::Response,
            Some(false) => request_line(bytes),
            None => Looks::Undecided,
        },
        _ => Looks::Unlike,
    }
}

fn is_line_end(octet: &u8) -> bool {
    matches!(octet, b'\r' | b'\n')
}

/// Returns whether octets begin as an HTTP/1.x status line does; `None` if there are too few octets.
pub(super) fn is_status_line(bytes: &[u8]) -> Option<bool> {
    const NAME: &[u8] = b"HTTP/1.";
    let len = bytes.len().min(NAME.len());
    if bytes.get(..len) != NAME.get(..len) {
        return Some(false);
    }
    match bytes.get(NAME.len()..)? {
        [] => None,
        [minor, ..] if !minor.is_ascii_digit() => Some(false),
        [_] => None,
        [_, space, ..] if *space != b' ' => Some(false),
        [_, _] => None,
        [_, _, digit, ..] => Some(digit.is_ascii_digit() || *digit == b' '),
    }
}

fn request_line(bytes: &[u8]) -> Looks {
    let in_method = |octet: &u8| octet.is_ascii_uppercase() || matches!(octet, b'-' | b'_');
    let method_len = bytes.iter().position(|octet| !in_method(octet)).unwrap_or(bytes.len());
    let (method, rest) = bytes.split_at_checked(method_len).unwrap_or((bytes, &[]));
    if method_len > METHOD_LEN_MAX {
        return Looks::Unlike;
    }
    let target = match rest {
        [] => return Looks::Undecided,
        [b' ', target @ ..] if method_len >= 3 => target,
        _ => return Looks::Unlike,
    };
    let line_len = target.iter().position(|octet| *octet == b'\n');
    let line = target.get(..line_len.unwrap_or(target.len())).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.iter().any(|octet| *octet < b' ' && *octet != b'\t') {
        return Looks::Unlike;
    }
    if let Some(line_len) = line_len {
        // Many clients end the line as they end a head, with an empty line.
        let is_all = || target.iter().skip(line_len + 1).all(is_line_end);
        return match () {
            () if ends_with_version(line) => Looks::Request,
            () if is_simple(method, line) && is_all() => Looks::SimpleRequest,
            () => Looks::Unlike,
        };
    }
    let is_enough = method_len + 1 + line.len() >= LINE_LEN_ENOUGH && is_of_http(method, line);
    if is_enough { Looks::Request } else { Looks::Undecided }
}

/// Returns whether a request line is one of HTTP/0.9 (RFC 1945 section 5): `GET` and a path.
fn is_simple(method: &[u8], target: &[u8]) -> bool {
    method == b"GET" && target.starts_with(b"/") && target.iter().all(u8::is_ascii_graphic)
}

/// Returns whether a request with this method and target occurs in HTTP only: RTSP and SIP have other methods, and
/// targets with a scheme.
fn is_of_http(method: &[u8], target: &[u8]) -> bool {
    match method {
        b"GET" | b"POST" | b"HEAD" | b"PUT" | b"DELETE" | b"PATCH" | b"OPTIONS" => {
            target.starts_with(b"/") || target.starts_with(b"http")
        }
        b"CONNECT" => target.first().is_some_and(|octet| octet.is_ascii_alphanumeric() || *octet == b'['),
        _ => false,
    }
}

/// Returns whether a request line ends with a version of HTTP/1.x.
pub(super) fn ends_with_version(line: &[u8]) -> bool {
    matches!(line.trim_ascii_end(), [_, .., b' ' | b'\t', b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor]
        if minor.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(client: &[u8], server: &[u8]) -> Verdict {
        probe(&StreamOpening::new(client, server, 40_000, 80))
    }

    #[test]
    fn request_and_status_lines_match_and_similar_lines_do_not() {
        for line in ["GET / HTTP/1.1\r\n", "M-SEARCH * HTTP/1.0\n", "\r\nPOST /a b HTTP/1.1\r\n"] {
            assert_eq!(verdict(line.as_bytes(), b""), Verdict::Match, "{line}");
            assert_eq!(verdict(b"", line.as_bytes()), Verdict::MatchReversed, "{line}");
            for len in 1..line.len() {
                assert_ne!(verdict(&line.as_bytes()[..len], b""), Verdict::No, "{line} {len}");
            }
        }
        for line in ["HTTP/1.1 200 OK\r\n", "HTTP/1.0 404\r\n"] {
            assert_eq!(verdict(b"", line.as_bytes()), Verdict::Match, "{line}");
            assert_eq!(verdict(line.as_bytes(), b""), Verdict::MatchReversed, "{line}");
        }
        for line in [
            "OPTIONS rtsp://a/b RTSP/1.0\r\n",
            "RTSP/1.0 200 OK\r\n",
            "REGISTER sip:a SIP/2.0\r\n",
            "SIP/2.0 200 OK\r\n",
            "ICY 200 OK\r\n",
            "GNUTELLA CONNECT/0.6\r\n",
            "PRI * HTTP/2.0\r\n",
            "SOURCE /live ICE/1.0\r\n",
            "GET /a b\r\n",
            "GET /\r\nHost: a\r\n",
            "POST /\r\n",
            "get /\r\n",
            "EHLO example.org\r\n",
            "USER anonymous\r\n",
            "* OK IMAP4 ready\r\n",
            "SSH-2.0-x\r\n",
            "HTTP/2.0 200\r\n",
            "GET \u{1} HTTP/1.1\r\n",
            "\x16\x03\x01",
        ] {
            assert_eq!(verdict(line.as_bytes(), b""), Verdict::No, "{line}");
            assert_eq!(verdict(b"", line.as_bytes()), Verdict::No, "{line}");
        }
    }

    #[test]
    fn a_request_without_a_version_matches_on_http_ports() {
        let elsewhere = |client| probe(&StreamOpening::new(client, b"", 40_000, 70));
        for line in [&b"GET /\r\n"[..], b"GET /bad.html\n", b"GET /index.html\r\n\r\n", b"GET /\n\n"] {
            assert_eq!(verdict(line, b""), Verdict::Match);
            assert_eq!(verdict(line, b"<html></html>"), Verdict::Match);
            assert_eq!(verdict(b"", line), Verdict::No);
            assert_eq!(elsewhere(line), Verdict::No);
        }
    }

    #[test]
    fn the_beginning_of_a_request_line_may_match() {
        assert_eq!(verdict(b"GET /index.h", b""), Verdict::Match);
        assert_eq!(verdict(b"GET /index.", b""), Verdict::More);
        assert_eq!(verdict(b"CONNECT a.ex", b""), Verdict::Match);
        assert_eq!(verdict(b"OPTIONS rtsp://a/b", b""), Verdict::More);
        assert_eq!(verdict(b"FETCH /index.h", b""), Verdict::More);
    }
}
