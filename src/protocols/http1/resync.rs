//! Search for the next HTTP/1.x message after octets are missing.

use memchr::memchr;

use super::probe::ends_with_version;
use crate::session::{Role, Search};

/// Maximum number of octets at the end of a line that are searched for a request line or status line.
const LINE_LEN_MAX: usize = 8192;

/// HTTP methods that are accepted in a request line after octets of any kind, and in a request line without a version.
pub(super) const METHODS: [&[u8]; 25] = [
    b"GET",
    b"POST",
    b"HEAD",
    b"PUT",
    b"DELETE",
    b"OPTIONS",
    b"CONNECT",
    b"PATCH",
    b"TRACE",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"REPORT",
    b"SEARCH",
    b"NOTIFY",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"BPROPPATCH",
    b"POLL",
    b"MERGE",
    b"QUERY",
];

/// Searches for the first line of an HTTP/1.x message in a stream that began with another protocol.
pub(super) fn resume(from: Role, bytes: &[u8]) -> Search {
    search(from, bytes, 0)
}

/// Searches for the first line of an HTTP/1.x message. The line does not end in the first `seen_len` octets, which were
/// searched before. It may begin after the octets of a body, which need not end with a line end.
pub(super) fn search(from: Role, bytes: &[u8], seen_len: usize) -> Search {
    let (mut start, mut searched_len) = (0, seen_len);
    while let Some(len) = bytes.get(searched_len..).and_then(|rest| memchr(b'\n', rest)) {
        let end = searched_len + len;
        let window = end.saturating_sub(LINE_LEN_MAX).max(start);
        let line = bytes.get(window..end).unwrap_or_default();
        let place = match from {
            Role::Client => request_line(line),
            Role::Server => status_line(line),
        };
        if let Some(place) = place {
            return Search::Found(window + place);
        }
        start = end + 1;
        searched_len = start;
    }
    Search::From(bytes.len().saturating_sub(LINE_LEN_MAX).max(start))
}

/// Returns the index at which a request line begins that ends with the given line.
fn request_line(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_end();
    if !ends_with_version(line) {
        return None;
    }
    let line = line.get(..line.len() - 9)?;
    let target = line.iter().rposition(|octet| *octet == b' ')?;
    let before = line.get(..target)?;
    let target = line.get(target + 1..)?;
    let is_end = |method: &&&[u8]| before.ends_with(method);
    let is_target = target.starts_with(b"/") || target.starts_with(b"http") || target == b"*";
    if !is_target && !before.ends_with(b"CONNECT") {
        return None;
    }
    // PROPFIND ends with no other method, but COPY might be the end of another word, so that the longest match is used.
    let method = METHODS.iter().filter(is_end).max_by_key(|method| method.len())?;
    Some(before.len() - method.len())
}

/// Returns the index at which a status line begins that ends with the given line.
fn status_line(line: &[u8]) -> Option<usize> {
    let place = line.windows(7).rposition(|octets| octets == b"HTTP/1.")?;
    match line.get(place + 7..)? {
        [b'0' | b'1', b' ', b'1'..=b'5', b'0'..=b'9', b'0'..=b'9', b' ' | b'\r', ..] => Some(place),
        [b'0' | b'1', b' ', b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => Some(place),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_after_any_octets() {
        let find = |from, text: &str| match search(from, text.as_bytes(), 0) {
            Search::Found(place) => text.get(place..).map(str::to_owned),
            Search::From(_) => None,
        };
        let request = "POST /a HTTP/1.1\r\nHost: b\r\n";
        let response = "HTTP/1.0 404 Not Found\r\nServer: c\r\n";
        for before in ["", "rest of a body", "\u{1}\u{2}\r\n\r\n", "POST \n", "HTTP/1.1 \n"] {
            assert_eq!(
                find(Role::Client, &format!("{before}{request}")).as_deref(),
                Some(request),
                "{before}"
            );
            assert_eq!(
                find(Role::Server, &format!("{before}{response}")).as_deref(),
                Some(response),
                "{before}"
            );
        }
        assert_eq!(find(Role::Client, "about GET and HTTP/1.1\r\n"), None);
        assert_eq!(find(Role::Server, "about HTTP/1.1 and 200\r\n"), None);
        assert_eq!(search(Role::Client, b"line\nGET /a", 0), Search::From(5));
        assert_eq!(search(Role::Client, &[b'a'; 10_000], 0), Search::From(10_000 - LINE_LEN_MAX));
        for seen_len in 0..12 {
            assert_eq!(search(Role::Client, b"xGET / HTTP/1.1\n", seen_len), Search::Found(1), "{seen_len}");
        }
    }
}
