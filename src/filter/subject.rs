//! The packet or flow that a filter tests.

#[cfg(feature = "protocols")]
use std::net::IpAddr;

#[cfg(feature = "protocols")]
use crate::base::NeighborProtocol;
use crate::base::{FlowKey, Side, VlanIds};

/// The properties of a packet or a flow that a filter tests: a key, the end that is the source, and VLAN ids.
///
/// For a packet, the source is the side that sent it, so that `src` and `dst` have the same meaning as in tcpdump.
/// For a flow, the source is its initiator: a flow is kept or dropped as a whole, regardless of the direction of a
/// single packet.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'k> {
    pub(super) key: &'k FlowKey,
    pub(super) source: Side,
    /// VLAN ids of the packets from the source, then VLAN ids of the replies.
    pub(super) vlan_ids: [VlanIds; 2],
}

impl<'k> Subject<'k> {
    /// Creates the subject of a filter from a flow key and its source, with the VLAN ids in the key, if any.
    #[must_use]
    #[inline]
    pub const fn new(key: &'k FlowKey, source: Side) -> Self {
        Self { key, source, vlan_ids: [key.vlan_ids(), VlanIds::NONE] }
    }

    /// Returns the subject with the VLAN ids of the packet or, for a flow, of the initiator's packets.
    #[must_use]
    #[inline]
    pub const fn with_vlan_ids(mut self, vlan_ids: VlanIds) -> Self {
        self.vlan_ids[0] = vlan_ids;
        self
    }

    /// Returns the subject with the VLAN ids of the responder's packets, which may differ from those of the
    /// initiator's.
    ///
    /// The filter term `vlan` matches if the VLAN ids of one of the two directions satisfy it.
    #[must_use]
    #[inline]
    pub const fn with_reverse_vlan_ids(mut self, vlan_ids: VlanIds) -> Self {
        self.vlan_ids[1] = vlan_ids;
        self
    }
}

/// The properties of a frame without an IP packet that a filter tests.
#[cfg(feature = "protocols")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSubject {
    pub(crate) protocol: NeighborProtocol,
    /// Addresses of sender and target, in a message of ARP or RARP.
    pub(crate) addresses: (Option<IpAddr>, Option<IpAddr>),
    pub(crate) vlan_ids: VlanIds,
}
