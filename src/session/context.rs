//! The flow to which the input of a session belongs.

use crate::base::{FlowKey, Side, Timestamp};
use crate::tracker::{FlowBits, FlowId};

/// The flow to which a chunk, gap or datagram belongs, and its capture time.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FlowContext<'a> {
    /// Key of the flow to which the octets belong.
    pub key: &'a FlowKey,
    /// Presumed initiator of the flow.
    pub initiator: Side,
    /// Capture time of the octets; for a gap, the time at which the wait for the missing octets ended.
    pub timestamp: Timestamp,
    /// True if the stream of the current side was captured from its beginning. Octets from the middle of a stream
    /// refute no protocol, so that the port may still identify it.
    pub is_from_start: bool,
    /// The evidence for the initiator, as bits. The port of a side that a SYN or SYN-ACK proves to be the initiator, which
    /// chose it itself, names no protocol.
    pub(super) bits: FlowBits,
    /// The id of the flow in its tracker. A session without an id is not closed to release memory for other sessions.
    pub id: Option<FlowId>,
}

impl<'a> FlowContext<'a> {
    /// Creates the context of a flow whose streams were captured from their beginnings.
    #[must_use]
    #[inline]
    pub const fn new(key: &'a FlowKey, initiator: Side, timestamp: Timestamp) -> Self {
        Self { key, initiator, timestamp, is_from_start: true, bits: FlowBits::UNKNOWN, id: None }
    }

    /// Sets the id of the flow in its tracker, so that its session can be evicted.
    #[must_use]
    #[inline]
    pub(crate) const fn of_flow(self, id: FlowId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Sets whether the stream of the current side was captured from the middle on, not from its beginning.
    #[must_use]
    #[inline]
    pub const fn picked_up(self, is_picked_up: bool) -> Self {
        Self { is_from_start: !is_picked_up, ..self }
    }

    /// Sets the evidence for the initiator.
    #[inline]
    pub(crate) const fn with_bits(self, bits: FlowBits) -> Self {
        Self { bits, ..self }
    }

    /// Sets the capture time.
    pub(super) const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }

    /// Returns the client's port and the server's port, in this order. The session determines which side is the client;
    /// the initiator in this context may change.
    pub(super) const fn ports(&self, client: Side) -> (u16, u16) {
        (self.key.raw_port(client), self.key.raw_port(client.other()))
    }

    /// Returns the client's port and the server's port as far as they may name a protocol: zero for the port of an
    /// initiator that is proven.
    pub(super) const fn naming_ports(&self, client: Side) -> (u16, u16) {
        let (client_port, server_port) = self.ports(client);
        match (self.bits.is_proven(), client.index() == self.initiator.index()) {
            (false, _) => (client_port, server_port),
            (true, true) => (0, server_port),
            (true, false) => (client_port, 0),
        }
    }
}
