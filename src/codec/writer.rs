//! Writer of encoded values.

use std::marker::PhantomData;

use super::buffer::{Buffer, Fixed, Growing};
use super::error::{WriteError, WriteProblem};
use super::number::{ArraySink, Number};
use super::prefix::Prefix;

/// Maximum length of a number of variable length in octets.
pub(super) const VARINT_LEN_MAX: usize = 10;

/// Writer of values in order to a buffer of the caller, or to a vector.
///
/// A write to a buffer of the caller never allocates. A write that fails, for example because the buffer is full,
/// changes nothing. Constant time per number; linear in the length of octets and texts.
#[derive(Debug)]
pub struct Writer<B> {
    buffer: B,
}

/// The position of a number that was reserved by [`Writer::reserve`].
#[derive(Debug)]
#[must_use = "the value of a reserved number is written by `Writer::fill`"]
pub struct Reserved<N> {
    at: usize,
    number: PhantomData<N>,
}

impl<'b> Writer<Fixed<'b>> {
    /// Creates a writer that begins at the first octet of `buffer`.
    #[must_use]
    #[inline]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer: Fixed::new(buffer) }
    }
}

impl<'b> Writer<Growing<'b>> {
    /// Creates a writer that appends to `buffer`, which grows.
    #[must_use]
    #[inline]
    pub const fn growing(buffer: &'b mut Vec<u8>) -> Self {
        Self { buffer: Growing::new(buffer) }
    }
}

impl<B: Buffer> Writer<B> {
    /// Returns the number of octets written so far.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.written().len()
    }

    /// Returns whether nothing was written yet.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buffer.written().is_empty()
    }

    /// Returns the octets written so far.
    #[must_use]
    #[inline]
    pub fn written(&self) -> &[u8] {
        self.buffer.written()
    }

    /// Writes a number in network order (big-endian).
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the number does not fit the buffer.
    #[inline(always)]
    pub fn be(&mut self, number: impl Number) -> Result<(), WriteError> {
        number.write_be(self)
    }

    /// Writes a number in little-endian order.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the number does not fit the buffer.
    #[inline(always)]
    pub fn le(&mut self, number: impl Number) -> Result<(), WriteError> {
        number.write_le(self)
    }

    /// Writes a boolean as an octet of the value 0 or 1.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the buffer is full.
    #[inline(always)]
    pub fn bool(&mut self, value: bool) -> Result<(), WriteError> {
        self.be(u8::from(value))
    }

    /// Writes a number with seven bits per octet, the lowest ones first, and the high bit set in all octets but the last
    /// (LEB128, as in DWARF 5 section 7.6 and in Protocol Buffers): one octet for a number below 128, at most ten.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the number does not fit the buffer.
    #[inline]
    pub fn varint(&mut self, number: u64) -> Result<(), WriteError> {
        let (mut octets, mut len, mut rest) = ([0; VARINT_LEN_MAX], 0, number);
        for octet in &mut octets {
            *octet = rest as u8 & 0x7f;
            len += 1;
            rest >>= 7;
            if rest == 0 {
                break;
            }
            *octet |= 0x80;
        }
        self.bytes(octets.get(..len).unwrap_or_default())
    }

    /// Writes the octets of an array, such as an address.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the octets do not fit the buffer.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self, octets: [u8; N]) -> Result<(), WriteError> {
        if self.buffer.append_array(octets) { Ok(()) } else { Err(self.full(N)) }
    }

    /// Writes octets, or the octets of a text, without their length.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the octets do not fit the buffer.
    #[inline]
    pub fn bytes(&mut self, octets: impl AsRef<[u8]>) -> Result<(), WriteError> {
        let octets = octets.as_ref();
        if self.buffer.append(octets) { Ok(()) } else { Err(self.full(octets.len())) }
    }

    /// Writes a text or octets in a field of `len` octets, filled with NULs.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::TooLong`] if the text has more than `len` octets, and [`WriteProblem::Full`] if the field
    /// does not fit the buffer.
    #[inline]
    pub fn padded(&mut self, len: usize, octets: impl AsRef<[u8]>) -> Result<(), WriteError> {
        let octets = octets.as_ref();
        if octets.len() > len {
            return Err(self.too_long(octets.len(), len));
        }
        let Some(field) = self.buffer.append_zeros(len) else { return Err(self.full(len)) };
        if let Some(start) = field.get_mut(..octets.len()) {
            start.copy_from_slice(octets);
        }
        Ok(())
    }

    /// Writes the length of octets or of a text, and the octets.
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::TooLong`] if the prefix cannot express the length, and [`WriteProblem::Full`] if prefix
    /// and octets do not fit the buffer.
    #[inline]
    pub fn prefixed(&mut self, prefix: Prefix, octets: impl AsRef<[u8]>) -> Result<(), WriteError> {
        let octets = octets.as_ref();
        let len = octets.len();
        if len > prefix.len_max() {
            return Err(self.too_long(len, prefix.len_max()));
        }
        let prefix_len = prefix.prefix_len(len);
        if self.buffer.available() < prefix_len + len {
            return Err(self.full(prefix_len + len));
        }
        if let Some(field) = self.buffer.append_zeros(prefix_len) {
            prefix.put(field, len);
        }
        self.bytes(octets)
    }

    /// Writes the length of a section, and the section that `write` writes. Sections may be nested.
    ///
    /// # Errors
    ///
    /// Returns the error of `write`, [`WriteProblem::TooLong`] if the prefix cannot express the length, and
    /// [`WriteProblem::Full`] if the prefix does not fit the buffer. Nothing of the section remains written.
    pub fn section<R>(
        &mut self,
        prefix: Prefix,
        write: impl FnOnce(&mut Self) -> Result<R, WriteError>,
    ) -> Result<R, WriteError> {
        let start = self.len();
        let prefix_len = prefix.section_prefix_len();
        if self.buffer.append_zeros(prefix_len).is_none() {
            return Err(self.full(prefix_len));
        }
        let result = write(self).and_then(|value| {
            let len = self.len().saturating_sub(start + prefix_len);
            if len > prefix.len_max() {
                return Err(self.too_long(len, prefix.len_max()));
            }
            if let Some(field) = self.buffer.written_mut().get_mut(start..start + prefix_len) {
                prefix.put(field, len);
            }
            Ok(value)
        });
        if result.is_err() {
            self.buffer.truncate(start);
        }
        result
    }

    /// Reserves a number that is not known yet, such as a length or a count. Its value is 0 until
    /// [`fill`](Self::fill).
    ///
    /// # Errors
    ///
    /// Returns [`WriteProblem::Full`] if the number does not fit the buffer.
    #[inline]
    pub fn reserve<N: Number>(&mut self) -> Result<Reserved<N>, WriteError> {
        let at = self.len();
        self.be(N::zero())?;
        Ok(Reserved { at, number: PhantomData })
    }

    /// Writes a reserved number in network order. A number that was removed with its section must not be filled in: the
    /// call has no effect, or overwrites what was written in its place.
    #[inline]
    pub fn fill<N: Number>(&mut self, reserved: Reserved<N>, number: N) {
        let end = reserved.at + N::LEN;
        if let Some(field) = self.buffer.written_mut().get_mut(reserved.at..end) {
            number.put_be(field);
        }
    }

    #[cold]
    fn full(&self, required: usize) -> WriteError {
        let available = self.buffer.available();
        WriteError { offset: self.len(), required, available, problem: WriteProblem::Full }
    }

    #[cold]
    fn too_long(&self, required: usize, available: usize) -> WriteError {
        WriteError { offset: self.len(), required, available, problem: WriteProblem::TooLong }
    }
}

impl<B: Buffer> ArraySink for Writer<B> {
    #[inline(always)]
    fn array<const N: usize>(&mut self, octets: [u8; N]) -> Result<(), WriteError> {
        Writer::array(self, octets)
    }
}
