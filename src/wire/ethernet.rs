//! Ethernet II and VLAN tags (IEEE 802.3, 802.1Q).

use crate::base::EtherType;

/// Octets of the addresses and the EtherType.
pub const HEADER_LEN: usize = 14;

/// Octets that a VLAN tag adds: the tag control information, and the EtherType behind it.
pub const VLAN_TAG_LEN: usize = 4;

/// Where the destination address lies in a header.
pub const DESTINATION_OFFSET: usize = 0;

/// Where the source address lies in a header.
pub const SOURCE_OFFSET: usize = 6;

/// Values below are lengths of an 802.3 frame, not EtherTypes (IEEE 802.3, 3.2.6).
pub const ETHERTYPE_MIN: u16 = 0x0600;

/// Whether an EtherType announces a VLAN tag: customer, service, or the pre-standard 0x9100.
#[must_use]
#[inline(always)]
pub const fn is_vlan(ether_type: EtherType) -> bool {
    matches!(ether_type, EtherType::VLAN | EtherType::SERVICE_VLAN | EtherType::VLAN_9100)
}
