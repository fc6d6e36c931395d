//! Source and destination ports, which TCP, UDP and SCTP have at the same offsets.

use super::be16;

mod field {
    pub(super) const SOURCE: usize = 0;
    pub(super) const DESTINATION: usize = 2;
}

/// Octets of both ports.
pub(crate) const LEN: usize = 4;

/// Returns the source and destination ports at the start of a header.
#[must_use]
#[inline(always)]
pub(crate) fn ports(header: &[u8]) -> Option<[u16; 2]> {
    Some([be16(header, field::SOURCE)?, be16(header, field::DESTINATION)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_comes_first() {
        assert_eq!(ports(&[0x13, 0x88, 0, 53]), Some([5000, 53]));
        assert_eq!(ports(&[0x13, 0x88, 0]), None);
    }
}
