//! Lines out of a stream's octets, as protocols of lines and codes need them.

use memchr::memchr;

use super::protocol::{Search, Verdict};

/// Searches for a line of a protocol behind lines of something else. `judge` sees a line with its end, as far as it came.
pub(super) fn search_lines(bytes: &[u8], judge: impl Fn(&[u8]) -> Verdict) -> Search {
    let mut start = 0;
    for line in bytes.split_inclusive(|octet| *octet == b'\n') {
        if judge(line) == Verdict::Match {
            return Search::Found(start);
        }
        if line.ends_with(b"\n") {
            start += line.len();
        }
    }
    // The last line is kept even if it is none, so that its middle is not taken for the start of one.
    Search::From(start)
}

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The octets before CR LF or LF, at most as many as the limit.
    pub(super) text: &'a [u8],
    /// Whether the line had more, which are dropped.
    pub(super) is_cut: bool,
    /// Whether CR stood before LF. Of a line that is cut, false.
    pub(super) has_cr: bool,
}

/// Splits one direction into lines. Between calls it holds nothing but whether the rest of a line is to be dropped, so that a
/// line of any length costs at most the limit and two octets of what the driver keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineSplitter {
    is_dropping: bool,
}

impl LineSplitter {
    /// Drops what comes up to the next line's beginning: octets are missing, or a line was cut.
    pub(super) const fn resynchronise(&mut self) {
        self.is_dropping = true;
    }

    /// Whether what comes next is a line's beginning, and not the rest of one that is dropped.
    pub(super) const fn is_at_start(self) -> bool {
        !self.is_dropping
    }

    /// The next line at the start of `bytes`, of which `len_max` octets are given, and how many octets were taken. None: there is
    /// no whole line. The same lines come out however the octets are split. The first `seen_len` octets are what a call before
    /// left: they end no line.
    pub(super) fn next<'a>(
        &mut self,
        bytes: &'a [u8],
        seen_len: usize,
        len_max: usize,
    ) -> (usize, Option<Line<'a>>) {
        let mut start = 0;
        if self.is_dropping {
            let Some(end) = memchr(b'\n', bytes) else { return (bytes.len(), None) };
            self.is_dropping = false;
            start = end + 1;
        }
        let rest = bytes.get(start..).unwrap_or_default();
        // Room for a line of the greatest length with its end.
        let window = rest.get(..len_max + 2).unwrap_or(rest);
        let seen_len = seen_len.saturating_sub(start);
        match memchr(b'\n', window.get(seen_len..).unwrap_or_default()) {
            Some(end) => {
                let end = seen_len + end;
                let text = rest.get(..end).unwrap_or_default();
                let (text, has_cr) = text.strip_suffix(b"\r").map_or((text, false), |text| (text, true));
                (start + end + 1, Some(cut(text, len_max, has_cr)))
            }
            None if window.len() == len_max + 2 => {
                self.is_dropping = true;
                (start + len_max, Some(cut(window, len_max, false)))
            }
            None => (start, None),
        }
    }
}

fn cut(text: &[u8], len_max: usize, has_cr: bool) -> Line<'_> {
    match text.get(..len_max) {
        Some(first) if text.len() > len_max => Line { text: first, is_cut: true, has_cr: false },
        _ => Line { text, is_cut: false, has_cr },
    }
}

/// The first word of a line, and what follows the blanks behind it.
pub(super) fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (word, rest.trim_ascii_start())
}

/// Whether octets begin with a word in any case.
pub(super) fn starts_with_ignore_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A decimal number and nothing else. None if it is too great.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
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

    /// All lines of octets that come in pieces of a length, as the driver would offer them.
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
                all.push((text, line.is_cut, line.has_cr));
            }
            kept.drain(..at);
            assert!(kept.len() < len_max + 2, "what is kept is bounded");
        }
        all
    }

    #[test]
    fn lines_end_with_crlf_or_lf_and_are_cut_at_the_limit() {
        let text = b"one\r\ntwo\n\r\n\n12345\r\n123456\r\n123456\n1234567890\nmore\rless\r\nlast";
        let line = |text: &str, is_cut, has_cr| (text.to_owned(), is_cut, has_cr);
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
    fn after_a_hole_lines_begin_behind_the_next_end() {
        let mut splitter = LineSplitter::default();
        splitter.resynchronise();
        assert_eq!(splitter.next(b"rest of a li", 0, 80), (12, None));
        let (taken, line) = splitter.next(b"ne\r\nwhole\r\n", 0, 80);
        assert_eq!((taken, line.map(|line| line.text)), (11, Some(b"whole".as_slice())));
    }

    #[test]
    fn words_and_numbers() {
        assert_eq!(first_word(b" EHLO  a.example b "), (b"EHLO".as_slice(), b"a.example b".as_slice()));
        assert_eq!(first_word(b"\tQUIT"), (b"QUIT".as_slice(), b"".as_slice()));
        assert_eq!((decimal(b"0120"), decimal(b""), decimal(b"1x")), (Some(120), None, None));
        assert_eq!(
            (decimal(b"18446744073709551615"), decimal(b"18446744073709551616")),
            (Some(u64::MAX), None)
        );
    }
}
