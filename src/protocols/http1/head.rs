//! Parsing of HTTP/1.x heads: in one step if they are well-formed, otherwise line by line.

use std::mem::MaybeUninit;

use memchr::memchr;

use super::message::{Anomaly, Version};
use super::resync::METHODS;
use super::{HEAD_LEN_MAX, HEADER_COUNT_MAX};
use crate::session::{Fault, Role};

/// Maximum length in octets of the method in a request line; octets with a longer method are not a request.
const METHOD_LEN_MAX: usize = 32;

/// Protocol name and major version in the first line of a head. If they are in lower case, the line is malformed.
const NAME: &[u8] = b"HTTP/1.";

const TOO_LONG: Fault = Fault::new("head_too_long");
const TOO_MANY: Fault = Fault::new("too_many_fields");

/// The first line of an HTTP/1.x head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First<'m> {
    Request { method: &'m [u8], target: &'m [u8] },
    Status { code: u16, reason: &'m [u8] },
}

/// A complete HTTP/1.x head, or part of one.
#[derive(Clone, Debug)]
pub(super) struct Head<'m> {
    pub(super) first: First<'m>,
    pub(super) version: Version,
    pub(super) fields: &'m [httparse::Header<'m>],
    pub(super) anomaly: Option<Anomaly>,
}

/// Number of octets of an incomplete head that are searched again together with later octets, because the empty line
/// may begin in them.
const BLANK_LINE_LEN: usize = 3;

/// Parses a head at the start of `bytes`, which do not begin with an empty line, and passes it to `then`. Returns the
/// head's length in octets and the result of `then`; `None` if the head is incomplete. The search for the head's end
/// starts after the first `seen_len` octets. The caller stores `has_line` between calls.
pub(super) fn read<T>(
    from: Role,
    bytes: &[u8],
    seen_len: usize,
    has_line: &mut bool,
    then: impl FnOnce(&Head<'_>) -> T,
) -> Result<Option<(usize, T)>, Fault> {
    if seen_len > 0 && !goes_on(from, bytes, seen_len, has_line)? {
        return Ok(None);
    }
    let mut slots = [const { MaybeUninit::uninit() }; HEADER_COUNT_MAX];
    let parsed = match from {
        Role::Client => {
            let mut request = httparse::Request::new(&mut []);
            let status = request.parse_with_uninit_headers(bytes, &mut slots);
            status.map(|status| {
                let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
                let first = First::Request { method: method.as_bytes(), target: target.as_bytes() };
                (status, first, request.version, &*request.headers)
            })
        }
        Role::Server => {
            let mut response = httparse::Response::new(&mut []);
            let config = httparse::ParserConfig::default();
            let status = config.parse_response_with_uninit_headers(&mut response, bytes, &mut slots);
            status.map(|status| {
                let (code, reason) = (response.code.unwrap_or_default(), response.reason.unwrap_or_default());
                let first = First::Status { code, reason: reason.as_bytes() };
                (status, first, response.version, &*response.headers)
            })
        }
    };
    match parsed {
        Ok((httparse::Status::Complete(_), First::Request { method, .. }, ..))
            if method.len() > METHOD_LEN_MAX =>
        {
            Err(Fault::new("not_a_request"))
        }
        Ok((httparse::Status::Complete(len), ..)) if len > HEAD_LEN_MAX => Err(TOO_LONG),
        Ok((httparse::Status::Complete(len), first, minor, fields)) => {
            let version = if minor == Some(0) { Version::Http10 } else { Version::Http11 };
            Ok(Some((len, then(&Head { first, version, fields, anomaly: None }))))
        }
        Ok((httparse::Status::Partial, ..)) => goes_on(from, bytes, seen_len, has_line).map(|_| None),
        // Includes too many fields, which is reported when the head is complete, regardless of how the octets are
        // divided.
        Err(_) => match blank_line(bytes, 0) {
            Some(len) => {
                // A head that is rejected when it arrives octet by octet must also be rejected when it arrives at once.
                check_beginning(from, bytes, line_end(bytes, 0))?;
                if len > HEAD_LEN_MAX {
                    return Err(TOO_LONG);
                }
                read_lines(from, bytes.get(..len).unwrap_or_default(), None, then).map(|it| Some((len, it)))
            }
            None => goes_on(from, bytes, seen_len, has_line).map(|_| None),
        },
    }
}

/// Returns the number of octets to skip of a rejected head, at least one. The number does not depend on how the octets
/// are divided into calls.
pub(super) fn refused_len(bytes: &[u8], fault: Fault) -> usize {
    let len = match fault {
        TOO_LONG => HEAD_LEN_MAX.min(bytes.len()),
        TOO_MANY => blank_line(bytes, 0).unwrap_or_default(),
        _ => 1,
    };
    len.max(1)
}

/// Parses the captured part of a head of which the rest is missing, and passes it to `then`; `None` if even the first
/// line is incomplete.
pub(super) fn read_truncated<T>(from: Role, bytes: &[u8], then: impl FnOnce(&Head<'_>) -> T) -> Option<T> {
    let end = bytes.iter().rposition(|octet| *octet == b'\n')?;
    read_lines(from, bytes.get(..=end)?, Some(Anomaly::Truncated), then).ok()
}

/// Parses trailer fields and the empty line after them, which does not end in the first `seen_len` octets.
pub(super) fn read_trailers<T>(
    bytes: &[u8],
    seen_len: usize,
    then: impl FnOnce(&[httparse::Header<'_>]) -> T,
) -> Result<Option<(usize, T)>, Fault> {
    let len = match bytes {
        [b'\r', b'\n', ..] => return Ok(Some((2, then(&[])))),
        [b'\n', ..] => return Ok(Some((1, then(&[])))),
        _ => blank_line(bytes, seen_len.saturating_sub(BLANK_LINE_LEN)),
    };
    let Some(len) = len else {
        return if bytes.len() > HEAD_LEN_MAX { Err(TOO_LONG) } else { Ok(None) };
    };
    let mut anomaly = None;
    let section = bytes.get(..len).filter(|section| section.len() <= HEAD_LEN_MAX).ok_or(TOO_LONG)?;
    let fields = split_fields(section, &mut anomaly)?;
    Ok(Some((len, then(&fields))))
}

/// Returns whether the octets contain the empty line that ends a head; a fault if they cannot be a head. `has_line`
/// records whether the first line was checked.
fn goes_on(from: Role, bytes: &[u8], seen_len: usize, has_line: &mut bool) -> Result<bool, Fault> {
    let line_end = if *has_line { None } else { line_end(bytes, seen_len) };
    *has_line |= line_end.is_some();
    check_beginning(from, bytes, line_end)?;
    let is_complete = blank_line(bytes, seen_len.saturating_sub(BLANK_LINE_LEN)).is_some();
    if !is_complete && bytes.len() > HEAD_LEN_MAX { Err(TOO_LONG) } else { Ok(is_complete) }
}

/// Returns the offset of the first line feed at or after `start`.
fn line_end(bytes: &[u8], start: usize) -> Option<usize> {
    memchr(b'\n', bytes.get(start..)?).map(|end| start + end)
}

/// Returns a fault for octets that cannot begin a head. Checks the first octets, and the first line if its end is
/// known.
fn check_beginning(from: Role, bytes: &[u8], line_end: Option<usize>) -> Result<(), Fault> {
    match from {
        Role::Client if !may_be_request(bytes) => return Err(Fault::new("not_a_request")),
        Role::Server if begins_status_line(bytes) == Some(false) => return Err(Fault::new("not_a_response")),
        _ => {}
    }
    match line_end {
        Some(end) if end > HEAD_LEN_MAX => Err(TOO_LONG),
        Some(end) => first_line(from, bytes.get(..end).unwrap_or_default()).map(|_| ()),
        None => Ok(()),
    }
}

/// Returns whether octets begin with a method and a space, or may do so when more octets follow.
fn may_be_request(bytes: &[u8]) -> bool {
    let is_token = |octet: &u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(octet);
    match bytes.iter().take(METHOD_LEN_MAX + 1).position(|octet| !is_token(octet)) {
        Some(end) => end > 0 && matches!(bytes.get(end), Some(b' ' | b'\t')),
        None => bytes.len() <= METHOD_LEN_MAX,
    }
}

/// Returns whether octets begin as a status line does, with the first word in any case; `None` if there are too few
/// octets.
pub(super) fn begins_status_line(bytes: &[u8]) -> Option<bool> {
    let len = bytes.len().min(NAME.len());
    if !bytes.get(..len)?.eq_ignore_ascii_case(NAME.get(..len)?) {
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

/// Returns the request line without a version at the start of `bytes`: its length including the line end, and the head
/// that consists of it.
pub(super) fn simple_request(bytes: &[u8]) -> Option<(usize, Head<'_>)> {
    let end = bytes.iter().take(HEAD_LEN_MAX).position(|octet| *octet == b'\n')?;
    Some((end + 1, simple_line(bytes.get(..end)?)?))
}

/// Parses a request line without a version: of HTTP/0.9, or of a client that omitted the version (RFC 1945 section 4.1,
/// Simple-Request). No header fields follow such a line. Only known methods are accepted, because any text could be
/// such a line.
pub(super) fn simple_line(line: &[u8]) -> Option<Head<'_>> {
    let line = line.trim_ascii_end();
    let method_len = line.iter().position(|octet| *octet == b' ')?;
    let (method, target) = (line.get(..method_len)?, line.get(method_len + 1..)?);
    let is_target = matches!(target, [b'/', ..] | b"*") || target.starts_with(b"http://");
    let is_simple = METHODS.contains(&method) && is_target && target.iter().all(u8::is_ascii_graphic);
    let first = First::Request { method, target };
    is_simple.then_some(Head { first, version: Version::Http09, fields: &[], anomaly: None })
}

/// Returns the number of octets up to the end of the first empty line, including that line; `None` if there is none.
/// The search begins at `start`.
fn blank_line(bytes: &[u8], start: usize) -> Option<usize> {
    let mut place = start;
    loop {
        let rest = bytes.get(place..)?;
        place += memchr(b'\n', rest)? + 1;
        match bytes.get(place..)? {
            [b'\n', ..] => return Some(place + 1),
            [b'\r', b'\n', ..] => return Some(place + 2),
            _ => {}
        }
    }
}

/// Parses a head that is not well-formed, omits the invalid parts, and passes it to `then`.
fn read_lines<T>(
    from: Role,
    head: &[u8],
    anomaly: Option<Anomaly>,
    then: impl FnOnce(&Head<'_>) -> T,
) -> Result<T, Fault> {
    // A line fold is equivalent to spaces (RFC 9112 section 5.2).
    let mut mended = head.to_vec();
    let mut is_folded = false;
    for place in 1..head.len() {
        if let (Some(b'\n'), Some(b' ' | b'\t')) = (head.get(place), head.get(place + 1)) {
            is_folded = true;
            let is_crlf = head.get(place - 1) == Some(&b'\r');
            for octet in mended.iter_mut().skip(place - usize::from(is_crlf)).take(1 + usize::from(is_crlf)) {
                *octet = b' ';
            }
        }
    }
    let (line, section) = split_line(&mended);
    let (first, version) = first_line(from, line)?;
    let is_straight = matches!(first, First::Request { target, .. } if !target.contains(&b' '))
        || matches!(first, First::Status { .. });
    let mut malformed = (!is_straight).then_some(Anomaly::Malformed);
    let fields = split_fields(section, &mut malformed)?;
    let anomaly =
        anomaly.or(malformed).or(Some(if is_folded { Anomaly::Folded } else { Anomaly::Malformed }));
    Ok(then(&Head { first, version, fields: &fields, anomaly }))
}

/// Returns the first line without its end, and the octets after it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|octet| *octet == b'\n').unwrap_or(bytes.len());
    let (line, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..).unwrap_or_default())
}

/// Parses a request line or status line, with any target.
fn first_line(from: Role, line: &[u8]) -> Result<(First<'_>, Version), Fault> {
    let is_space = |octet: &u8| matches!(octet, b' ' | b'\t');
    let line = line.trim_ascii_end();
    match from {
        Role::Client => {
            let fault = Fault::new("not_a_request");
            let minor = line.last().filter(|_| ends_with_version(line)).ok_or(fault)?;
            let method_len = line.iter().position(is_space).ok_or(fault)?;
            // ` HTTP/1.1` is nine octets.
            let target = line.get(method_len..line.len() - 9).ok_or(fault)?.trim_ascii();
            let method = line.get(..method_len).ok_or(fault)?;
            Ok((First::Request { method, target }, version(*minor)))
        }
        Role::Server => {
            let fault = Fault::new("not_a_response");
            let (name, rest) = line.split_at_checked(NAME.len()).ok_or(fault)?;
            if !name.eq_ignore_ascii_case(NAME) {
                return Err(fault);
            }
            let (minor, rest) =
                rest.split_first().filter(|(minor, _)| minor.is_ascii_digit()).ok_or(fault)?;
            let rest = rest.trim_ascii_start();
            let ([a, b, c], reason) = rest.split_first_chunk().ok_or(fault)?;
            if ![a, b, c].iter().all(|digit| digit.is_ascii_digit()) {
                return Err(fault);
            }
            let code = [a, b, c].iter().fold(0, |sum, digit| sum * 10 + u16::from(**digit - b'0'));
            Ok((First::Status { code, reason: reason.trim_ascii() }, version(*minor)))
        }
    }
}

/// Returns whether a request line ends with a version of HTTP/1.x, in upper or lower case.
fn ends_with_version(line: &[u8]) -> bool {
    let (before, minor) = line.split_at_checked(line.len().saturating_sub(1)).unwrap_or_default();
    let (before, name) = before.split_at_checked(before.len().saturating_sub(NAME.len())).unwrap_or_default();
    matches!(before, [_, .., b' ' | b'\t'])
        && name.eq_ignore_ascii_case(NAME)
        && minor.iter().all(u8::is_ascii_digit)
}

fn version(minor: u8) -> Version {
    if minor == b'0' { Version::Http10 } else { Version::Http11 }
}

/// Splits unfolded lines into header fields. Lines that are not fields are omitted and reported as an anomaly.
fn split_fields<'m>(
    mut section: &'m [u8],
    malformed: &mut Option<Anomaly>,
) -> Result<Vec<httparse::Header<'m>>, Fault> {
    let mut fields = Vec::new();
    while !section.is_empty() {
        let (line, rest) = split_line(section);
        section = rest;
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|octet| *octet == b':').unwrap_or_default();
        let name = line.get(..colon).and_then(|name| std::str::from_utf8(name.trim_ascii()).ok());
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            *malformed = Some(Anomaly::Malformed);
            continue;
        };
        if fields.len() == HEADER_COUNT_MAX {
            return Err(TOO_MANY);
        }
        let value = line.get(colon + 1..).unwrap_or_default().trim_ascii();
        fields.push(httparse::Header { name, value });
    }
    Ok(fields)
}
