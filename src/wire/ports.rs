//! Source and destination ports, which TCP, UDP and SCTP have at the same offsets.

use super::be16;

mod field {
    pub(super) const SOURCE: usize = 0;
    pub(super) const DESTINATION: usize = 2;
}

/// Length of the source and destination ports together, in octets.
pub(crate) const LEN: usize = 4;

/// Returns the source port and then the destination port at the start of a TCP, UDP or SCTP header.
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
