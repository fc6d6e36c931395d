//! Output of the slow path of decoding, which emits packets through a trait instead of writing one packet in
//! place.

use super::extractor::Packet;
use crate::base::{EncapsulationHeader, NeighborProtocol, OuterFlow};

/// Receives the packets of frames that may yield several packets, such as fragments and tunnels with linked
/// flows.
pub(crate) trait Emit {
    /// Receives a packet, which counts for the flow of its key.
    fn packet(&mut self, packet: &Packet<'_>);

    /// Receives the outer headers and the outer flow of an emitted packet. `packet_count` is the number of
    /// frames that carried the packet: more than one if it was reassembled.
    fn encapsulation(
        &mut self,
        packet: &Packet<'_>,
        packet_count: u32,
        headers: &[EncapsulationHeader],
        outer_flow: Option<OuterFlow>,
    );

    /// Receives a packet that was just emitted and that belongs to an outer flow, because it carries the
    /// packet emitted next. `counted` contains the frames and octets that were counted for that outer flow.
    fn carried(&mut self, packet: &Packet<'_>, counted: Counted);

    /// Receives a message between neighbors: a packet that is emitted next, or a message without an IP packet, which belongs
    /// to no flow.
    fn neighbor(&mut self, protocol: NeighborProtocol, packet: &Packet<'_>);
}

/// Number of frames that were counted for a flow, and the octets of those frames on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) packet_count: u32,
    pub(crate) octet_count: u64,
}
