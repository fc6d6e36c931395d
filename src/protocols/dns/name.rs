//! Domain names in a DNS message: labels, and pointers to earlier names.

use std::fmt::{self, Write as _};

use super::header::{HEADER_LEN, ParseError};

/// Maximum length of a domain name in octets, including length octets and the empty root label (RFC 1035 section 3.1).
pub const NAME_LEN_MAX: usize = 255;

/// Maximum number of compression pointers in one domain name: the maximum number of labels.
pub const JUMP_COUNT_MAX: usize = 127;

/// Maximum length of a label in octets, without its length octet.
const LABEL_LEN_MAX: u8 = 63;

/// Minimum value of the first octet of a compression pointer.
const POINTER_MIN: u8 = 0xC0;

/// A validated domain name in a message: reading it ends after at most [`NAME_LEN_MAX`] octets and [`JUMP_COUNT_MAX`]
/// pointers.
///
/// Displayed in presentation format: labels joined by dots, without a trailing dot except for the root, which is `.`;
/// dots and backslashes inside labels are escaped by a backslash, and octets that are not graphic ASCII as `\DDD` (RFC
/// 4343 section 2.1). Letters keep their case. Names that differ only in the case of ASCII letters are equal.
#[derive(Clone, Copy)]
pub struct Name<'m> {
    message: &'m [u8],
    /// Offset in the message of the first label, after any leading pointers.
    at: usize,
    len: u8,
}

impl<'m> Name<'m> {
    /// Parses the domain name at an offset of a message. Returns the name, and the offset of the first octet after it.
    ///
    /// A pointer must point before the labels that precede it in the name, and after the header. Each pointer thus
    /// points further back, so loops are impossible.
    pub(super) fn read(message: &'m [u8], at: usize) -> Result<(Self, usize), ParseError> {
        // Start of the current labels, and the offset after the name, which the first pointer determines.
        let (mut run_start, mut next) = (at, None);
        let (mut place, mut jump_count) = (at, 0);
        let mut first_label_at = None;
        let mut len = 0;
        loop {
            let octet = *message.get(place).ok_or(ParseError::Short)?;
            if octet < POINTER_MIN {
                if octet > LABEL_LEN_MAX {
                    return Err(ParseError::BadLabel);
                }
                first_label_at.get_or_insert(place);
                len += 1 + usize::from(octet);
                if len > NAME_LEN_MAX {
                    return Err(ParseError::LongName);
                }
                place += 1 + usize::from(octet);
                if octet == 0 {
                    let at = first_label_at.unwrap_or(at);
                    return Ok((Self { message, at, len: len as u8 }, next.unwrap_or(place)));
                }
                continue;
            }
            let low = *message.get(place + 1).ok_or(ParseError::Short)?;
            next.get_or_insert(place + 2);
            place = usize::from(u16::from_be_bytes([octet & 0x3F, low]));
            if place >= run_start || place < HEADER_LEN {
                return Err(ParseError::BadPointer);
            }
            run_start = place;
            jump_count += 1;
            if jump_count > JUMP_COUNT_MAX {
                return Err(ParseError::TooManyPointers);
            }
        }
    }

    /// Iterates over the labels of the name, without the empty root label.
    #[must_use]
    pub const fn labels(&self) -> Labels<'m> {
        Labels { message: self.message, at: self.at }
    }

    /// Returns the uncompressed length of the name in octets, 1 to [`NAME_LEN_MAX`].
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether the name is the root: a name without labels.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.len == 1
    }
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(one, another): (&[u8], &[u8])| one.eq_ignore_ascii_case(another);
        self.len == other.len
            && self.labels().count() == other.labels().count()
            && self.labels().zip(other.labels()).all(is_same)
    }
}

impl Eq for Name<'_> {}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_char('.');
        }
        let mut text = Ascii::new(f);
        for (place, label) in self.labels().enumerate() {
            if place > 0 {
                text.push(b'.')?;
            }
            text.push_escaped(label, b'.', b'!')?;
        }
        text.flush()
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Iterator over the labels of a domain [`Name`], leftmost first.
#[derive(Clone, Debug)]
pub struct Labels<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Iterator for Labels<'m> {
    type Item = &'m [u8];

    #[inline]
    fn next(&mut self) -> Option<&'m [u8]> {
        loop {
            let (len, rest) = self.message.get(self.at..)?.split_first()?;
            match len >> 6 {
                0 if *len == 0 => return None,
                0 => {
                    self.at += 1 + usize::from(*len);
                    return rest.get(..usize::from(*len));
                }
                _ => self.at = usize::from(u16::from_be_bytes([len & 0x3F, *rest.first()?])),
            }
        }
    }
}

/// Writes octets as ASCII: escapes `special` and backslashes, and writes octets below `first_plain` and beyond `~` as
/// `\DDD`.
pub(super) fn write_escaped(
    f: &mut fmt::Formatter<'_>,
    octets: &[u8],
    special: u8,
    first_plain: u8,
) -> fmt::Result {
    let mut text = Ascii::new(f);
    text.push_escaped(octets, special, first_plain)?;
    text.flush()
}

/// Buffer for text of many short parts, because each write to the formatter takes longer than copying a label.
struct Ascii<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    octets: [u8; 128],
    len: usize,
}

impl<'a, 'f> Ascii<'a, 'f> {
    const fn new(f: &'a mut fmt::Formatter<'f>) -> Self {
        Self { f, octets: [0; 128], len: 0 }
    }

    fn push(&mut self, octet: u8) -> fmt::Result {
        if self.len == self.octets.len() {
            self.flush()?;
        }
        if let Some(place) = self.octets.get_mut(self.len) {
            *place = octet;
            self.len += 1;
        }
        Ok(())
    }

    fn push_escaped(&mut self, octets: &[u8], special: u8, first_plain: u8) -> fmt::Result {
        for octet in octets {
            if *octet == special || *octet == b'\\' {
                self.push(b'\\')?;
            } else if !(first_plain..=b'~').contains(octet) {
                self.push(b'\\')?;
                self.push(b'0' + octet / 100)?;
                self.push(b'0' + octet / 10 % 10)?;
                self.push(b'0' + octet % 10)?;
                continue;
            }
            self.push(*octet)?;
        }
        Ok(())
    }

    /// Writes the buffered text to the formatter.
    fn flush(&mut self) -> fmt::Result {
        let text = self.octets.get(..self.len).unwrap_or_default();
        self.len = 0;
        self.f.write_str(std::str::from_utf8(text).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a DNS message that consists of a header of zeros and `octets`.
    fn message(octets: &[u8]) -> Vec<u8> {
        [&[0; HEADER_LEN], octets].concat()
    }

    fn read(octets: &[u8], at: usize) -> Result<(String, usize), ParseError> {
        let message = message(octets);
        Name::read(&message, HEADER_LEN + at).map(|(name, next)| (name.to_string(), next - HEADER_LEN))
    }

    /// Four names as in the example of RFC 1035 section 4.1.4, directly after the header: F.ISI.ARPA at offset 12, FOO
    /// with a pointer to that name, a pointer to offset 14 (ISI.ARPA; the RFC points to ARPA), and the root.
    const EXAMPLE: &[u8] = b"\x01F\x03ISI\x04ARPA\x00\x03FOO\xC0\x0C\xC0\x0E\x00";

    #[test]
    fn pointers_are_followed_as_in_the_example() {
        assert_eq!(read(EXAMPLE, 0), Ok(("F.ISI.ARPA".to_owned(), 12)));
        assert_eq!(read(EXAMPLE, 12), Ok(("FOO.F.ISI.ARPA".to_owned(), 18)));
        assert_eq!(read(EXAMPLE, 18), Ok(("ISI.ARPA".to_owned(), 20)));
        assert_eq!(read(EXAMPLE, 20), Ok((".".to_owned(), 21)));
    }

    #[test]
    fn names_are_equal_regardless_of_case_and_pointers() {
        let one = message(EXAMPLE);
        let other = message(b"\x03isi\x04arpa\x00");
        let name = |message, at| Name::read(message, HEADER_LEN + at).unwrap().0;
        assert_eq!(name(&one, 18), name(&other, 0));
        assert_ne!(name(&one, 0), name(&other, 0));
        assert_ne!(name(&one, 20), name(&other, 0));
    }

    #[test]
    fn octets_that_are_not_plain_text_are_escaped() {
        let shown = read(b"\x05a.b\\c\x04 \x00\xC3\xBC\x01\"\x00", 0).unwrap().0;
        assert_eq!(shown, "a\\.b\\\\c.\\032\\000\\195\\188.\"");
    }

    #[test]
    fn endless_names_are_rejected() {
        assert_eq!(read(b"\xC0\x0C", 0), Err(ParseError::BadPointer), "to itself");
        assert_eq!(read(b"\x01a\xC0\x0C", 0), Err(ParseError::BadPointer), "to its own labels");
        assert_eq!(read(b"\xC0\x0E\xC0\x0C", 2), Err(ParseError::BadPointer), "two pointers to each other");
        assert_eq!(read(b"\x01a\xC0\x20", 0), Err(ParseError::BadPointer), "ahead");
        assert_eq!(read(b"\x01a\xC0\x02", 0), Err(ParseError::BadPointer), "into the header");
        assert_eq!(read(b"\x40a\x00", 0), Err(ParseError::BadLabel));
        assert_eq!(read(b"\x80a\x00", 0), Err(ParseError::BadLabel));
        assert_eq!(read(b"\x03ab", 0), Err(ParseError::Short));
        assert_eq!(read(b"\xC0", 0), Err(ParseError::Short));
        assert_eq!(read(b"", 0), Err(ParseError::Short));
    }

    #[test]
    fn names_up_to_the_maximum_length_are_read() {
        let long = |last: usize| {
            let mut octets = [&[63][..], &[b'x'; 63]].concat().repeat(3);
            octets.push(last as u8);
            octets.extend(vec![b'y'; last]);
            octets.push(0);
            octets
        };
        assert_eq!(read(&long(61), 0).unwrap().0.len(), 253);
        assert_eq!(read(&long(62), 0), Err(ParseError::LongName));
    }

    #[test]
    fn chains_of_pointers_are_limited() {
        let chain = |count: usize| {
            let mut octets = vec![0];
            for place in 0..count {
                let target = HEADER_LEN + if place == 0 { 0 } else { 2 * place - 1 };
                octets.extend((0xC000 | target as u16).to_be_bytes());
            }
            read(&octets, 2 * count - 1)
        };
        assert_eq!(chain(JUMP_COUNT_MAX), Ok((".".to_owned(), 2 * JUMP_COUNT_MAX + 1)));
        assert_eq!(chain(JUMP_COUNT_MAX + 1), Err(ParseError::TooManyPointers));
    }
}
