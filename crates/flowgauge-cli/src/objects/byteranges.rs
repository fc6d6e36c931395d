//! Parts of a body of type `multipart/byteranges` (RFC 9110 section 14.6).
//!
//! The length of a part is that of its range, so that the octets of a file are not searched for the boundary.

use std::io::{self, BufRead, BufReader, Read, Seek};

use flowgauge::protocols::http1::ContentRange;

use super::ranges::Range;

/// Maximum number of parts of a body. One with more parts is not divided.
const PARTS_MAX: usize = 1024;

/// Maximum length in octets of a boundary (RFC 2046 section 5.1.1).
const BOUNDARY_LEN_MAX: usize = 70;

/// Maximum length in octets of a delimiter with the head of its part.
const HEAD_LEN_MAX: u64 = 8 << 10;

/// Maximum length in octets of the type of a part; the rest is omitted.
const TYPE_LEN_MAX: usize = 256;

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) range: Range,
    pub(super) content_type: Option<Box<str>>,
    /// Position of the octets of the part in the body.
    pub(super) position: u64,
    /// Number of octets, which is less than that of the range if the body is cut.
    pub(super) len: u64,
}

/// Returns the boundary in a Content-Type field; `None` for another type.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let (media_type, mut parameters) = content_type.split_once(';')?;
    if !media_type.trim().eq_ignore_ascii_case("multipart/byteranges") {
        return None;
    }
    loop {
        let (name, rest) = parameters.split_once('=')?;
        let (value, rest) = value(rest.trim_start());
        if name.trim().eq_ignore_ascii_case("boundary") {
            return Some(value).filter(|value| (1..=BOUNDARY_LEN_MAX).contains(&value.len()));
        }
        parameters = rest.trim_start().strip_prefix(';')?;
    }
}

/// Returns the value of a parameter, without quotes, and the text after it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        return (value.trim_end().to_owned(), rest);
    };
    let (mut value, mut octets) = (String::new(), quoted.chars());
    while let Some(octet) = octets.next() {
        match octet {
            '"' => break,
            '\\' => value.extend(octets.next()),
            other => value.push(other),
        }
    }
    (value, octets.as_str())
}

/// Returns the parts of a body with this boundary, or `None` if it is not well-formed, or has too many parts. A body that
/// is cut has the parts before its end.
///
/// # Errors
///
/// Returns an error of `body`.
pub(super) fn parts(body: impl Read + Seek, boundary: &str, is_cut: bool) -> io::Result<Option<Vec<Part>>> {
    let mut body = BufReader::new(body);
    let len = body.seek(io::SeekFrom::End(0))?;
    body.rewind()?;
    let delimiter = format!("--{boundary}").into();
    let mut input = PartReader { body, len, position: 0, delimiter, has_returns: None };
    let mut parts = Vec::new();
    loop {
        match input.next(parts.is_empty())? {
            Next::Part(part) if parts.len() < PARTS_MAX => {
                if part.len > 0 {
                    parts.push(part);
                }
            }
            Next::End => break,
            Next::Cut if is_cut => break,
            _ => return Ok(None),
        }
    }
    Ok(Some(parts).filter(|parts| !parts.is_empty()))
}

/// What follows in a body.
enum Next {
    Part(Part),
    /// The last delimiter.
    End,
    /// The end of the octets.
    Cut,
    /// Something else.
    Invalid,
}

/// Reads the parts of a body.
struct PartReader<R> {
    body: BufReader<R>,
    /// Number of octets of the body.
    len: u64,
    /// Number of octets that were read.
    position: u64,
    /// Two dashes and the boundary.
    delimiter: Vec<u8>,
    /// True if lines end with a carriage return and a line feed, false if only with the latter.
    has_returns: Option<bool>,
}

impl<R: Read + Seek> PartReader<R> {
    /// Reads a delimiter and the head after it, and skips the octets of the part.
    fn next(&mut self, is_first: bool) -> io::Result<Next> {
        let (mut line, mut left) = (Vec::new(), HEAD_LEN_MAX);
        // Only the first delimiter may follow several line ends, or none.
        let mut line_end_count = 0;
        loop {
            let is_line = self.line(&mut line, &mut left)?;
            if let Some(rest) =
                line.strip_prefix(&*self.delimiter).filter(|_| is_first || line_end_count == 1)
            {
                match rest {
                    [b'-', b'-', rest @ ..] if rest.trim_ascii().is_empty() => return Ok(Next::End),
                    _ if !is_line => return Ok(self.no_line()),
                    rest if rest.trim_ascii().is_empty() => break,
                    _ => return Ok(Next::Invalid),
                }
            }
            if !is_line {
                let is_delimiter = self.delimiter.starts_with(&line) && (is_first || line_end_count == 1);
                let is_cut = is_delimiter || line.is_empty() || line == b"\r";
                return Ok(if is_cut { self.no_line() } else { Next::Invalid });
            }
            line_end_count += 1;
            if !line.is_empty() || line_end_count > 1 && !is_first {
                return Ok(Next::Invalid);
            }
        }
        let (mut range, mut content_type) = (ContentRange::default(), None);
        loop {
            if !self.line(&mut line, &mut left)? {
                return Ok(self.no_line());
            }
            if line.is_empty() {
                break;
            }
            let colon = line.iter().position(|octet| *octet == b':').unwrap_or(line.len());
            let (name, value) = line.split_at_checked(colon).unwrap_or_default();
            let value = value.strip_prefix(b":").unwrap_or_default().trim_ascii();
            if name.eq_ignore_ascii_case(b"content-range") {
                range = ContentRange::parse(value);
            } else if name.eq_ignore_ascii_case(b"content-type") {
                let value = value.get(..TYPE_LEN_MAX).unwrap_or(value);
                content_type = Some(String::from_utf8_lossy(value).into());
            }
        }
        let ContentRange { start: Some(start), len: Some(range_len), complete_len, .. } = range else {
            return Ok(Next::Invalid);
        };
        let (position, len) = (self.position, range_len.min(self.len.saturating_sub(self.position)));
        self.body.seek_relative(len.try_into().map_err(io::Error::other)?)?;
        self.position += len;
        let range = Range { start, len: range_len, complete_len };
        Ok(Next::Part(Part { range, content_type, position, len }))
    }

    /// Reads a line without its end, of `left` octets at most. Returns false if it has no end, or
    /// another one than those before.
    fn line(&mut self, line: &mut Vec<u8>, left: &mut u64) -> io::Result<bool> {
        line.clear();
        let len = self.body.by_ref().take(*left).read_until(b'\n', line)? as u64;
        (self.position, *left) = (self.position + len, *left - len);
        if line.pop_if(|octet| *octet == b'\n').is_none() {
            return Ok(false);
        }
        let has_return = line.pop_if(|octet| *octet == b'\r').is_some();
        Ok(*self.has_returns.get_or_insert(has_return) == has_return)
    }

    /// Returns the reason for a line without an end.
    fn no_line(&self) -> Next {
        if self.position >= self.len { Next::Cut } else { Next::Invalid }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn types_have_boundaries() {
        let longest = "x".repeat(BOUNDARY_LEN_MAX);
        for (field, expected) in [
            ("multipart/byteranges; boundary=THIS_STRING_SEPARATES", Some("THIS_STRING_SEPARATES")),
            ("Multipart/ByteRanges ; charset=a ; BOUNDARY = \"a b;c\\\"d\" ; x=y", Some("a b;c\"d")),
            ("multipart/byteranges; x=\"; boundary=no\"; boundary=yes ", Some("yes")),
            (&*format!("multipart/byteranges;boundary={longest}"), Some(&*longest)),
            (&*format!("multipart/byteranges;boundary={longest}x"), None),
            ("multipart/byteranges; boundary=", None),
            ("multipart/byteranges; boundary", None),
            ("multipart/byteranges", None),
            ("multipart/form-data; boundary=a", None),
        ] {
            assert_eq!(boundary(field).as_deref(), expected, "{field}");
        }
    }

    /// The example of RFC 9110 section 14.6, with the octets that it omits.
    #[test]
    fn the_parts_are_those_of_the_example() {
        let octets = [vec![b'%'; 1000], vec![b'-'; 1000]];
        let heads = ["500-999/8000", "7000-7999/8000"].map(|range| {
            format!("--THIS_STRING_SEPARATES\r\nContent-Type: application/pdf\r\nContent-Range: bytes {range}\r\n\r\n")
        });
        let body =
            [heads[0].as_bytes(), &octets[0][..500], b"\r\n", heads[1].as_bytes(), &octets[1]].concat();
        let end = b"\r\n--THIS_STRING_SEPARATES--\r\n";
        let whole = [&body[..], end].concat();
        let read = |body: &[u8], is_cut| parts(Cursor::new(body), "THIS_STRING_SEPARATES", is_cut).unwrap();
        let part = |start, len, position: usize| Part {
            range: Range { start, len, complete_len: Some(8000) },
            content_type: Some("application/pdf".into()),
            position: position as u64,
            len,
        };
        let expected = [part(500, 500, heads[0].len()), part(7000, 1000, body.len() - 1000)];
        assert_eq!(read(&whole, false).as_deref(), Some(&expected[..]));
        // What precedes the first delimiter, and follows the last, is ignored.
        let padded = [b"\r\n\r\n", &whole[..], b"--THIS_STRING_SEPARATES\r\n"].concat();
        assert_eq!(read(&padded, false).map(|parts| parts.len()), Some(2));
        for len in 0..whole.len() {
            let cut = &whole[..len];
            let is_over = len >= whole.len() - 2;
            assert_eq!(read(cut, false).is_some(), is_over, "{len}");
            let lens: Vec<_> = read(cut, true).unwrap_or_default().iter().map(|part| part.len).collect();
            let first = len.saturating_sub(heads[0].len()).min(500);
            let second = len.saturating_sub(heads[0].len() + 502 + heads[1].len()).min(1000);
            let seen: Vec<_> =
                [first, second].into_iter().filter(|len| *len > 0).map(|len| len as u64).collect();
            assert_eq!(lens, seen, "{len}");
        }
    }

    #[test]
    fn what_is_not_well_formed_has_no_parts() {
        let read = |body: &str| parts(Cursor::new(body), "b", true).unwrap();
        let part = "--b\r\nContent-Range: bytes 0-2/9\r\n\r\nabc\r\n";
        assert_eq!(read(&format!("{part}--b--")).map(|parts| parts.len()), Some(1));
        // Lines may end with a line feed only.
        assert_eq!(read("--b\nContent-Range: bytes 0-2/9\n\nabc\n--b--").map(|parts| parts.len()), Some(1));
        for body in [
            "preamble\r\n--b\r\n",
            "--b\r\n\r\nabc\r\n--b--",
            "--b\r\nContent-Range: bytes 2-0/9\r\n\r\nabc\r\n--b--",
            "--b\r\nContent-Range: bytes 0-1/9\r\n\r\nabc\r\n--b--",
            "--b\r\nContent-Range: bytes 0-2/9\r\n\r\nabc--b--",
            "--b\r\nContent-Range: bytes 0-2/9\r\n\r\nabc\n--b--",
            "--b\r\nContent-Range: bytes 0-2/9\r\n\r\nabc\r\n\r\n--b--",
            "--bb\r\nContent-Range: bytes 0-2/9\r\n\r\nabc\r\n--bb--",
            "--b--",
            "",
        ] {
            assert_eq!(read(body), None, "{body}");
        }
        for (head_len, is_read) in [(8000, true), (9000, false)] {
            let body = format!("--b\r\nX: {}\r\nContent-Range: bytes 0-0/9\r\n\r\na", "x".repeat(head_len));
            assert_eq!(read(&body).is_some(), is_read, "{head_len}");
        }
        assert_eq!(read(&part.repeat(PARTS_MAX)).map(|parts| parts.len()), Some(PARTS_MAX));
        assert_eq!(read(&part.repeat(PARTS_MAX + 1)), None);
        let huge = "--b\r\nContent-Range: bytes 0-9000000000000000000/*\r\n\r\nabc";
        assert_eq!(read(huge).map(|parts| parts[0].len), Some(3));
    }
}
