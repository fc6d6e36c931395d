//! Linux cooked capture (`pcap-linktype(7)`, LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2).

use crate::base::EtherType;
use crate::codec::Reader;

/// Fields of a Linux cooked capture header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct SllHeader {
    /// Protocol of the payload, if the capturing device uses EtherTypes.
    pub(crate) ether_type: EtherType,
    /// ARPHRD_ value of the capturing device.
    pub(crate) hardware_type: u16,
    /// Offset of the sender's address in the header, if the address has six octets.
    pub(crate) source_offset: Option<usize>,
    /// Length of the cooked capture header in octets.
    pub(crate) len: usize,
}

/// Hardware type of Frame Relay: a Frame Relay header follows, regardless of the protocol field.
pub(crate) const FRAME_RELAY: u16 = 770;

/// Hardware type of a wireless monitor: radiotap and an 802.11 header follow, regardless of the protocol
/// field.
pub(crate) const RADIOTAP: u16 = 803;

/// Hardware type of netlink: the protocol field is a netlink family.
pub(crate) const NETLINK: u16 = 824;

/// Value of the protocol field for LLC, which has no EtherType.
pub(crate) const LLC: EtherType = EtherType(4);

/// Length of a Linux cooked capture header of version 1, in octets.
pub(crate) const V1_LEN: usize = 16;

/// Length of a Linux cooked capture header of version 2, in octets.
pub(crate) const V2_LEN: usize = 20;

const MAC_LEN: u16 = 6;
const ADDRESS_FIELD_LEN: usize = 8;

/// Reads a Linux cooked capture header of version 1; `None` if the header is truncated.
#[must_use]
pub(crate) fn v1(data: &[u8]) -> Option<SllHeader> {
    let mut reader = Reader::new(data);
    let _packet_type = reader.be::<u16>().ok()?;
    let hardware_type = reader.be::<u16>().ok()?;
    let address_len = reader.be::<u16>().ok()?;
    let address_offset = reader.offset();
    reader.skip(ADDRESS_FIELD_LEN).ok()?;
    let ether_type = EtherType(reader.be::<u16>().ok()?);
    let source_offset = (address_len == MAC_LEN).then_some(address_offset);
    Some(SllHeader { ether_type, hardware_type, source_offset, len: reader.offset() })
}

/// Reads a Linux cooked capture header of version 2; `None` if the header is truncated.
#[must_use]
pub(crate) fn v2(data: &[u8]) -> Option<SllHeader> {
    let mut reader = Reader::new(data);
    let ether_type = EtherType(reader.be::<u16>().ok()?);
    let _reserved = reader.be::<u16>().ok()?;
    let _interface_index = reader.be::<u32>().ok()?;
    let hardware_type = reader.be::<u16>().ok()?;
    let _packet_type = reader.be::<u8>().ok()?;
    let address_len = reader.be::<u8>().ok()?;
    let address_offset = reader.offset();
    reader.skip(ADDRESS_FIELD_LEN).ok()?;
    let source_offset = (u16::from(address_len) == MAC_LEN).then_some(address_offset);
    Some(SllHeader { ether_type, hardware_type, source_offset, len: reader.offset() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_contain_protocol_and_sender() {
        let one = [0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0x08, 0x00];
        let header = v1(&one).unwrap();
        assert_eq!((header.ether_type, header.source_offset, header.len), (EtherType::IPV4, Some(6), 16));
        let two = [0x86, 0xdd, 0, 0, 0, 0, 0, 9, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        let header = v2(&two).unwrap();
        assert_eq!((header.ether_type, header.source_offset, header.len), (EtherType::IPV6, Some(12), 20));
        assert_eq!((v1(&one[..15]), v2(&two[..19])), (None, None));
    }
}
