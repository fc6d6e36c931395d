//! What a filter is asked about.

use crate::base::{FlowKey, Side, VlanIds};

/// A packet or a flow as a filter sees it: a key, which of its ends is the source, and VLAN ids.
///
/// For a packet the source is the side that sent it, so that `src` and `dst` mean what they mean to tcpdump.
/// For a flow the source is its initiator: a flow is kept or dropped whole, whichever way a single packet went.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'k> {
    pub(super) key: &'k FlowKey,
    pub(super) source: Side,
    /// Of the source's packets, then of the answers.
    pub(super) vlan_ids: [VlanIds; 2],
}

impl<'k> Subject<'k> {
    /// A subject with the VLAN ids that are in the key, if any are.
    #[must_use]
    #[inline]
    pub const fn new(key: &'k FlowKey, source: Side) -> Self {
        Self { key, source, vlan_ids: [key.vlan_ids(), VlanIds::NONE] }
    }

    /// The subject with the VLAN ids that its packets carry, or those of the initiator's packets.
    #[must_use]
    #[inline]
    pub const fn with_vlan_ids(mut self, vlan_ids: VlanIds) -> Self {
        self.vlan_ids[0] = vlan_ids;
        self
    }

    /// The flow with the VLAN ids of the responder's packets, where they may be others.
    ///
    /// `vlan` holds if either direction satisfies it.
    #[must_use]
    #[inline]
    pub const fn with_reverse_vlan_ids(mut self, vlan_ids: VlanIds) -> Self {
        self.vlan_ids[1] = vlan_ids;
        self
    }
}
