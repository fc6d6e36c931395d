//! A bounds-checked big-endian cursor over untrusted bytes.

/// Reader of big-endian integers from a slice. Every read is checked, and a read that fails consumes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first octet of `data`.
    #[must_use]
    #[inline]
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// Returns the number of octets read so far.
    #[must_use]
    #[inline]
    pub(crate) const fn offset(&self) -> usize {
        self.at
    }

    /// Returns the number of unread octets.
    #[must_use]
    #[inline]
    pub(crate) const fn remaining_len(&self) -> usize {
        self.data.len() - self.at
    }

    /// Returns the unread octets.
    #[must_use]
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    /// Reads the next `len` octets; `None` if there are fewer.
    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let bytes = self.rest().get(..len)?;
        self.at += len;
        Some(bytes)
    }

    /// Reads the next `N` octets as an array; `None` if there are fewer.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.rest().first_chunk::<N>()?;
        self.at += N;
        Some(bytes)
    }

    /// Reads the next octet; `None` if there is none.
    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads the next two octets as a big-endian integer.
    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads the next four octets as a big-endian integer.
    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Skips `len` octets; `None` if there are fewer.
    #[inline]
    pub(crate) fn skip(&mut self, len: usize) -> Option<()> {
        self.bytes(len).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_read_consumes_nothing() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u16(), Some(0x0102));
        assert_eq!(reader.u32(), None);
        assert_eq!(reader.skip(2), None);
        assert_eq!((reader.offset(), reader.u8(), reader.u8()), (2, Some(3), None));
    }
}
