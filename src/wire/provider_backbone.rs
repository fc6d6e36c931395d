//! Service tag of provider backbone bridges (IEEE 802.1ah).

use super::be32;

/// Length of a service tag behind its EtherType, in octets.
pub(crate) const TAG_LEN: usize = 4;

mod field {
    pub(super) const CONTROL: usize = 0;
}

/// Returns the service identifier (24 bits) of the service tag behind its EtherType; `None` if the tag is
/// truncated.
#[must_use]
pub(crate) fn service_id(data: &[u8]) -> Option<u32> {
    be32(data, field::CONTROL).map(|word| word & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_is_in_the_lower_24_bits() {
        assert_eq!(service_id(&[0xff, 0x12, 0x34, 0x56]), Some(0x12_3456));
        assert_eq!(service_id(&[0; 3]), None);
    }
}
