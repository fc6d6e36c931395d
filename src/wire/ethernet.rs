//! Ethernet II and VLAN tags (IEEE 802.3, 802.1Q), and hardware addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{array, be16, encode};
use crate::base::{EtherType, VlanIds};

/// Length of a hardware address in octets.
pub(crate) const ADDRESS_LEN: usize = 6;

/// Length of the destination and source addresses together, in octets.
pub(crate) const ADDRESSES_LEN: usize = 2 * ADDRESS_LEN;

/// Length of an Ethernet header without VLAN tags, in octets: two addresses and the EtherType.
pub(crate) const HEADER_LEN: usize = 14;

/// Length that a VLAN tag adds to an Ethernet header, in octets: the tag control information and the EtherType
/// behind it.
pub(crate) const VLAN_TAG_LEN: usize = 4;

/// Smallest EtherType. A smaller value in the EtherType field is the length of an 802.3 frame (IEEE 802.3,
/// 3.2.6).
pub(crate) const ETHERTYPE_MIN: u16 = 0x0600;

/// Hardware address of all stations of a link (broadcast).
pub(crate) const BROADCAST: [u8; ADDRESS_LEN] = [0xff; ADDRESS_LEN];

const VLAN_ID_MASK: u16 = 0xfff;
const GROUP_BIT: u8 = 1;

mod field {
    pub(super) const DESTINATION: usize = 0;
    pub(super) const SOURCE: usize = 6;
    pub(super) const ETHER_TYPE: usize = 12;
}

/// Field offsets in a VLAN tag, from the end of the EtherType that announces the tag.
mod tag_field {
    pub(super) const CONTROL: usize = 0;
    pub(super) const ETHER_TYPE: usize = 2;
}

/// Offset of the source address in an Ethernet header.
pub(crate) const SOURCE_OFFSET: usize = field::SOURCE;

/// View of an Ethernet header. Each accessor reads only one field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ethernet<'a>(&'a [u8; HEADER_LEN]);

impl<'a> Ethernet<'a> {
    /// Returns the Ethernet header at the start of `data`; `None` if there are fewer than [`HEADER_LEN`]
    /// octets.
    #[inline(always)]
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    #[inline(always)]
    pub(crate) fn destination(self) -> [u8; ADDRESS_LEN] {
        destination(self.0).unwrap_or_default()
    }

    #[inline(always)]
    pub(crate) fn source(self) -> [u8; ADDRESS_LEN] {
        source(self.0).unwrap_or_default()
    }

    /// Returns the EtherType field, which may contain the length of an 802.3 frame instead.
    #[inline(always)]
    pub(crate) fn ether_type(self) -> EtherType {
        EtherType(be16(self.0, field::ETHER_TYPE).unwrap_or_default())
    }
}

/// Returns the destination address of the Ethernet header at the start of `data`; the rest of the header may be
/// truncated.
#[inline]
pub(crate) fn destination(data: &[u8]) -> Option<[u8; ADDRESS_LEN]> {
    array(data, field::DESTINATION).copied()
}

/// Returns the source address of the Ethernet header at the start of `data`; the rest of the header may be
/// truncated.
#[inline]
pub(crate) fn source(data: &[u8]) -> Option<[u8; ADDRESS_LEN]> {
    array(data, field::SOURCE).copied()
}

/// Returns the hardware address at the start of `data`.
#[inline]
pub(crate) fn address(data: &[u8]) -> Option<[u8; ADDRESS_LEN]> {
    data.first_chunk().copied()
}

/// Returns the EtherType field of the Ethernet header at the start of `data`, which may contain the length of
/// an 802.3 frame instead.
#[must_use]
#[inline(always)]
pub(crate) fn ether_type(data: &[u8]) -> Option<EtherType> {
    be16(data, field::ETHER_TYPE).map(EtherType)
}

/// Returns whether an EtherType announces a VLAN tag: a customer tag, a service tag, or the pre-standard
/// 0x9100.
#[must_use]
#[inline(always)]
pub(crate) const fn is_vlan(ether_type: EtherType) -> bool {
    matches!(ether_type, EtherType::VLAN | EtherType::SERVICE_VLAN | EtherType::VLAN_9100)
}

/// Fields of a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlanTag {
    /// VLAN identifier, 12 bits.
    pub(crate) id: u16,
    /// Protocol of the data behind the VLAN tag.
    pub(crate) ether_type: EtherType,
}

/// Reads a VLAN tag from the octets behind the EtherType that announces the tag; `None` if the tag is
/// truncated.
#[must_use]
#[inline(always)]
pub(crate) fn vlan_tag(data: &[u8]) -> Option<VlanTag> {
    split_vlan_tag(data).map(|(tag, _)| tag)
}

/// Returns the fields of the VLAN tag at the start of `data`, and the octets after the tag; `None` if the tag is
/// truncated.
#[must_use]
#[inline(always)]
pub(crate) fn split_vlan_tag(data: &[u8]) -> Option<(VlanTag, &[u8])> {
    let (tag, rest) = data.split_first_chunk::<VLAN_TAG_LEN>()?;
    let id = be16(tag, tag_field::CONTROL)? & VLAN_ID_MASK;
    Some((VlanTag { id, ether_type: EtherType(be16(tag, tag_field::ETHER_TYPE)?) }, rest))
}

/// Returns whether a hardware address belongs to a single station: the group bit is clear, and the address is
/// not zero.
#[must_use]
pub(crate) fn is_station(address: [u8; ADDRESS_LEN]) -> bool {
    let [first, ..] = address;
    first & GROUP_BIT == 0 && address != [0; ADDRESS_LEN]
}

/// Returns the hardware address of an IPv4 multicast group (RFC 1112 section 6.4).
#[must_use]
pub(crate) const fn group_v4(group: Ipv4Addr) -> [u8; ADDRESS_LEN] {
    let [_, b, c, d] = group.octets();
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

/// Returns the hardware address of an IPv6 multicast group (RFC 2464 section 7).
#[must_use]
pub(crate) const fn group_v6(group: Ipv6Addr) -> [u8; ADDRESS_LEN] {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// Returns the destination and source addresses of the Ethernet header at the start of `data`, for
/// modification.
pub(crate) fn addresses_mut(data: &mut [u8]) -> Option<&mut [u8; ADDRESSES_LEN]> {
    data.first_chunk_mut()
}

/// Writes the destination and source addresses of an Ethernet header.
pub(crate) fn write_addresses(
    header: &mut [u8; ADDRESSES_LEN],
    destination: [u8; ADDRESS_LEN],
    source: [u8; ADDRESS_LEN],
) {
    *header = encode(|writer| {
        writer.array(destination)?;
        writer.array(source)
    });
}

/// Ethernet header with up to two VLAN tags that is encoded once and written before many packets. The EtherType
/// is written for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaggedHeader {
    octets: [u8; Self::LEN_MAX],
    vlan_tag_count: u8,
}

impl TaggedHeader {
    /// Length of an Ethernet header with two VLAN tags, in octets.
    pub(crate) const LEN_MAX: usize = Self::LEN_TAGGED + VLAN_TAG_LEN;

    const LEN_TAGGED: usize = HEADER_LEN + VLAN_TAG_LEN;

    /// Encodes the header of frames from `source` to `destination`, tagged with `vlan_ids`, outermost first:
    /// one identifier yields a customer tag; two yield a service tag with a customer tag inside. Priority and
    /// drop eligibility are zero.
    pub(crate) fn new(destination: [u8; ADDRESS_LEN], source: [u8; ADDRESS_LEN], vlan_ids: VlanIds) -> Self {
        // Each tag follows the EtherType that announces it.
        let tag = |announced_as: EtherType, id: u16| u32::from(announced_as.0) << 16 | u32::from(id);
        let mut ids = vlan_ids.iter();
        let (vlan_tag_count, tags) = match (ids.next(), ids.next()) {
            (None, _) => (0, [0, 0]),
            (Some(id), None) => (1, [tag(EtherType::VLAN, id), 0]),
            (Some(outer), Some(inner)) => {
                (2, [tag(EtherType::SERVICE_VLAN, outer), tag(EtherType::VLAN, inner)])
            }
        };
        let octets = encode(|writer| {
            writer.array(destination)?;
            writer.array(source)?;
            for tag in tags {
                writer.be(tag)?;
            }
            // `write` replaces the EtherType at the end of the header.
            writer.be(0_u16)
        });
        Self { octets, vlan_tag_count }
    }

    /// Returns the length of the Ethernet header with its VLAN tags, in octets.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        HEADER_LEN + self.vlan_tag_count as usize * VLAN_TAG_LEN
    }

    #[inline]
    pub(crate) const fn destination(&self) -> [u8; ADDRESS_LEN] {
        let [a, b, c, d, e, f, ..] = self.octets;
        [a, b, c, d, e, f]
    }

    #[inline]
    pub(crate) const fn source(&self) -> [u8; ADDRESS_LEN] {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = self.octets;
        [a, b, c, d, e, f]
    }

    /// Writes the Ethernet header with `ether_type` to the start of a frame. Returns `None` and writes nothing
    /// if the frame is shorter than the header.
    #[inline(always)]
    pub(crate) fn write(&self, frame: &mut [u8], ether_type: EtherType) -> Option<()> {
        match self.vlan_tag_count {
            0 => self.write_fixed::<HEADER_LEN>(frame, ether_type),
            1 => self.write_fixed::<{ Self::LEN_TAGGED }>(frame, ether_type),
            _ => self.write_fixed::<{ Self::LEN_MAX }>(frame, ether_type),
        }
    }

    #[inline(always)]
    fn write_fixed<const N: usize>(&self, frame: &mut [u8], ether_type: EtherType) -> Option<()> {
        // A constant length compiles to two or three stores.
        let target = frame.first_chunk_mut::<N>()?;
        *target = *self.octets.first_chunk::<N>()?;
        *target.last_chunk_mut::<2>()? = ether_type.0.to_be_bytes();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_place() {
        let octets = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x81, 0, 0xfa, 0xbc, 0x86, 0xdd];
        let header = Ethernet::read(&octets).unwrap();
        assert_eq!((header.destination(), header.source()), ([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]));
        assert_eq!((header.ether_type(), ether_type(&octets)), (EtherType::VLAN, Some(EtherType::VLAN)));
        let tag = VlanTag { id: 0xabc, ether_type: EtherType::IPV6 };
        assert_eq!(vlan_tag(&octets[HEADER_LEN..]), Some(tag));
        assert_eq!(vlan_tag(&octets[HEADER_LEN..17]), None);
        assert_eq!((source(&octets[..12]), source(&octets[..11])), (Some([7, 8, 9, 10, 11, 12]), None));
        assert_eq!((destination(&octets[..6]), destination(&octets[..5])), (Some([1, 2, 3, 4, 5, 6]), None));
        assert!(Ethernet::read(&octets[..13]).is_none());
    }

    #[test]
    fn tags_are_written_in_order() {
        let cases: [(VlanIds, &[u8]); 3] = [
            (VlanIds::NONE, &[8, 0]),
            (VlanIds::NONE.push(5), &[0x81, 0, 0, 5, 8, 0]),
            (VlanIds::NONE.push(0xabc).push(7), &[0x88, 0xa8, 0x0a, 0xbc, 0x81, 0, 0, 7, 8, 0]),
        ];
        for (vlan_ids, behind) in cases {
            let header = TaggedHeader::new([1; 6], [2; 6], vlan_ids);
            let mut frame = [0xff; TaggedHeader::LEN_MAX + 1];
            assert_eq!(header.write(&mut frame, EtherType::IPV4), Some(()));
            assert_eq!(frame[..12], [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
            assert_eq!(&frame[12..header.len()], behind);
            assert!(frame[header.len()..].iter().all(|octet| *octet == 0xff));
            assert_eq!((header.destination(), header.source()), ([1; 6], [2; 6]));
            assert_eq!(header.write(&mut frame[..header.len() - 1], EtherType::IPV6), None);
            assert_eq!(&frame[12..header.len()], behind);
        }
    }

    #[test]
    fn groups_have_addresses_of_their_own() {
        assert_eq!(group_v4([239, 255, 1, 2].into()), [1, 0, 0x5e, 0x7f, 1, 2]);
        assert_eq!(group_v6("ff02::1:ff12:3456".parse().unwrap()), [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
        assert!(is_station([2, 0, 0, 0, 0, 1]) && !is_station([3, 0, 0, 0, 0, 1]) && !is_station([0; 6]));
    }
}
