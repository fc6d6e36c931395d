//! Heads: at once where they are well-formed, and line by line where they are not.

use std::mem::MaybeUninit;

use memchr::memchr;

use super::message::{Anomaly, Version};
use super::probe::{ends_with_version, is_status_line};
use super::{HEAD_LEN_MAX, HEADER_COUNT_MAX};
use crate::session::{Fault, Role};

/// Octets of a method in a request line that is not well-formed.
const METHOD_LEN_MAX: usize = 32;

const TOO_LONG: Fault = Fault::new("head_too_long");
const TOO_MANY: Fault = Fault::new("too_many_fields");

/// The first line of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First<'m> {
    Request { method: &'m [u8], target: &'m [u8] },
    Status { code: u16, reason: &'m [u8] },
}

/// A head that is all there, or the part of one.
#[derive(Clone, Debug)]
pub(super) struct Head<'m> {
    pub(super) first: First<'m>,
    pub(super) version: Version,
    pub(super) fields: &'m [httparse::Header<'m>],
    pub(super) anomaly: Option<Anomaly>,
}

/// Octets of a head that are looked at again with those that follow: the empty line may have begun with them.
const BLANK_LINE_LEN: usize = 3;

/// Reads a head at the front of `bytes`, which do not begin with an empty line, and gives it to `then`. The head's length, and
/// what `then` says; none if the head is not all there. Its end is searched for behind the first `seen_len` octets;
/// `has_line` is for the caller to keep meanwhile.
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
        Ok((httparse::Status::Complete(len), ..)) if len > HEAD_LEN_MAX => Err(TOO_LONG),
        Ok((httparse::Status::Complete(len), first, minor, fields)) => {
            let version = if minor == Some(0) { Version::Http10 } else { Version::Http11 };
            Ok(Some((len, then(&Head { first, version, fields, anomaly: None }))))
        }
        Ok((httparse::Status::Partial, ..)) => goes_on(from, bytes, seen_len, has_line).map(|_| None),
        // Including too many fields, of which can be said so once they are all there, however the octets come.
        Err(_) => match blank_line(bytes, 0) {
            Some(len) if len > HEAD_LEN_MAX => Err(TOO_LONG),
            Some(len) => {
                read_lines(from, bytes.get(..len).unwrap_or_default(), None, then).map(|it| Some((len, it)))
            }
            None => goes_on(from, bytes, seen_len, has_line).map(|_| None),
        },
    }
}

/// How many octets to pass over of a head that was refused, the same however they come. At least one.
pub(super) fn refused_len(bytes: &[u8], fault: Fault) -> usize {
    let len = match fault {
        TOO_LONG => HEAD_LEN_MAX.min(bytes.len()),
        TOO_MANY => blank_line(bytes, 0).unwrap_or_default(),
        _ => 1,
    };
    len.max(1)
}

/// Reads what there is of a head of which the rest will not come; none if that is not even the first line.
pub(super) fn read_cut<T>(from: Role, bytes: &[u8], then: impl FnOnce(&Head<'_>) -> T) -> Option<T> {
    let end = bytes.iter().rposition(|octet| *octet == b'\n')?;
    read_lines(from, bytes.get(..=end)?, Some(Anomaly::Cut), then).ok()
}

/// Reads trailer fields, and the empty line behind them, which does not end in the first `seen_len` octets.
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

/// Whether the empty line came, if what there is can be a head at all. `has_line` says whether the first line was looked at.
fn goes_on(from: Role, bytes: &[u8], seen_len: usize, has_line: &mut bool) -> Result<bool, Fault> {
    let fault = match from {
        Role::Client if !may_be_request(bytes) => Some(Fault::new("not_a_request")),
        Role::Server if is_status_line(bytes) == Some(false) => Some(Fault::new("not_a_response")),
        _ => None,
    };
    if !*has_line && let Some(end) = memchr(b'\n', bytes.get(seen_len..).unwrap_or_default()) {
        *has_line = true;
        first_line(from, bytes.get(..seen_len + end).unwrap_or_default())?;
    }
    let is_whole = blank_line(bytes, seen_len.saturating_sub(BLANK_LINE_LEN)).is_some();
    match fault {
        Some(fault) => Err(fault),
        None if !is_whole && bytes.len() > HEAD_LEN_MAX => Err(TOO_LONG),
        None => Ok(is_whole),
    }
}

/// Whether octets begin with a method and a space, or may yet.
fn may_be_request(bytes: &[u8]) -> bool {
    let is_token = |octet: &u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(octet);
    match bytes.iter().take(METHOD_LEN_MAX + 1).position(|octet| !is_token(octet)) {
        Some(end) => end > 0 && matches!(bytes.get(end), Some(b' ' | b'\t')),
        None => bytes.len() <= METHOD_LEN_MAX,
    }
}

/// Octets up to the end of the first empty line, that line included. The search begins at `start`.
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

/// Reads a head that is not well-formed, as far as it makes sense.
fn read_lines<T>(
    from: Role,
    head: &[u8],
    anomaly: Option<Anomaly>,
    then: impl FnOnce(&Head<'_>) -> T,
) -> Result<T, Fault> {
    // RFC 9112 section 5.2: what folds a field is the same as spaces.
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

/// The first line, without what ends it, and the rest.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|octet| *octet == b'\n').unwrap_or(bytes.len());
    let (line, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..).unwrap_or_default())
}

/// A request line or status line, with anything for a target.
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
            let rest = line.strip_prefix(b"HTTP/1.").ok_or(fault)?;
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

fn version(minor: u8) -> Version {
    if minor == b'0' { Version::Http10 } else { Version::Http11 }
}

/// The fields of unfolded lines. Lines that are no field are left out, and named.
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
