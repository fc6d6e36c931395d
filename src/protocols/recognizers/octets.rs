//! Helpers for reading and comparing octets in probes.

use crate::session::{DatagramOpening, Role, StreamOpening, Verdict};

/// Returns the number in network byte order at offset `at` of `bytes`; `None` if it is incomplete.
pub(in crate::protocols) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the number in network byte order at offset `at` of `bytes`; `None` if it is incomplete.
pub(in crate::protocols) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the number in little-endian order at offset `at` of `bytes`; `None` if it is incomplete.
pub(super) fn u16_le_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns the number in little-endian order at offset `at` of `bytes`; `None` if it is incomplete.
pub(super) fn u32_le_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns whether `bytes` begin with one of `texts`: `More` if more octets are needed to decide.
pub(in crate::protocols) fn begins_with(bytes: &[u8], texts: &[&[u8]]) -> Verdict {
    begins(bytes, texts, u8::eq)
}

/// Returns whether `bytes` begin with one of `words`, ignoring ASCII case: `More` if more octets are needed to decide.
pub(in crate::protocols) fn begins_with_word(bytes: &[u8], words: &[&[u8]]) -> Verdict {
    begins(bytes, words, u8::eq_ignore_ascii_case)
}

fn begins(bytes: &[u8], texts: &[&[u8]], is_equal: impl Fn(&u8, &u8) -> bool) -> Verdict {
    let mut verdict = Verdict::No;
    for text in texts {
        // Octet by octet: most texts differ in the first one.
        if bytes.iter().zip(*text).all(|(octet, other)| is_equal(octet, other)) {
            if bytes.len() >= text.len() {
                return Verdict::Match;
            }
            verdict = Verdict::More;
        }
    }
    verdict
}

/// Matches a request of SIP or RTSP that begins with one of `methods`, followed by one of `targets`.
pub(in crate::protocols) fn request_line(bytes: &[u8], methods: &[&[u8]], targets: &[&[u8]]) -> Verdict {
    match begins_with(bytes, methods) {
        Verdict::Match => {
            let target = bytes.iter().position(|octet| *octet == b' ').and_then(|at| bytes.get(at + 1..));
            begins_with(target.unwrap_or_default(), targets)
        }
        verdict => verdict,
    }
}

/// Returns `More` if `bytes` has fewer than `len` octets, and otherwise a match if `holds` returns true.
pub(in crate::protocols) fn once(bytes: &[u8], len: usize, holds: impl FnOnce() -> bool) -> Verdict {
    if bytes.len() < len { Verdict::More } else { Verdict::of(holds()) }
}

/// Returns whether `bytes` is not empty and contains only printable ASCII characters, including spaces.
pub(in crate::protocols) fn is_printable(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|octet| matches!(octet, b' '..=b'~'))
}

/// Applies `is_request` to the octets of the client, or `answers` to those of the server if the client has sent none.
/// If only the other function matches, the match reverses the roles.
pub(in crate::protocols) fn dialogue(
    opening: &StreamOpening<'_>,
    is_request: impl Fn(&[u8]) -> Verdict,
    answers: impl Fn(&[u8]) -> Verdict,
) -> Verdict {
    let (straight, reversed) = if opening.client.is_empty() {
        (answers(opening.server), is_request(opening.server))
    } else {
        (is_request(opening.client), answers(opening.client))
    };
    match (straight, reversed) {
        (Verdict::Match, _) => Verdict::Match,
        (_, Verdict::Match) => Verdict::MatchReversed,
        (Verdict::More, _) | (_, Verdict::More) => Verdict::More,
        _ => Verdict::No,
    }
}

/// Applies the test `first` to the octets of the client, or to those of the server if the client has sent none, for
/// protocols in which both sides send alike.
pub(in crate::protocols) fn either(
    opening: &StreamOpening<'_>,
    first: impl FnOnce(&[u8]) -> Verdict,
) -> Verdict {
    first(if opening.client.is_empty() { opening.server } else { opening.client })
}

/// As [`either`], with the roles that the first octets of a flow state: `is_answer` returns whether octets are an answer,
/// and `None` if they do not state it.
pub(in crate::protocols) fn either_in_role(
    opening: &StreamOpening<'_>,
    first: impl FnOnce(&[u8]) -> Verdict,
    is_answer: impl FnOnce(&[u8]) -> Option<bool>,
) -> Verdict {
    let is_alone = opening.client.is_empty() || opening.server.is_empty();
    let from = if opening.client.is_empty() { Role::Server } else { Role::Client };
    let bytes = if opening.client.is_empty() { opening.server } else { opening.client };
    match first(bytes) {
        Verdict::Match if is_alone => in_role(from, is_answer(bytes)),
        verdict => verdict,
    }
}

/// Returns the match of a datagram if `is_match`, with the roles that the first datagram of a flow states: it is an answer
/// or not, or does not state that. Later ones state nothing, because both sides may ask.
pub(in crate::protocols) fn datagram_in_role(
    opening: &DatagramOpening<'_>,
    is_match: bool,
    is_answer: Option<bool>,
) -> Verdict {
    match is_match {
        true if opening.answered.is_empty() => in_role(opening.from, is_answer),
        _ => Verdict::of(is_match),
    }
}

fn in_role(from: Role, is_answer: Option<bool>) -> Verdict {
    match (from, is_answer) {
        (Role::Client, Some(true)) | (Role::Server, Some(false)) => Verdict::MatchReversed,
        _ => Verdict::Match,
    }
}
