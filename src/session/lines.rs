//! Lines of a stream, for parsers of text protocols.
//!
//! A [`LineSplitter`] returns one line at a time, and the number of octets that the parser has consumed:
//!
//! ```
//! use flowgauge::session::lines::{LineSplitter, first_word};
//!
//! let mut lines = LineSplitter::default();
//! let (taken, line) = lines.next(b"MAIL  FROM:<alice@example>\r\nRCPT", 0, 512);
//! assert_eq!(taken, 28);
//! assert_eq!(line.map(|line| first_word(line.text)), Some((&b"MAIL"[..], &b"FROM:<alice@example>"[..])));
//! ```

use memchr::memchr;

use super::protocol::{Search, Verdict};

/// Searches for the first line of a protocol after lines of another protocol. `judge` is called with each line
/// including its line end; the last line may be incomplete.
pub fn search_lines(bytes: &[u8], judge: impl Fn(&[u8]) -> Verdict) -> Search {
    let mut start = 0;
    for line in bytes.split_inclusive(|octet| *octet == b'\n') {
        if judge(line) == Verdict::Match {
            return Search::Found(start);
        }
        if line.ends_with(b"\n") {
            start += line.len();
        }
    }
    // The last line is kept even if it does not match, so that its middle is not taken for the start of a line.
    Search::From(start)
}

/// A line of a stream, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The octets before CR LF or LF, up to the length limit.
    pub text: &'a [u8],
    /// True if the line was longer than the limit, so that the rest was dropped.
    pub is_truncated: bool,
    /// True if the line ended with CR LF; false for a truncated line.
    pub has_cr: bool,
}

/// Splits one direction of a stream into lines.
///
/// The only state is whether the rest of a truncated line must be dropped. The driver buffers an incomplete line: at
/// most the length limit and two octets.
///
/// ```
/// use flowgauge::session::lines::LineSplitter;
///
/// let mut lines = LineSplitter::default();
/// let (taken, line) = lines.next(b"HELO example\r\nQUI", 0, 80);
/// assert_eq!((taken, line.unwrap().text), (14, &b"HELO example"[..]));
/// assert_eq!(lines.next(b"QUI", 0, 80), (0, None));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LineSplitter {
    is_dropping: bool,
}

crate::checkpoint::state! { struct LineSplitter { is_dropping } }

impl LineSplitter {
    /// Drops all octets up to the beginning of the next line, because octets are missing.
    pub const fn resynchronize(&mut self) {
        self.is_dropping = true;
    }

    /// Returns whether the next octet begins a line, and is not part of a truncated line.
    #[must_use]
    pub const fn is_at_start(self) -> bool {
        !self.is_dropping
    }

    /// Drops the rest of a truncated line at the start of `bytes`, for a parser that examines the octets at which the
    /// next line begins. Returns the number of octets dropped.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> usize {
        if !self.is_dropping {
            return 0;
        }
        let Some(end) = memchr(b'\n', bytes) else { return bytes.len() };
        self.is_dropping = false;
        end + 1
    }

    /// Returns the number of octets consumed, and the line at the start of `bytes`, at most `len_max` octets of it;
    /// `None` if no line is complete. The result does not depend on how the octets are divided into calls. The first
    /// `seen_len` octets were passed to an earlier call and are not searched again. Takes time linear in the new
    /// octets; allocates nothing.
    pub fn next<'a>(
        &mut self,
        bytes: &'a [u8],
        seen_len: usize,
        len_max: usize,
    ) -> (usize, Option<Line<'a>>) {
        let start = self.skip(bytes);
        if self.is_dropping {
            return (start, None);
        }
        let rest = bytes.get(start..).unwrap_or_default();
        // Window for a line of maximum length with its end.
        let window = rest.get(..len_max + 2).unwrap_or(rest);
        let seen_len = seen_len.saturating_sub(start);
        match memchr(b'\n', window.get(seen_len..).unwrap_or_default()) {
            Some(end) => {
                let end = seen_len + end;
                let text = rest.get(..end).unwrap_or_default();
                let (text, has_cr) = text.strip_suffix(b"\r").map_or((text, false), |text| (text, true));
                (start + end + 1, Some(truncated(text, len_max, has_cr)))
            }
            None if window.len() == len_max + 2 => {
                self.is_dropping = true;
                (start + len_max, Some(truncated(window, len_max, false)))
            }
            None => (start, None),
        }
    }
}

fn truncated(text: &[u8], len_max: usize, has_cr: bool) -> Line<'_> {
    match text.get(..len_max) {
        Some(first) if text.len() > len_max => Line { text: first, is_truncated: true, has_cr: false },
        _ => Line { text, is_truncated: false, has_cr },
    }
}

/// Returns the first word of a line, and the text after the white space that follows it.
#[must_use]
pub fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (word, rest.trim_ascii_start())
}

/// Returns whether `bytes` begin with `prefix`, ignoring the case of ASCII letters.
#[must_use]
pub(crate) fn starts_with_ignore_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Parses a decimal number; `None` for any other text, and for a number of more than 64 bits.
#[must_use]
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, octet| {
        let digit = octet.is_ascii_digit().then(|| u64::from(octet - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all lines of `bytes` (text, whether truncated, whether ended with CR LF), which are passed in pieces of
    /// `piece_len` octets, as by the driver.
    fn lines(bytes: &[u8], len_max: usize, piece_len: usize) -> Vec<(String, bool, bool)> {
        let (mut splitter, mut kept, mut all) = (LineSplitter::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece_len) {
            let seen_len = kept.len();
            kept.extend_from_slice(piece);
            let mut at = 0;
            loop {
                let (taken, line) = splitter.next(&kept[at..], seen_len.saturating_sub(at), len_max);
                at += taken;
                let Some(line) = line else { break };
                let text = line.text.escape_ascii().to_string();
                all.push((text, line.is_truncated, line.has_cr));
            }
            kept.drain(..at);
            assert!(kept.len() < len_max + 2, "the number of buffered octets is bounded");
        }
        all
    }

    #[test]
    fn lines_end_with_crlf_or_lf_and_are_truncated_at_the_limit() {
        let text = b"one\r\ntwo\n\r\n\n12345\r\n123456\r\n123456\n1234567890\nmore\rless\r\nlast";
        let line = |text: &str, is_truncated, has_cr| (text.to_owned(), is_truncated, has_cr);
        let expected = [
            line("one", false, true),
            line("two", false, false),
            line("", false, true),
            line("", false, false),
            line("12345", false, true),
            line("12345", true, false),
            line("12345", true, false),
            line("12345", true, false),
            line("more\\r", true, false),
        ];
        for piece_len in 1..text.len() {
            assert_eq!(lines(text, 5, piece_len), expected, "{piece_len} octets at a time");
        }
    }

    #[test]
    fn after_a_gap_lines_begin_after_the_next_line_end() {
        let mut splitter = LineSplitter::default();
        splitter.resynchronize();
        assert_eq!(splitter.next(b"rest of a li", 0, 80), (12, None));
        let (taken, line) = splitter.next(b"ne\r\nwhole\r\n", 0, 80);
        assert_eq!((taken, line.map(|line| line.text)), (11, Some(b"whole".as_slice())));
    }

    #[test]
    fn words_and_numbers_are_parsed() {
        assert_eq!(first_word(b" EHLO  a.example b "), (b"EHLO".as_slice(), b"a.example b".as_slice()));
        assert_eq!(first_word(b"\tQUIT"), (b"QUIT".as_slice(), b"".as_slice()));
        assert_eq!((decimal(b"0120"), decimal(b""), decimal(b"1x")), (Some(120), None, None));
        assert_eq!(
            (decimal(b"18446744073709551615"), decimal(b"18446744073709551616")),
            (Some(u64::MAX), None)
        );
    }
}
