//! Output of the slow path.

use super::extractor::Packet;
use crate::base::EncapsulationHeader;
use crate::record::OuterFlow;

/// Receives packets that are not written in place.
pub(crate) trait Emit {
    /// Emits a packet, which counts for the flow of its key.
    fn packet(&mut self, packet: &Packet<'_>);

    /// Reports the encapsulation and the outer flow of an emitted packet, with the number of its frames.
    fn encapsulation(
        &mut self,
        packet: &Packet<'_>,
        packet_count: u32,
        headers: &[EncapsulationHeader],
        outer_flow: Option<OuterFlow>,
    );

    /// Reports that an emitted packet carries the one that follows: it belongs to an outer flow.
    fn carried(&mut self, packet: &Packet<'_>, counted: Counted);
}

/// Number of frames that were counted for a flow, and their octets on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) packet_count: u32,
    pub(crate) octet_count: u64,
}
