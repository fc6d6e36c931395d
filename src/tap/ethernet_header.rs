//! Ethernet header that is built once and written in front of many packets.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::base::{EtherType, VlanIds};
use crate::wire::ethernet::{HEADER_LEN, VLAN_TAG_LEN};

/// Addresses and VLAN tags of the frames to one neighbor: 14, 18 or 22 octets.
///
/// Built once per neighbor, with the addresses and tags encoded at that time, and written per packet by
/// [`ip_to_ethernet`](super::ip_to_ethernet), which fills in the EtherType. One VLAN id yields an IEEE 802.1Q
/// tag (0x8100); two yield an IEEE 802.1ad service tag (0x88a8) with a customer tag (0x8100) inside. Priority
/// and drop eligibility are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    octets: [u8; Self::LEN_MAX],
    vlan_tag_count: u8,
}

impl EthernetHeader {
    /// Octets of a header with two tags: headroom that is always sufficient.
    pub const LEN_MAX: usize = HEADER_LEN + 2 * VLAN_TAG_LEN;

    /// Creates the header of frames from `source` to `destination`, tagged with `vlan_ids`, outermost first.
    /// Constant time.
    #[must_use]
    pub fn new(destination: [u8; 6], source: [u8; 6], vlan_ids: VlanIds) -> Self {
        let mut ids = vlan_ids.iter();
        let (tags, vlan_tag_count) = match (ids.next(), ids.next()) {
            (None, _) => ([0; 8], 0),
            (Some(id), None) => (pair(tag(EtherType::VLAN, id), [0; 4]), 1),
            (Some(outer), Some(inner)) => {
                (pair(tag(EtherType::SERVICE_VLAN, outer), tag(EtherType::VLAN, inner)), 2)
            }
        };
        let mut octets = [0; Self::LEN_MAX];
        octets[..6].copy_from_slice(&destination);
        octets[6..12].copy_from_slice(&source);
        octets[12..20].copy_from_slice(&tags);
        Self { octets, vlan_tag_count }
    }

    /// Returns the number of octets of the header: 14, and 4 per tag.
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        HEADER_LEN + self.vlan_tag_count as usize * VLAN_TAG_LEN
    }

    /// Returns the destination address of the frames.
    #[must_use]
    #[inline]
    pub const fn destination(&self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.octets;
        [a, b, c, d, e, f]
    }

    /// Returns the source address of the frames.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> [u8; 6] {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = self.octets;
        [a, b, c, d, e, f]
    }

    /// Writes the header to the first octets of a frame. Returns `None` and writes nothing if it does not
    /// fit.
    #[inline(always)]
    pub(super) fn write(&self, frame: &mut [u8], ether_type: EtherType) -> Option<()> {
        match self.vlan_tag_count {
            0 => self.write_fixed::<14>(frame, ether_type),
            1 => self.write_fixed::<18>(frame, ether_type),
            _ => self.write_fixed::<22>(frame, ether_type),
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

fn tag(ether_type: EtherType, id: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (ether_type.0.to_be_bytes(), id.to_be_bytes());
    [a, b, c, d]
}

fn pair([a, b, c, d]: [u8; 4], [e, f, g, h]: [u8; 4]) -> [u8; 8] {
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_in_order() {
        let cases: [(VlanIds, &[u8]); 3] = [
            (VlanIds::NONE, &[8, 0]),
            (VlanIds::NONE.push(5), &[0x81, 0, 0, 5, 8, 0]),
            (VlanIds::NONE.push(0xabc).push(7), &[0x88, 0xa8, 0x0a, 0xbc, 0x81, 0, 0, 7, 8, 0]),
        ];
        for (vlan_ids, behind) in cases {
            let header = EthernetHeader::new([1; 6], [2; 6], vlan_ids);
            let mut frame = [0xff; EthernetHeader::LEN_MAX + 1];
            assert_eq!(header.write(&mut frame, EtherType::IPV4), Some(()));
            assert_eq!(frame[..12], [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
            assert_eq!(&frame[12..header.len()], behind);
            assert!(frame[header.len()..].iter().all(|octet| *octet == 0xff));
            assert_eq!((header.destination(), header.source()), ([1; 6], [2; 6]));
            assert_eq!(header.write(&mut frame[..header.len() - 1], EtherType::IPV6), None);
            assert_eq!(&frame[12..header.len()], behind);
        }
    }
}
