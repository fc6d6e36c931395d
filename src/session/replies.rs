//! Replies of three digits and text, on one or more lines, as in SMTP and FTP (RFC 5321 section 4.2, RFC 959 section
//! 4.2).
//!
//! The parsers of SMTP and FTP are based on [`ReplyReader`], and other parsers can use it as well:
//!
//! ```
//! use flowgauge::session::replies::{Item, Middle, ReplyReader};
//!
//! let mut reader = ReplyReader::default();
//! let (taken, item) = reader.next(b"250-mail.example\r\n250 SIZE 1000\r\n", 0, Middle::Coded)?;
//! let Some(Item::Reply(reply)) = item else { panic!("{item:?}") };
//! assert_eq!((taken, reply.code, reply.text), (33, 250, &b"mail.example\nSIZE 1000"[..]));
//! # Ok::<(), flowgauge::Fault>(())
//! ```

use super::lines::{Line, LineSplitter};
use super::parser::Fault;

/// Maximum number of octets kept of one line of a reply; RFC 5321 section 4.5.3.1.5 requires 512.
pub const REPLY_LINE_LEN_MAX: usize = 1024;

/// Maximum number of octets kept of the text of a reply of several lines.
pub const REPLY_LEN_MAX: usize = 4096;

/// The form of the lines between the first and the last line of a reply of several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// Each middle line begins with the code and a hyphen.
    Coded,
    /// Each middle line is any text.
    Free,
}

/// Maximum number of consecutive invalid lines in the replies of a server; with more, the stream is assumed to be
/// another protocol.
pub const INVALID_LINE_COUNT_MAX: u8 = 16;

const NOT_A_REPLY: Fault = Fault::new("not_a_reply");

/// A complete reply of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteReply<'a> {
    /// The reply code, from 100 to 699.
    pub code: u16,
    /// The lines of the reply without codes, joined by LF.
    pub text: &'a [u8],
    /// True if the text of the reply was longer than the octets that are kept.
    pub is_truncated: bool,
    /// True if a code of the reply is followed by neither space nor hyphen, or is missing in a middle line.
    pub is_malformed: bool,
}

/// The result of one or more lines of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A complete reply of the server.
    Reply(CompleteReply<'a>),
    /// A line of text without a code where a reply must begin.
    Invalid,
    /// An empty line where a reply must begin.
    Empty,
}

/// Parser of the replies in one direction of a stream.
#[derive(Debug, Default)]
pub struct ReplyReader {
    lines: LineSplitter,
    /// Code of a reply of several lines that is incomplete; `None` if no reply is incomplete.
    code: Option<u16>,
    is_truncated: bool,
    is_malformed: bool,
    /// Text so far of a reply of several lines.
    text: Vec<u8>,
    /// True if `text` belongs to a reply that was already returned, so that the next reply replaces it.
    is_returned: bool,
    /// True if octets of the stream are missing before the next ones.
    follows_gap: bool,
    /// True after the first reply. From then on, an invalid line is an error of the server; before, it indicates
    /// another protocol.
    has_replied: bool,
    invalid_line_count: u8,
}

crate::checkpoint::state! {
    struct ReplyReader {
        lines, code, is_truncated, is_malformed, text, is_returned, follows_gap, has_replied, invalid_line_count,
    }
    if |reader| reader.text.len() <= REPLY_LEN_MAX
}

impl ReplyReader {
    /// Returns the number of octets consumed, and the next reply or invalid line; `None` if no reply is complete. A
    /// reply of one line borrows `bytes`, and nothing is allocated. The first `seen_len` octets of `bytes` were passed
    /// to an earlier call and not consumed.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the octets are those of another protocol.
    pub fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        mut seen_len: usize,
        middle: Middle,
    ) -> Result<(usize, Option<Item<'a>>), Fault> {
        if self.is_returned {
            self.is_returned = false;
            self.text = Vec::new();
        }
        if self.follows_gap {
            if !self.follow_gap(bytes) {
                return Ok((0, None));
            }
            // These octets were not searched for the end of a line.
            seen_len = 0;
        }
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let (len, line) = self.lines.next(rest, seen_len.saturating_sub(taken), REPLY_LINE_LEN_MAX);
            taken += len;
            let Some(line) = line else { return Ok((taken, None)) };
            match self.line(&line, middle)? {
                None => {}
                Some(Item::Invalid) => return Ok((taken, Some(Item::Invalid))),
                Some(Item::Empty) => return Ok((taken, Some(Item::Empty))),
                Some(Item::Reply(reply)) => {
                    let text = if self.is_returned { &self.text } else { reply.text };
                    return Ok((taken, Some(Item::Reply(CompleteReply { text, ..reply }))));
                }
            }
        }
    }

    /// Decides what follows a gap: a reply that begins here is complete; anything else is the rest of a line. Returns false if there
    /// are too few octets.
    fn follow_gap(&mut self, bytes: &[u8]) -> bool {
        let Some(start) = bytes.get(..4) else { return false };
        self.follows_gap = false;
        if coded(start).is_none() {
            self.lines.resynchronize();
        }
        true
    }

    /// Processes a line. Returns the reply that ends with it. The returned text is that of this line only; `self.text`
    /// contains the text of a reply of several lines.
    fn line<'a>(&mut self, line: &Line<'a>, middle: Middle) -> Result<Option<Item<'a>>, Fault> {
        let coded = coded(line.text);
        let Some(known) = self.code else { return self.first_line(line, coded) };
        self.is_truncated |= line.is_truncated;
        let (is_last, text) = match (coded, middle) {
            (Some((code, is_last, text)), Middle::Coded) => {
                // If the codes differ, the one of the last line counts.
                self.code = Some(code);
                (is_last, text)
            }
            (Some((code, is_last, text)), Middle::Free) if code == known => (is_last, text),
            (_, Middle::Free) => (false, line.text),
            (None, Middle::Coded) => {
                self.count_invalid(line.text)?;
                self.is_malformed = true;
                (false, line.text)
            }
        };
        self.add(text);
        if !is_last {
            return Ok(None);
        }
        self.is_returned = true;
        let code = self.code.take().unwrap_or(known);
        let (is_truncated, is_malformed) =
            (std::mem::take(&mut self.is_truncated), std::mem::take(&mut self.is_malformed));
        Ok(Some(self.replied(CompleteReply { code, text: &[], is_truncated, is_malformed })))
    }

    /// Processes a line of a server where a reply must begin.
    fn first_line<'a>(
        &mut self,
        line: &Line<'a>,
        coded: Option<(u16, bool, &'a [u8])>,
    ) -> Result<Option<Item<'a>>, Fault> {
        let is_truncated = line.is_truncated;
        match coded {
            Some((code, true, text)) => {
                Ok(Some(self.replied(CompleteReply { code, text, is_truncated, is_malformed: false })))
            }
            Some((code, false, text)) => {
                (self.code, self.is_truncated) = (Some(code), is_truncated);
                self.add(text);
                Ok(None)
            }
            // Some servers send an empty line after a reply.
            None if line.text.is_empty() => Ok(Some(Item::Empty)),
            None => {
                let Some((code, text)) = split_code(line.text) else {
                    self.count_invalid(line.text)?;
                    return Ok(Some(Item::Invalid));
                };
                self.check_text(line.text)?;
                Ok(Some(self.replied(CompleteReply { code, text, is_truncated, is_malformed: true })))
            }
        }
    }

    fn replied<'a>(&mut self, reply: CompleteReply<'a>) -> Item<'a> {
        (self.has_replied, self.invalid_line_count) = (true, 0);
        Item::Reply(reply)
    }

    fn count_invalid(&mut self, text: &[u8]) -> Result<(), Fault> {
        self.invalid_line_count = self.invalid_line_count.saturating_add(1);
        if self.invalid_line_count > INVALID_LINE_COUNT_MAX {
            return Err(NOT_A_REPLY);
        }
        self.check_text(text)
    }

    /// Returns a fault if an invalid line is from another protocol; not if it is an error of a server that replied
    /// before.
    fn check_text(&self, text: &[u8]) -> Result<(), Fault> {
        let is_text = !text.iter().any(|octet| octet.is_ascii_control() && *octet != b'\t');
        let has_begun = self.has_replied || self.code.is_some();
        (is_text && has_begun).then_some(()).ok_or(NOT_A_REPLY)
    }

    /// Appends a line to the text of the reply, up to [`REPLY_LEN_MAX`].
    fn add(&mut self, line: &[u8]) {
        // The first line is always followed by another one.
        let separator: &[u8] = if self.text.capacity() > 0 { b"\n" } else { b"" };
        let free_len = REPLY_LEN_MAX.saturating_sub(self.text.len() + separator.len());
        let kept = line.get(..free_len).unwrap_or(line);
        self.is_truncated |= kept.len() < line.len() || (free_len == 0 && self.text.len() >= REPLY_LEN_MAX);
        if free_len > 0 {
            let len = self.text.len() + separator.len() + kept.len();
            if len > self.text.capacity() {
                // The capacity is doubled, so that a reply of many short lines is not moved with each line.
                let wanted = len.max(2 * self.text.capacity()).clamp(256, REPLY_LEN_MAX);
                self.text.reserve_exact(wanted - self.text.len());
            }
            self.text.extend_from_slice(separator);
            self.text.extend_from_slice(kept);
        }
    }

    /// Drops the rest of a line that is truncated, or follows a gap, before the next reply, for a parser that examines the octets at
    /// which a reply begins. Returns the number of octets dropped. After a gap, octets that were passed before were not searched, so
    /// that `seen_len` becomes 0.
    pub(crate) fn skip(&mut self, bytes: &[u8], seen_len: &mut usize) -> usize {
        if self.follows_gap {
            *seen_len = 0;
        }
        let is_known = !self.follows_gap || self.follow_gap(bytes);
        if self.code.is_some() || !is_known { 0 } else { self.lines.skip(bytes) }
    }

    /// Drops an incomplete reply, because octets are missing. The next octets may begin a reply.
    pub fn resynchronize(&mut self) {
        *self = Self { follows_gap: true, has_replied: self.has_replied, ..Self::default() };
    }

    /// Returns whether the next octet is the first one of a reply, not part of an incomplete reply.
    #[must_use]
    pub(crate) const fn is_at_start(&self) -> bool {
        self.code.is_none() && self.lines.is_at_start() && !self.follows_gap
    }

    /// Returns the number of octets that the reader of replies has allocated, for [`Parser::heap_len`](super::Parser).
    #[must_use]
    pub(crate) fn heap_len(&self) -> usize {
        self.text.capacity()
    }
}

/// Returns the code of a line of a reply, whether the reply ends with this line, and the text after the code.
fn coded(line: &[u8]) -> Option<(u16, bool, &[u8])> {
    let (code, rest) = split_code(line)?;
    match rest.split_first() {
        None => Some((code, true, rest)),
        Some((b' ', text)) => Some((code, true, text)),
        Some((b'-', text)) => Some((code, false, text)),
        Some(_) => None,
    }
}

/// Returns the code at the start of a line of a reply, and the octets after the code.
fn split_code(line: &[u8]) -> Option<(u16, &[u8])> {
    let (code, rest) = line.split_first_chunk::<3>()?;
    let is_code = code.iter().all(u8::is_ascii_digit) && matches!(code, [b'1'..=b'6', ..]);
    is_code.then(|| (code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0')), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code and text of each reply, and whether the text was truncated; the code of an invalid line is
    /// zero. The octets are passed to the reader in pieces of `piece_len`.
    fn replies(bytes: &[u8], middle: Middle, piece_len: usize) -> Result<Vec<(u16, String, bool)>, Fault> {
        let (mut reader, mut kept, mut all) = (ReplyReader::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece_len) {
            let mut seen_len = kept.len();
            kept.extend_from_slice(piece);
            loop {
                let (taken, item) = reader.next(&kept, seen_len, middle)?;
                let was_complete = item.is_some();
                seen_len = seen_len.saturating_sub(taken);
                match item {
                    Some(Item::Reply(reply)) => {
                        let malformed = if reply.is_malformed { "malformed: " } else { "" };
                        let text = format!("{malformed}{}", reply.text.escape_ascii());
                        all.push((reply.code, text, reply.is_truncated));
                    }
                    Some(Item::Invalid) => all.push((0, String::new(), false)),
                    Some(Item::Empty) | None => {}
                }
                kept.drain(..taken);
                assert!(reader.heap_len() <= 2 * REPLY_LEN_MAX);
                if !was_complete {
                    break;
                }
            }
        }
        Ok(all)
    }

    #[test]
    fn single_line_and_multiline_replies_are_parsed() {
        let text = b"220 hello\r\n250-first\r\n250-\r\n250 last\r\n\r\n221\r\n250-a\n250 b\n354";
        let expected = [(220, "hello"), (250, "first\\n\\nlast"), (221, ""), (250, "a\\nb")]
            .map(|(code, text)| (code, text.to_owned(), false));
        for piece_len in 1..text.len() {
            assert_eq!(replies(text, Middle::Coded, piece_len).as_deref(), Ok(expected.as_slice()));
            assert_eq!(replies(text, Middle::Free, piece_len).as_deref(), Ok(expected.as_slice()));
        }
    }

    #[test]
    fn intermediate_lines_may_be_any_text_if_the_protocol_permits_it() {
        // RFC 959 section 4.2.
        let text =
            b"123-First line\r\nSecond line\r\n  234 A line beginning with numbers\r\n123 The last line\r\n";
        let whole = "First line\\nSecond line\\n  234 A line beginning with numbers\\nThe last line";
        assert_eq!(replies(text, Middle::Free, 9), Ok(vec![(123, whole.to_owned(), false)]));
        assert_eq!(
            replies(text, Middle::Coded, 9),
            Ok(vec![(123, format!("malformed: {whole}"), false)]),
            "an SMTP server that omits codes"
        );
    }

    #[test]
    fn an_invalid_reply_does_not_end_the_dialogue() {
        let text = b"220 hello\r\n230_no_space\r\nno code\r\n2500\r\n221 bye\r\n";
        let expected =
            [(220, "hello"), (230, "malformed: _no_space"), (0, ""), (250, "malformed: 0"), (221, "bye")];
        let expected = expected.map(|(code, text)| (code, text.to_owned(), false));
        for piece_len in 1..text.len() {
            assert_eq!(replies(text, Middle::Coded, piece_len).as_deref(), Ok(expected.as_slice()));
            assert_eq!(replies(text, Middle::Free, piece_len).as_deref(), Ok(expected.as_slice()));
        }
    }

    #[test]
    fn another_protocol_is_rejected() {
        let fault = Err(Fault::new("not_a_reply"));
        assert_eq!(replies(b"HTTP/1.1 200 OK\r\n", Middle::Free, 9), fault, "the first line is not a reply");
        assert_eq!(replies(b"230_no_space\r\n", Middle::Free, 9), fault);
        assert_eq!(replies(b"220 a\r\n\x16\x03\x01\n", Middle::Free, 9), fault, "octets that are not text");
        let lines = |count: u8| format!("220 a\r\n{}250 b\r\n", "text\r\n".repeat(count.into()));
        let count_max = INVALID_LINE_COUNT_MAX;
        assert!(replies(lines(count_max).as_bytes(), Middle::Free, 9).is_ok());
        assert_eq!(replies(lines(count_max + 1).as_bytes(), Middle::Free, 9), fault);
        let lines = |count: u8| format!("250-a\r\n{}250 b\r\n", "text\r\n".repeat(count.into()));
        assert!(replies(lines(count_max).as_bytes(), Middle::Coded, 9).is_ok());
        assert_eq!(replies(lines(count_max + 1).as_bytes(), Middle::Coded, 9), fault);
    }

    #[test]
    fn parsing_restarts_after_a_gap() {
        for (text, expected) in [
            ("250 ok\r\n221 bye\r\n", vec![(250, "ok"), (221, "bye")]),
            ("rest of it\r\n221 bye\r\n", vec![(221, "bye")]),
            ("50 x\n221 bye\r\n", vec![(221, "bye")]),
            ("\r\n221 bye\r\n", vec![(221, "bye")]),
        ] {
            let mut reader = ReplyReader::default();
            let (taken, _) = reader.next(b"250-begun\r\n25", 0, Middle::Coded).expect("nothing");
            assert_eq!(taken, 11);
            reader.resynchronize();
            let (mut rest, mut all) = (text.as_bytes(), Vec::new());
            while let Ok((taken, Some(Item::Reply(reply)))) = reader.next(rest, 0, Middle::Coded) {
                all.push((reply.code, reply.text.escape_ascii().to_string()));
                rest = &rest[taken..];
            }
            let all: Vec<_> = all.iter().map(|(code, text)| (*code, text.as_str())).collect();
            assert_eq!(all, expected, "{text:?}");
        }
    }

    #[test]
    fn an_endless_reply_uses_bounded_memory() {
        let mut text = "211-features of this server and what not\r\n".repeat(1000);
        text.push_str("211 end\r\n");
        for piece_len in [1000, 64 << 10] {
            let all = replies(text.as_bytes(), Middle::Free, piece_len).expect("replies");
            assert_eq!(all.len(), 1);
            assert!(all[0].2 && all[0].1.len() > REPLY_LEN_MAX);
        }
        let long = format!("500 {}\r\n", "x".repeat(REPLY_LINE_LEN_MAX));
        let all = replies(long.as_bytes(), Middle::Coded, 100).expect("replies");
        assert_eq!((all[0].1.len(), all[0].2), (REPLY_LINE_LEN_MAX - 4, true));
    }
}
