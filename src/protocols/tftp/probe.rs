//! Recognition of TFTP.

use crate::session::{DatagramOpening, Verdict};

/// Recognizes a request with a printable file name and a mode.
pub(super) fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let [0, 1 | 2, rest @ ..] = opening.bytes else { return Verdict::No };
    let mut words = rest.split(|octet| *octet == 0);
    let (name, mode) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_name = !name.is_empty() && name.iter().all(|octet| matches!(octet, b' '..=b'~'));
    let is_mode =
        [b"octet".as_slice(), b"netascii", b"mail"].iter().any(|word| mode.eq_ignore_ascii_case(word));
    Verdict::of(is_name && is_mode)
}

/// Returns whether a datagram may be the first answer to a request: the first block, the acknowledgment of a request to
/// write, that of options, or an error.
pub(super) fn may_be_answer(opening: &DatagramOpening<'_>) -> bool {
    matches!(opening.bytes, [0, 3, 0, 1, ..] | [0, 4, 0, 0] | [0, 5, 0, _, ..] | [0, 6, b'!'..=b'~', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_recognized() {
        for (bytes, verdict) in [
            (&b"\0\x01rfc1350.txt\0octet\0"[..], Verdict::Match),
            (b"\0\x02rfc1350.txt\0NetASCII\0blksize\x001428\0", Verdict::Match),
            (b"\0\x01rfc1350.txt\0binary\0", Verdict::No),
            (b"\0\x01\0\0\0\0octet\0", Verdict::No),
            (b"\0\x03\0\x01octet\0octet\0", Verdict::No),
            (b"\0\x01rfc1350.txt", Verdict::No),
        ] {
            assert_eq!(probe(&DatagramOpening::first(bytes, 40_000, 69)), verdict, "{bytes:?}");
        }
    }
}
