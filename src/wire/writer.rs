//! Writer of fields of protocol headers.

/// Writer of fields at their offsets in a protocol header. Octets that no call writes keep their value.
///
/// All fields must lie within the header. Constant time per field, no allocation.
#[derive(Debug)]
pub(super) struct Writer<'a>(&'a mut [u8]);

impl<'a> Writer<'a> {
    /// Creates a writer for the protocol header at the start of `header`.
    #[inline(always)]
    pub(super) const fn new(header: &'a mut [u8]) -> Self {
        Self(header)
    }

    /// Writes octets, such as an address, at offset `at` in the header.
    #[inline(always)]
    pub(super) fn octets<const N: usize>(self, at: usize, value: [u8; N]) -> Self {
        let target = self.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        debug_assert!(target.is_some(), "a field lies within its header");
        if let Some(target) = target {
            *target = value;
        }
        self
    }

    /// Writes an octet at offset `at` in the header.
    #[inline(always)]
    pub(super) fn u8(self, at: usize, value: u8) -> Self {
        self.octets(at, [value])
    }

    /// Writes a 16-bit value in network order at offset `at` in the header.
    #[inline(always)]
    pub(super) fn u16(self, at: usize, value: u16) -> Self {
        self.octets(at, value.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_at_their_offsets() {
        let mut header = [9; 8];
        Writer::new(&mut header).u8(0, 1).u16(2, 0x0203).octets(5, [4, 5, 6]);
        assert_eq!(header, [1, 9, 2, 3, 9, 4, 5, 6]);
    }
}
