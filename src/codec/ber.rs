//! A cursor over values in BER (X.690): tag, length, content, in sequence or nested. Its length is bounded by its input, and its
//! depth by the code that opens nested values.

use std::fmt;

/// Tags of common values.
pub(crate) mod tag {
    pub(crate) const BOOLEAN: u8 = 0x01;
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(crate) const T61_STRING: u8 = 0x14;
    pub(crate) const UTC_TIME: u8 = 0x17;
    pub(crate) const GENERALIZED_TIME: u8 = 0x18;
    pub(crate) const UNIVERSAL_STRING: u8 = 0x1c;
    pub(crate) const BMP_STRING: u8 = 0x1e;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;
    pub(crate) const CONTEXT_0: u8 = 0xa0;
    pub(crate) const CONTEXT_3: u8 = 0xa3;
}

/// Returns the tag, the length in octets of the tag and length fields, and the length of the content of the value at the start
/// of octets; `None` if the header is incomplete, or the length is indefinite or longer than four octets.
pub(crate) fn header(octets: &[u8]) -> Option<(u8, usize, usize)> {
    let ([tag, short], rest) = octets.split_first_chunk::<2>()?;
    match short {
        0..=0x7f => Some((*tag, 2, usize::from(*short))),
        0x81..=0x84 => {
            let count = usize::from(short & 7);
            let len = rest.get(..count)?.iter().fold(0, |len, octet| len << 8 | usize::from(*octet));
            Some((*tag, 2 + count, len))
        }
        _ => None,
    }
}

/// A value: its tag and its content without tag and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
}

/// Iterator over consecutive values. Ends at an invalid one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Values<'a>(pub(crate) &'a [u8]);

impl<'a> Values<'a> {
    /// Consumes the next value if its tag is `tag`, and returns its content.
    pub(crate) fn next_of(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let value = ahead.next().filter(|value| value.tag == tag)?;
        *self = ahead;
        Some(value.content)
    }

    /// Consumes the next value if its tag is `tag`, and returns a cursor over its content, as far as that was captured.
    pub(crate) fn open(&mut self, tag: u8) -> Option<Self> {
        let value = self.captured().filter(|value| value.tag == tag)?;
        Some(Self(value.content))
    }

    /// Consumes the next value, of which the content may be truncated.
    pub(crate) fn captured(&mut self) -> Option<Value<'a>> {
        let (tag, header_len, len) = header(self.0)?;
        let rest = self.0.get(header_len..)?;
        let (content, rest) = rest.split_at(len.min(rest.len()));
        self.0 = rest;
        Some(Value { tag, content })
    }

    /// Returns the next values, of which the last one may be truncated.
    pub(crate) fn captured_values(mut self) -> impl Iterator<Item = Value<'a>> {
        std::iter::from_fn(move || self.captured())
    }

    /// Consumes an integer, or another value with the same encoding, of at most eight octets.
    pub(crate) fn integer(&mut self, tag: u8) -> Option<i64> {
        signed(self.next_of(tag)?)
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    /// Returns the next value. Longer encodings of short lengths are accepted too, the indefinite form is not.
    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        let (tag, header_len, len) = header(self.0)?;
        let (content, rest) = self.0.get(header_len..)?.split_at_checked(len)?;
        self.0 = rest;
        Some(Value { tag, content })
    }
}

/// Returns the value of the content of an INTEGER; `None` if it is empty, or too large.
pub(crate) fn signed(content: &[u8]) -> Option<i64> {
    let first = content.first().filter(|_| content.len() <= 8)?;
    let sign = if *first < 0x80 { 0 } else { -1 };
    Some(content.iter().fold(sign, |number, octet| number << 8 | i64::from(*octet)))
}

/// Returns the value of the content of an INTEGER; `None` if it is negative or too large.
pub(crate) fn unsigned(content: &[u8]) -> Option<u32> {
    let (first, _) = content.split_first()?;
    let is_small = *first < 0x80 && content.iter().skip_while(|octet| **octet == 0).count() <= 4;
    is_small.then(|| content.iter().fold(0, |number, octet| number << 8 | u32::from(*octet)))
}

/// The content of an OBJECT IDENTIFIER, displayed in dotted decimals; a number beyond 128 bits, which no identifier has, as `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oid<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Oid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ended = self.0.last().is_none_or(|octet| octet & 0x80 == 0);
        if self.0.len() > SMALL_LEN_MAX || !is_ended {
            return self.any(f);
        }
        let (mut number, mut is_first) = (0, true);
        for octet in self.0 {
            number = number << 7 | u64::from(octet & 0x7f);
            if octet & 0x80 == 0 {
                small_number(std::mem::take(&mut number), std::mem::take(&mut is_first), f)?;
            }
        }
        Ok(())
    }
}

/// Number of octets of a number in an OBJECT IDENTIFIER that has at most 63 bits.
const SMALL_LEN_MAX: usize = 9;

impl Oid<'_> {
    /// Displays an identifier whose numbers may be large, or have no end.
    #[inline(never)]
    fn any(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, octets) in self.0.split_inclusive(|octet| octet & 0x80 == 0).enumerate() {
            let is_ended = octets.last().is_some_and(|octet| octet & 0x80 == 0);
            let add = |number, octet: &u8| number << 7 | u64::from(octet & 0x7f);
            if is_ended && octets.len() <= SMALL_LEN_MAX {
                small_number(octets.iter().fold(0, add), index == 0, f)?;
                continue;
            }
            let add = |number: u128, octet: &u8| {
                let is_small = number >> (u128::BITS - 7) == 0;
                is_small.then_some(number << 7 | u128::from(octet & 0x7f))
            };
            let separator = if index == 0 { "" } else { "." };
            match octets.iter().try_fold(0, add).filter(|_| is_ended) {
                Some(number) if index == 0 => {
                    let top = (number / 40).min(2);
                    write!(f, "{top}.{}", number - top * 40)?;
                }
                Some(number) => write!(f, "{separator}{number}")?,
                None => write!(f, "{separator}?")?,
            }
        }
        Ok(())
    }
}

/// Displays a number of an OBJECT IDENTIFIER. The first two are encoded as one.
#[inline(always)]
fn small_number(number: u64, is_first: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_first {
        let top = (number / 40).min(2);
        write!(f, "{top}.{}", number - top * 40)
    } else {
        write!(f, ".{number}")
    }
}

/// Encodes a value with these parts as its content, shorter than 64 KiB.
#[cfg(test)]
pub(crate) fn encoded(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = content.len() as u16;
    let head = if len < 128 { vec![tag, len as u8] } else { [&[tag, 0x82][..], &len.to_be_bytes()].concat() };
    [head, content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first one is the example of X.690 section 8.19.5, the second one that of X.667 section 8.
    #[test]
    fn identifiers_are_displayed_in_decimals() {
        for (octets, text) in [
            (&[0x88, 0x37, 3][..], "2.999.3"),
            (
                &[
                    0x69, 0x83, 0xf0, 0x9d, 0xa7, 0xeb, 0xcf, 0xde, 0xe0, 0xc7, 0xa1, 0xa7, 0xb2, 0xc0, 0x94,
                    0x8c, 0xc8, 0xf9, 0xd7, 0x76,
                ],
                "2.25.329800735698586629295641978511506172918",
            ),
            (&[0x2b, 6, 1, 0x84, 0x80, 0x80, 0x80, 0x80, 0], "1.3.6.1.137438953472"),
            (&[0x2b, 0x80, 0x80, 0x80, 5], "1.3.5"),
            (&[0x2b, 0x81], "1.3.?"),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01], "0.1"),
            (&[0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x50], "2.18446744073709551616"),
            (&[0xff; 40], "?"),
            (&[], ""),
        ] {
            assert_eq!(Oid(octets).to_string(), text);
        }
        let beyond = [&[0x2b, 0x84][..], &[0x80; 17], &[0]].concat();
        assert_eq!(Oid(&beyond).to_string(), "1.3.?");
    }

    #[test]
    fn consecutive_values_are_read() {
        let mut values = Values(&[2, 1, 5, 0x30, 0x81, 2, 5, 0, 4, 0x82, 0, 1, 9, 4, 0x84, 0, 0, 0, 1, 8]);
        assert_eq!(values.next_of(tag::SEQUENCE), None);
        assert_eq!(values.next_of(tag::INTEGER), Some(&[5][..]));
        assert_eq!(values.next(), Some(Value { tag: tag::SEQUENCE, content: &[5, 0] }));
        assert_eq!(values.next_of(tag::OCTET_STRING), Some(&[9][..]));
        assert_eq!(values.next_of(tag::OCTET_STRING), Some(&[8][..]));
        assert_eq!(values.next(), None);
    }

    #[test]
    fn a_length_beyond_the_input_is_rejected() {
        for bytes in [
            &[][..],
            &[2],
            &[2, 2, 1],
            &[2, 0x80, 0, 0],
            &[2, 0x82, 1],
            &[2, 0x85, 0, 0, 0, 0, 0],
            &[2, 0x84, 255, 255, 255, 255, 1],
        ] {
            assert_eq!(Values(bytes).next(), None, "{bytes:?}");
        }
        assert_eq!(Values(&[4, 3, 1, 2]).captured(), Some(Value { tag: 4, content: &[1, 2] }));
    }

    #[test]
    fn integers_have_a_sign() {
        let numbers: [&[u8]; 6] = [&[0], &[0x7f], &[0xff], &[0x80, 0], &[0, 0x80], &[0x7f, 0xff, 0xff, 0xff]];
        assert_eq!(numbers.map(|content| signed(content).unwrap()), [0, 127, -1, -32768, 128, 0x7fff_ffff]);
        assert_eq!((signed(&[]), signed(&[1; 9]), unsigned(&[0xff])), (None, None, None));
    }
}
