//! Reader of encoded values.

use super::error::{ReadError, ReadProblem};
use super::number::{ArraySource, Number};
use super::prefix::Prefix;
use super::writer::VARINT_LEN_MAX;

/// Reader of values in order from a slice, which may contain anything.
///
/// Octets and texts are borrowed from the slice. Each read is checked; a read that fails consumes nothing. Constant
/// time per value, except that texts are checked for UTF-8; no allocation.
///
/// ```
/// use flowgauge::codec::Reader;
///
/// let mut reader = Reader::new(&[0x12, 0x34, 5, 6]);
/// assert_eq!(reader.be::<u16>()?, 0x1234);
/// let error = reader.be::<u32>().unwrap_err();
/// assert_eq!((error.offset, error.required, error.available), (2, 4, 2));
/// // Nothing was consumed.
/// assert_eq!(reader.bytes(2)?, [5, 6]);
/// # Ok::<(), flowgauge::codec::ReadError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// Input of the outermost reader, up to the end of this one.
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first octet of `data`.
    #[must_use]
    #[inline]
    pub const fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// Returns the offset of the next octet in the input of the outermost reader. For a reader that is no section, this
    /// is the number of octets read so far.
    #[must_use]
    #[inline]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Returns the number of unread octets.
    #[must_use]
    #[inline]
    pub const fn remaining_len(&self) -> usize {
        self.data.len() - self.at
    }

    /// Returns whether all octets were read.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.remaining_len() == 0
    }

    /// Returns the unread octets.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// Reads a number in network order (big-endian).
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline(always)]
    pub fn be<N: Number>(&mut self) -> Result<N, ReadError> {
        N::read_be(self)
    }

    /// Reads a number in little-endian order.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline(always)]
    pub fn le<N: Number>(&mut self) -> Result<N, ReadError> {
        N::read_le(self)
    }

    /// Reads a boolean: an octet of the value 0 or 1.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] at the end, and [`ReadProblem::InvalidBool`] for another value.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, ReadError> {
        match self.rest() {
            [value @ (0 | 1), ..] => {
                self.at += 1;
                Ok(*value == 1)
            }
            [_, ..] => Err(self.error(1, ReadProblem::InvalidBool)),
            [] => Err(self.error(1, ReadProblem::Truncated)),
        }
    }

    /// Reads a number of variable length, as [`Writer::varint`](super::Writer::varint) writes it.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if the number does not end, and [`ReadProblem::TooLarge`] if it has more than
    /// 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, ReadError> {
        let (mut value, mut len) = (0, 0);
        for octet in self.rest().iter().take(VARINT_LEN_MAX) {
            let bits = u64::from(octet & 0x7f);
            if len == VARINT_LEN_MAX - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * len);
            len += 1;
            if octet & 0x80 == 0 {
                self.at += len;
                return Ok(value);
            }
        }
        let is_truncated = len == self.remaining_len();
        Err(if is_truncated {
            self.error(len + 1, ReadProblem::Truncated)
        } else {
            self.error(VARINT_LEN_MAX, ReadProblem::TooLarge)
        })
    }

    /// Reads `N` octets as an array.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        match self.rest().first_chunk::<N>() {
            Some(octets) => {
                self.at += N;
                Ok(*octets)
            }
            None => Err(self.error(N, ReadProblem::Truncated)),
        }
    }

    /// Reads `len` octets.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline(always)]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        match self.rest().get(..len) {
            Some(octets) => {
                self.at += len;
                Ok(octets)
            }
            None => Err(self.error(len, ReadProblem::Truncated)),
        }
    }

    /// Skips `len` octets.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline(always)]
    pub fn skip(&mut self, len: usize) -> Result<(), ReadError> {
        self.bytes(len).map(drop)
    }

    /// Reads a text of `len` octets.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets, and [`ReadProblem::InvalidUtf8`] if they are not
    /// UTF-8.
    #[inline]
    pub fn str(&mut self, len: usize) -> Result<&'a str, ReadError> {
        let mut next = *self;
        let text = self.utf8(next.bytes(len)?)?;
        self.at = next.at;
        Ok(text)
    }

    /// Reads a text in a field of `len` octets, without the NULs that fill the field.
    ///
    /// # Errors
    ///
    /// Same as for [`str`](Self::str).
    #[inline]
    pub fn padded_str(&mut self, len: usize) -> Result<&'a str, ReadError> {
        self.str(len).map(|text| text.trim_end_matches('\0'))
    }

    /// Reads a length, and that number of octets.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline(always)]
    pub fn prefixed(&mut self, prefix: Prefix) -> Result<&'a [u8], ReadError> {
        let (len, start) = self.len_of(prefix)?;
        let end = len.saturating_add(start);
        let Some(octets) = self.rest().get(start..end) else {
            return Err(self.error(end, ReadProblem::Truncated));
        };
        self.at += end;
        Ok(octets)
    }

    /// Reads a length, and a text of that number of octets.
    ///
    /// # Errors
    ///
    /// Same as for [`str`](Self::str).
    #[inline]
    pub fn prefixed_str(&mut self, prefix: Prefix) -> Result<&'a str, ReadError> {
        let mut next = *self;
        let text = self.utf8(next.prefixed(prefix)?)?;
        self.at = next.at;
        Ok(text)
    }

    /// Reads a length, and returns a reader of that number of octets. Offsets of this reader and of its errors count
    /// from the beginning of the outermost input.
    ///
    /// # Errors
    ///
    /// Returns [`ReadProblem::Truncated`] if there are fewer octets.
    #[inline]
    pub fn section(&mut self, prefix: Prefix) -> Result<Self, ReadError> {
        let len = self.prefixed(prefix)?.len();
        Ok(Self { data: self.data.get(..self.at).unwrap_or_default(), at: self.at - len })
    }

    /// Returns the length in the prefix that follows, and the length of this prefix.
    #[inline(always)]
    fn len_of(&self, prefix: Prefix) -> Result<(usize, usize), ReadError> {
        let mut reader = *self;
        Ok(match prefix {
            Prefix::U8 => (reader.be::<u8>()?.into(), 1),
            Prefix::U16 => (reader.be::<u16>()?.into(), 2),
            // More octets than a slice can have, where a length has fewer bits.
            Prefix::U32 => (usize::try_from(reader.be::<u32>()?).unwrap_or(usize::MAX), 4),
            Prefix::Ipfix => match self.rest().first() {
                Some(&Prefix::LONG) => {
                    let [_, high, low] = reader.array()?;
                    (u16::from_be_bytes([high, low]).into(), 3)
                }
                _ => (reader.be::<u8>()?.into(), 1),
            },
        })
    }

    #[inline(always)]
    fn utf8<'t>(&self, octets: &'t [u8]) -> Result<&'t str, ReadError> {
        std::str::from_utf8(octets).map_err(|_| self.error(octets.len(), ReadProblem::InvalidUtf8))
    }

    // Inlined, so that a caller that needs no error does not pay for it.
    #[inline(always)]
    const fn error(&self, required: usize, problem: ReadProblem) -> ReadError {
        ReadError { offset: self.offset(), required, available: self.remaining_len(), problem }
    }
}

impl ArraySource for Reader<'_> {
    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        Reader::array(self)
    }
}
