//! Reads and comparisons that the probes share.

use crate::session::{StreamOpening, Verdict};

/// A number in network order.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number in network order.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number whose lowest octet comes first.
pub(super) fn u16_le_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number whose lowest octet comes first.
pub(super) fn u32_le_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether octets begin with one of several texts, or may yet.
pub(super) fn begins_with(bytes: &[u8], texts: &[&[u8]]) -> Verdict {
    begins(bytes, texts, u8::eq)
}

/// The same with small and capital letters alike.
pub(super) fn begins_with_word(bytes: &[u8], words: &[&[u8]]) -> Verdict {
    begins(bytes, words, u8::eq_ignore_ascii_case)
}

fn begins(bytes: &[u8], texts: &[&[u8]], is_equal: impl Fn(&u8, &u8) -> bool) -> Verdict {
    let mut verdict = Verdict::No;
    for text in texts {
        // Octet by octet: most differ in the first one.
        if bytes.iter().zip(*text).all(|(octet, other)| is_equal(octet, other)) {
            if bytes.len() >= text.len() {
                return Verdict::Match;
            }
            verdict = Verdict::More;
        }
    }
    verdict
}

/// More while there are fewer octets than `len`, otherwise a match if a condition holds.
pub(super) fn once(bytes: &[u8], len: usize, holds: impl FnOnce() -> bool) -> Verdict {
    if bytes.len() < len { Verdict::More } else { Verdict::of(holds()) }
}

/// Whether there are octets, and all of them are printable, spaces included.
pub(super) fn is_printable(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|octet| matches!(octet, b' '..=b'~'))
}

/// Asks by who speaks: `asks` looks at what a client says, `answers` at what a server says. Roles are turned over where it is
/// the other way about.
pub(super) fn dialogue(
    opening: &StreamOpening<'_>,
    asks: impl Fn(&[u8]) -> Verdict,
    answers: impl Fn(&[u8]) -> Verdict,
) -> Verdict {
    let (straight, reversed) = if opening.client.is_empty() {
        (answers(opening.server), asks(opening.server))
    } else {
        (asks(opening.client), answers(opening.client))
    };
    match (straight, reversed) {
        (Verdict::Match, _) => Verdict::Match,
        (_, Verdict::Match) => Verdict::MatchReversed,
        (Verdict::More, _) | (_, Verdict::More) => Verdict::More,
        _ => Verdict::No,
    }
}

/// Asks about who spoke first, where both sides speak alike.
pub(super) fn either(opening: &StreamOpening<'_>, says: impl FnOnce(&[u8]) -> Verdict) -> Verdict {
    says(if opening.client.is_empty() { opening.server } else { opening.client })
}

/// An element of BER (X.690 section 8.1): its tag, the octets of tag and length, and those of what follows. None if the length
/// is indefinite, or longer than four octets.
pub(super) fn ber(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let octet_count = usize::from(first & 0x7F);
    if *first < 0x80 {
        return Some((*tag, 2, octet_count));
    }
    if !(1..=4).contains(&octet_count) {
        return None;
    }
    let len = rest.get(..octet_count)?.iter().fold(0, |len, octet| len << 8 | usize::from(*octet));
    Some((*tag, 2 + octet_count, len))
}
