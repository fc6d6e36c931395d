//! The lines of a chunked HTTP body (RFC 9112 section 7.1).

use memchr::memchr;

use super::CHUNK_LINE_LEN_MAX;
use crate::session::Fault;

const BAD_CHUNK: Fault = Fault::new("bad_chunk");

/// Maximum number of hexadecimal digits of a chunk's length.
const DIGIT_COUNT_MAX: usize = 16;

/// Parses the line before a chunk. Returns the length of the line including its end, and the length of the chunk, both
/// in octets; `None` if the line is incomplete. The line does not end in the first `seen_len` octets.
pub(super) fn size_line(bytes: &[u8], seen_len: usize) -> Result<Option<(usize, u64)>, Fault> {
    let window = bytes.get(..CHUNK_LINE_LEN_MAX).unwrap_or(bytes);
    // An invalid number is rejected before the end of its line is received.
    let digits = window.iter().take(DIGIT_COUNT_MAX + 1).take_while(|octet| octet.is_ascii_hexdigit());
    let digit_count = digits.count();
    let (digits, rest) = window.split_at_checked(digit_count).unwrap_or((window, &[]));
    let is_sound = match rest {
        [] => digits.len() <= DIGIT_COUNT_MAX,
        // Some servers pad the number with spaces.
        [next, ..] => {
            matches!(digits.len(), 1..=DIGIT_COUNT_MAX) && matches!(next, b';' | b' ' | b'\t' | b'\r' | b'\n')
        }
    };
    if !is_sound {
        return Err(BAD_CHUNK);
    }
    let Some(end) = memchr(b'\n', window.get(seen_len..).unwrap_or_default()) else {
        return if window.len() < CHUNK_LINE_LEN_MAX {
            Ok(None)
        } else {
            Err(Fault::new("chunk_line_too_long"))
        };
    };
    let len = digits.iter().fold(0, |sum, digit| sum << 4 | hex(*digit));
    Ok(Some((seen_len + end + 1, len)))
}

/// Returns the length in octets of the line end that follows a chunk; `None` if it is incomplete.
pub(super) fn line_end(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    match bytes {
        [b'\r', b'\n', ..] => Ok(Some(2)),
        [b'\n', ..] => Ok(Some(1)),
        [] | [b'\r'] => Ok(None),
        _ => Err(BAD_CHUNK),
    }
}

fn hex(digit: u8) -> u64 {
    match digit {
        b'0'..=b'9' => u64::from(digit - b'0'),
        _ => u64::from((digit | 0x20) - b'a' + 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_lengths_and_extensions_are_parsed() {
        assert_eq!(size_line(b"1aF\r\nrest", 0), Ok(Some((5, 0x1AF))));
        assert_eq!(size_line(b"0\n", 0), Ok(Some((2, 0))));
        assert_eq!(size_line(b"5;name=\"value\"\r\n", 0), Ok(Some((16, 5))));
        assert_eq!(size_line(b"5   \r\n", 0), Ok(Some((6, 5))));
        assert_eq!(size_line(b"FFFFFFFFFFFFFFFF\r\n", 0), Ok(Some((18, u64::MAX))));
        for part in ["", "5", "5;a", "5\r"] {
            assert_eq!(size_line(part.as_bytes(), 0), Ok(None), "{part}");
        }
        for bad in ["\r\n", "g", "-5", "10000000000000000", "5x"] {
            assert_eq!(size_line(bad.as_bytes(), 0), Err(BAD_CHUNK), "{bad}");
        }
        for seen_len in 0..5 {
            assert_eq!(size_line(b"5;abc\r\nrest", seen_len), Ok(Some((7, 5))), "{seen_len}");
        }
        let long = format!("5;{}", "a".repeat(CHUNK_LINE_LEN_MAX));
        assert!(size_line(long.as_bytes(), 0).is_err());
    }
}
