//! Ethernet II and VLAN tags (IEEE 802.3, 802.1Q).

use crate::base::EtherType;

/// Octets of the addresses and the EtherType.
pub(crate) const HEADER_LEN: usize = 14;

/// Octets that a VLAN tag adds: the tag control information, and the EtherType behind it.
pub(crate) const VLAN_TAG_LEN: usize = 4;

/// Offset of the destination address in a header.
pub(crate) const DESTINATION_OFFSET: usize = 0;

/// Offset of the source address in a header.
pub(crate) const SOURCE_OFFSET: usize = 6;

/// Values below are lengths of an 802.3 frame, not EtherTypes (IEEE 802.3, 3.2.6).
pub(crate) const ETHERTYPE_MIN: u16 = 0x0600;

/// Returns whether an EtherType announces a VLAN tag: customer, service, or the pre-standard 0x9100.
#[must_use]
#[inline(always)]
pub(crate) const fn is_vlan(ether_type: EtherType) -> bool {
    matches!(ether_type, EtherType::VLAN | EtherType::SERVICE_VLAN | EtherType::VLAN_9100)
}
