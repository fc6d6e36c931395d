//! The content of a mail after DATA: its end, and its length without the dots added for transparency.

use memchr::memchr;

use crate::checkpoint::{COUNT_MAX, state};

/// Scanner of the content after DATA, which removes the dots added for transparency; the octets are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentScanner {
    at: At,
    /// True if a bare LF ends lines of the content too.
    is_lf_enough: bool,
    /// Length of the content so far in octets, including the line end before the last dot (RFC 1870 section 3).
    pub(super) len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The scanner is at the first octet of a line.
    Start,
    /// The scanner is after a dot at the start of a line.
    Dot,
    /// The scanner is after a dot at the start of a line, and CR.
    DotCr,
    /// The scanner is inside a line; true if the last octet was CR.
    Within(bool),
}

state! { struct ContentScanner { at, is_lf_enough, len } if |scanner| scanner.len < COUNT_MAX }
state! { enum At { 0 = Start, 1 = Dot, 2 = DotCr, 3 = Within(was_cr) } }

impl ContentScanner {
    pub(super) const fn new(is_lf_enough: bool) -> Self {
        Self { at: At::Start, is_lf_enough, len: 0 }
    }

    /// Scans octets up to the end of the content, and passes those of the content to `out`. Returns the number of
    /// octets consumed, and whether the end was reached.
    pub(super) fn scan(&mut self, bytes: &[u8], mut out: impl FnMut(&[u8])) -> (usize, bool) {
        // The octets of the content from `start` to `taken` are passed on together.
        let (mut start, mut taken) = (0, 0);
        while let Some(rest) = bytes.get(taken..)
            && let Some(octet) = rest.first()
        {
            match (self.at, octet) {
                (At::Start, b'.') => {
                    pass(bytes.get(start..taken), &mut out);
                    (self.at, taken) = (At::Dot, taken + 1);
                    start = taken;
                }
                (At::Dot, b'\r') => {
                    (self.at, taken) = (At::DotCr, taken + 1);
                    start = taken;
                }
                (At::DotCr, b'\n') => return (taken + 1, true),
                (At::Dot, b'\n') if self.is_lf_enough => return (taken + 1, true),
                (At::Start | At::Dot, _) => self.at = At::Within(false),
                (At::DotCr, _) => {
                    out(b"\r");
                    self.len += 1;
                    self.at = At::Within(true);
                }
                (At::Within(was_cr), _) => {
                    let line_len = memchr(b'\n', rest).map(|end| end + 1);
                    let part = rest.get(..line_len.unwrap_or(rest.len())).unwrap_or(rest);
                    self.len += part.len() as u64;
                    taken += part.len();
                    self.at = match part {
                        [.., b'\r', b'\n'] => At::Start,
                        [b'\n'] if was_cr => At::Start,
                        [.., b'\n'] if self.is_lf_enough => At::Start,
                        part => At::Within(part.ends_with(b"\r")),
                    };
                }
            }
        }
        pass(bytes.get(start..taken), &mut out);
        (taken, false)
    }

    /// Records that `len` octets of the content are missing.
    pub(super) const fn skip(&mut self, len: u64) {
        self.len = self.len.saturating_add(len);
        self.at = At::Within(false);
    }
}

/// Passes on octets of the content, if there are any.
fn pass(piece: Option<&[u8]>, out: &mut impl FnMut(&[u8])) {
    if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
        out(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the end of the content line by line, like a receiver that has all of it. Returns the number of octets up
    /// to and including the end, and the content.
    fn naive(all: &str) -> Option<(usize, String)> {
        if let Some(rest) = all.strip_prefix(".\r\n") {
            return Some((all.len() - rest.len(), String::new()));
        }
        let end = all.find("\r\n.\r\n")?;
        let content = &all[..end + 2];
        let lines: Vec<_> =
            content.split_inclusive("\r\n").map(|line| line.strip_prefix('.').unwrap_or(line)).collect();
        Some((end + 5, lines.concat()))
    }

    #[test]
    fn the_end_of_the_content_does_not_depend_on_segmentation() {
        let contents = [
            ".\r\nQUIT\r\n",
            "Subject: x\r\n\r\nbody\r\n.\r\nQUIT\r\n",
            "..\r\n...\r\n.a\r\n. \r\n.\r\n",
            "a\n.\nb\r.\r\n.\rx\r\n.\r\r\n\r\n.\r\nrest",
            "a\r\r\n.\r\n",
            "\r\n.\r\n",
            "\n\n.\r\n\r\n.\n\r\n.\r\n",
            "no end\r\n.",
        ];
        for all in contents {
            for split in 0..all.len() {
                let mut scanner = ContentScanner::new(false);
                let (first, second) = all.as_bytes().split_at(split);
                let mut content = Vec::new();
                let (mut taken, mut is_end) = scanner.scan(first, |piece| content.extend(piece));
                if !is_end {
                    let (more, at_end) = scanner.scan(second, |piece| content.extend(piece));
                    (taken, is_end) = (taken + more, at_end);
                }
                assert_eq!(content.len() as u64, scanner.len, "{all:?} split at {split}");
                let content = String::from_utf8(content).expect("text");
                let found = is_end.then_some((taken, content));
                assert_eq!(found, naive(all), "{all:?} split at {split}");
            }
        }
    }

    #[test]
    fn a_bare_lf_ends_lines_if_the_client_uses_it() {
        for (is_lf_enough, expected) in
            [(true, (8, true, &b"a\n.b\n"[..])), (false, (13, false, b"a\n..b\n.\nQUIT\n"))]
        {
            let mut content = Vec::new();
            let mut scanner = ContentScanner::new(is_lf_enough);
            let (len, is_end) = scanner.scan(b"a\n..b\n.\nQUIT\n", |piece| content.extend(piece));
            assert_eq!((len, is_end, content.as_slice()), expected);
        }
    }
}
