//! Ethernet header that is built once and written in front of many packets.

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
    /// Octets of a header with two tags: headroom that is always sufficient.
    pub const LEN_MAX: usize = TaggedHeader::LEN_MAX;

    /// Creates the header of frames from `source` to `destination`, tagged with `vlan_ids`, outermost first.
    /// Constant time.
    #[must_use]
    pub fn new(destination: [u8; 6], source: [u8; 6], vlan_ids: VlanIds) -> Self {
        Self(TaggedHeader::new(destination, source, vlan_ids))
    }

    /// Returns the number of octets of the header: 14, and 4 per tag.
    #[must_use]
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the destination address of the frames.
    #[must_use]
    #[inline]
    pub const fn destination(&self) -> [u8; 6] {
        self.0.destination()
    }

    /// Returns the source address of the frames.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> [u8; 6] {
        self.0.source()
    }

    /// Writes the header to the first octets of a frame. Returns `None` and writes nothing if it does not
    /// fit.
    #[inline(always)]
    pub(super) fn write(&self, frame: &mut [u8], ether_type: EtherType) -> Option<()> {
        self.0.write(frame, ether_type)
    }
}
