//! VN-tag of virtual interfaces (EtherType 0x8926).

use super::{be16, be32};
use crate::base::EtherType;

/// Length in octets of a VN-tag behind its EtherType, together with the EtherType that follows the tag.
pub(crate) const TAG_LEN: usize = 6;

mod field {
    pub(super) const CONTROL: usize = 0;
    pub(super) const ETHER_TYPE: usize = 4;
}

/// Fields of a VN-tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VnTag {
    /// Identifier of the destination virtual interface, 14 bits.
    pub(crate) destination: u32,
    /// Protocol of the data behind the VN-tag.
    pub(crate) ether_type: EtherType,
}

/// Reads a VN-tag from the octets behind its EtherType; `None` if the tag is truncated.
#[must_use]
pub(crate) fn tag(data: &[u8]) -> Option<VnTag> {
    let destination = be32(data, field::CONTROL)? >> 16 & 0x3fff;
    Some(VnTag { destination, ether_type: EtherType(be16(data, field::ETHER_TYPE)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_destination_is_in_the_upper_half_below_two_flags() {
        let data = [0xc1, 0x23, 0xff, 0xff, 8, 0];
        assert_eq!(tag(&data), Some(VnTag { destination: 0x123, ether_type: EtherType::IPV4 }));
        assert_eq!(tag(&data[..5]), None);
    }
}
