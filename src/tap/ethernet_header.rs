//! Ethernet header that is built once and written before many packets.

use crate::base::{EtherType, VlanIds};
use crate::wire::ethernet::TaggedHeader;

/// Addresses and VLAN tags of the frames to one neighbor: 14, 18 or 22 octets.
///
/// Built once per neighbor, with the addresses and tags encoded at that time, and written per packet by
/// [`ip_to_ethernet`](super::ip_to_ethernet), which fills in the EtherType. One VLAN id yields an IEEE 802.1Q
/// tag (0x8100); two yield an IEEE 802.1ad service tag (0x88a8) with a customer tag (0x8100) inside. Priority
/// and drop eligibility are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader(TaggedHeader);

impl EthernetHeader {
    /// Length of an Ethernet header with two VLAN tags in octets: headroom that is always sufficient.
    pub const LEN_MAX: usize = TaggedHeader::LEN_MAX;

    /// Creates the header of frames from `source` to `destination`, tagged with `vlan_ids`, outermost first.
    /// Constant time.
    #[must_use]
    pub fn new(destination: [u8; 6], source: [u8; 6], vlan_ids: VlanIds) -> Self {
        Self(TaggedHeader::new(destination, source, vlan_ids))
    }

    /// Returns the length of the Ethernet header in octets: 14, and 4 per VLAN tag.
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the destination address in the Ethernet header.
    #[must_use]
    #[inline]
    pub const fn destination(&self) -> [u8; 6] {
        self.0.destination()
    }

    /// Returns the source address in the Ethernet header.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> [u8; 6] {
        self.0.source()
    }

    /// Writes the Ethernet header with `ether_type` to the start of a frame. Returns `None` and writes nothing if the
    /// frame is shorter than the header.
    #[inline(always)]
    pub(super) fn write(&self, frame: &mut [u8], ether_type: EtherType) -> Option<()> {
        self.0.write(frame, ether_type)
    }
}
