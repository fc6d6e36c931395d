//! VXLAN (RFC 7348) and VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).

use super::{be32, nsh};
use crate::base::EtherType;

/// Length of a VXLAN header in octets.
pub(crate) const HEADER_LEN: usize = 8;

const HAS_VNI: u8 = 0x08;
const HAS_NEXT_PROTOCOL: u8 = 0x04;
const VERSION: u8 = 0x30;

mod field {
    pub(super) const FLAGS: usize = 0;
    /// Offset of the next-protocol field, which only VXLAN-GPE has.
    pub(super) const NEXT_PROTOCOL: usize = 3;
    pub(super) const VNI: usize = 4;
}

/// Returns the virtual network identifier of a VXLAN header; `None` if the header is truncated or if the I flag
/// is not set.
#[must_use]
pub(crate) fn vni(data: &[u8]) -> Option<u32> {
    let header = data.first_chunk::<HEADER_LEN>()?;
    if header[field::FLAGS] & HAS_VNI == 0 { None } else { be32(header, field::VNI).map(|word| word >> 8) }
}

/// Returns the virtual network identifier of a VXLAN-GPE header of version 0 and the EtherType of its payload;
/// `None` if the header is not valid or the next protocol is unknown.
#[must_use]
pub(crate) fn gpe(data: &[u8]) -> Option<(u32, EtherType)> {
    let header = data.first_chunk::<HEADER_LEN>()?;
    let next = match header[field::FLAGS] & (HAS_NEXT_PROTOCOL | VERSION) {
        HAS_NEXT_PROTOCOL => nsh::next_protocol(header[field::NEXT_PROTOCOL])?,
        0 => EtherType::ETHERNET_BRIDGING,
        _ => return None,
    };
    vni(header).map(|vni| (vni, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_determine_the_contained_fields() {
        let data = |flags, next| [flags, 0, 0, next, 0x12, 0x34, 0x56, 0xff];
        assert_eq!(vni(&data(0x08, 0)), Some(0x12_3456));
        // Reserved flags are ignored on receipt (RFC 7348 section 5), the I flag is not.
        assert_eq!((vni(&data(0xff, 9)), vni(&data(0xf7, 0))), (Some(0x12_3456), None));
        assert_eq!(vni(&data(0x08, 0)[..7]), None);
        let gpe_of = |flags, next| gpe(&data(flags, next)).map(|(_, next)| next);
        assert_eq!(gpe_of(0x0c, 2), Some(EtherType::IPV6));
        assert_eq!(gpe_of(0x08, 2), Some(EtherType::ETHERNET_BRIDGING));
        assert_eq!((gpe_of(0x1c, 1), gpe_of(0x0c, 99), gpe_of(0x04, 1)), (None, None, None));
    }
}
