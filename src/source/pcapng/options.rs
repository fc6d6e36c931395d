//! Options at the end of a pcapng block (draft-ietf-opsawg-pcapng section 3.5).

/// Converts four octets in the byte order of a section to an integer.
#[inline]
pub(super) fn word<const BIG_ENDIAN: bool>(octets: [u8; 4]) -> u32 {
    if BIG_ENDIAN { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
}

#[inline]
pub(super) fn half<const BIG_ENDIAN: bool>(octets: [u8; 2]) -> u16 {
    if BIG_ENDIAN { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) }
}

/// Iterator over the options of a pcapng block, each as its code and the octets of its value. Ends at the
/// end-of-options mark, at the end of the block, and at an option whose length exceeds the remaining octets:
/// options are supplementary, so a block with a valid fixed part is not rejected because of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a, const BIG_ENDIAN: bool> {
    rest: &'a [u8],
}

impl<'a, const BIG_ENDIAN: bool> Options<'a, BIG_ENDIAN> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }
}

impl<'a, const BIG_ENDIAN: bool> Iterator for Options<'a, BIG_ENDIAN> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([a, b, c, d], rest) = self.rest.split_first_chunk::<4>()?;
        let code = half::<BIG_ENDIAN>([*a, *b]);
        if code == 0 {
            return None;
        }
        let len = usize::from(half::<BIG_ENDIAN>([*c, *d]));
        let value = rest.get(..len)?;
        self.rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_skipped_and_the_end_option_ends_the_list() {
        let octets = [2, 0, 2, 0, b'l', b'o', 0, 0, 9, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0];
        let found: Vec<_> = Options::<false>::new(&octets).collect();
        assert_eq!(found, [(2, &b"lo"[..]), (9, &[6][..])]);
    }

    #[test]
    fn an_option_with_an_invalid_length_ends_the_list() {
        let octets = [0, 2, 0, 1, b'l', 0, 0, 0, 0, 3, 0xff, 0xff, 1, 2];
        assert_eq!(Options::<true>::new(&octets).collect::<Vec<_>>(), [(2, &b"l"[..])]);
        assert_eq!(Options::<true>::new(&[0, 2, 0, 1, b'l']).count(), 1);
        assert_eq!(Options::<true>::new(&[0, 2, 0]).count(), 0);
    }
}
