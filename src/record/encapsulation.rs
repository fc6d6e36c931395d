//! Part of a flow record about tunnels: the encapsulation of the flow, its outer flows, and the packets that
//! it carries as a tunnel.

use crate::base::{Encapsulation, OuterFlow};

/// Encapsulation and outer flow of each direction of a flow, and the packets that it carried as a tunnel. Recorded on
/// request only (see [`Builder::encapsulation`](crate::pipeline::Builder::encapsulation) and
/// [`Decapsulation::Both`](crate::decode::link::Decapsulation::Both)), for flows that have any of these. The fields are
/// those of the [columns of flow records](crate::record::FlowRecord). All counts restart with each record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncapsulationRecord {
    /// Encapsulation of the initiator's first packet that had more than VLAN tags around it.
    pub encapsulation: Encapsulation,
    /// Number of the initiator's later packets with another encapsulation or outer flow, for example because of load
    /// balancing or a tunnel that moved. Packets without outer headers are not counted.
    pub encapsulation_changed_count: u32,
    /// Flow that carried the initiator's first packet with outer headers; with several levels of tunnels, the
    /// innermost outer flow.
    pub outer_flow: Option<OuterFlow>,
    /// Encapsulation of the responder's first packet that had more than VLAN tags around it.
    pub reverse_encapsulation: Encapsulation,
    /// Number of the responder's later packets with another encapsulation or outer flow.
    pub reverse_encapsulation_changed_count: u32,
    /// Flow that carried the responder's first packet with outer headers; with several levels of tunnels, the
    /// innermost outer flow.
    pub reverse_outer_flow: Option<OuterFlow>,
    /// Number of inner flows, whose first packet this flow carried. An inner flow counts once, even if this
    /// flow carried both of its directions.
    pub inner_flow_count: u32,
    /// Number of packets of this flow that carried an inner packet or a part of one. The inner packet is also
    /// counted in its own flow.
    pub carried_packet_count: u64,
    /// Number of octets on the wire of the packets of this flow that carried an inner packet.
    pub carried_octet_count: u64,
}

impl EncapsulationRecord {
    /// Sets all counts to zero, for the next record of the flow.
    pub(crate) fn restart_counters(&mut self) {
        self.encapsulation_changed_count = 0;
        self.reverse_encapsulation_changed_count = 0;
        self.inner_flow_count = 0;
        self.carried_packet_count = 0;
        self.carried_octet_count = 0;
    }

    /// Returns the record part with the initiator's and the responder's fields exchanged.
    pub(crate) fn turned(self) -> Self {
        Self {
            encapsulation: self.reverse_encapsulation,
            encapsulation_changed_count: self.reverse_encapsulation_changed_count,
            outer_flow: self.reverse_outer_flow,
            reverse_encapsulation: self.encapsulation,
            reverse_encapsulation_changed_count: self.encapsulation_changed_count,
            reverse_outer_flow: self.outer_flow,
            ..self
        }
    }
}
