//! What the tracker calls, and with what.

use std::ops::BitOr;
use std::time::Duration;

use super::flow::FlowId;
use super::view::FlowView;
use crate::base::{DirectionEvidence, EndReason, Side, TcpState, Timestamp};
use crate::extractor::Packet;

/// A flow in a callback: the caller's state, to be changed, and a view of what the tracker knows.
#[derive(Debug)]
pub struct Flow<'t, S> {
    /// The caller's own state of the flow.
    pub state: &'t mut S,
    /// What the tracker knows of it.
    pub view: FlowView<'t>,
    is_muted: bool,
}

impl<'t, S> Flow<'t, S> {
    /// A flow to be lent to a callback.
    #[inline(always)]
    pub(crate) const fn new(state: &'t mut S, view: FlowView<'t>) -> Self {
        Self { state, view, is_muted: false }
    }

    /// Whether the callback muted it.
    #[inline(always)]
    pub(crate) const fn is_muted(&self) -> bool {
        self.is_muted
    }

    /// No more packets and events of this flow: from here on it is counted, and its end is told.
    pub fn mute(&mut self) {
        self.is_muted = true;
    }
}

/// Which callbacks a sink wants. What nobody wants costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// Nothing but the ends of flows, which are always told.
    pub const ENDS: Self = Self(0);
    /// [`FlowSink::started`].
    pub const STARTS: Self = Self(1);
    /// [`FlowSink::packet`].
    pub const PACKETS: Self = Self(1 << 1);
    /// [`FlowSink::packet`] for what is no TCP segment, where streams bring the octets of TCP; without streams, as
    /// [`PACKETS`](Self::PACKETS).
    pub const DATAGRAMS: Self = Self(1 << 3);
    /// [`FlowSink::event`]. Active timeouts are told in any case.
    pub const EVENTS: Self = Self(1 << 2);
    /// Everything.
    pub const ALL: Self = Self(15);

    /// Whether it wants packets, of all flows or of some.
    #[inline(always)]
    pub(crate) const fn wants_packets(self) -> bool {
        self.0 & (Self::PACKETS.0 | Self::DATAGRAMS.0) != 0
    }

    /// Whether all of `other` is wanted.
    #[must_use]
    #[inline(always)]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Odd traffic of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anomaly {
    /// A RST whose sequence number no receiver would accept, or that does not answer the SYN: perhaps forged. The
    /// flow goes on, with a short timeout until more data comes.
    ResetOutOfWindow,
    /// A SYN with a new sequence number on an open connection (RFC 5961 section 4); the flow goes on.
    SynOnOpenFlow,
    /// An ICMP error quoted one of its packets.
    IcmpError,
    /// An ACK for octets that were not captured.
    AckedUnseen,
}

/// Something that happened to a flow. Small and `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowEvent {
    /// The handshake is complete; with its round-trip time if SYN and ACK were seen.
    Established {
        /// From the last SYN to the ACK that completes the handshake.
        handshake_rtt: Option<Duration>,
    },
    /// TCP went from one state to another.
    StateChanged {
        /// Where it was.
        from: TcpState,
        /// Where it is.
        to: TcpState,
    },
    /// The evidence of who began turned over: the initiator is another side than before.
    DirectionChanged {
        /// The side that began, as it now seems.
        initiator: Side,
        /// On what grounds.
        evidence: DirectionEvidence,
    },
    /// The active timeout passed. The view still shows the record that ends here; behind this call the deltas
    /// restart, and identity, direction and TCP state go on.
    ActiveTimeout,
    /// Odd traffic.
    Anomaly(Anomaly),
}

/// Receives what happens to flows.
///
/// For one packet the calls come in this order: `ended` of a flow that made room or that the packet's own flow
/// replaces, `started`, `event`s, `packet`. All flows leave through `ended`, with the state that the caller kept in
/// them. Usable as `dyn FlowSink<S>`.
pub trait FlowSink<S> {
    /// Which calls are wanted; read once per batch.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// A flow began; its first packet is not counted yet.
    fn started(&mut self, _flow: &mut Flow<'_, S>) {}

    /// A packet was counted.
    fn packet(&mut self, _flow: &mut Flow<'_, S>, _packet: &Packet<'_>) {}

    /// Something happened.
    fn event(&mut self, _flow: &mut Flow<'_, S>, _event: &FlowEvent) {}

    /// A flow ended; its state comes back.
    fn ended(&mut self, _flow: &FlowView<'_>, _reason: EndReason, _state: S) {}

    /// Whether to go on; asked between batches by the run loop.
    fn wants_more(&self) -> bool {
        true
    }

    /// Returns the time in nanoseconds at which something of the sink's own is due, which the tracker reads after each call
    /// of [`packet`](Self::packet). For the adapters of this crate between a tracker and a sink.
    #[doc(hidden)]
    fn next_due_ns(&self) -> u64 {
        u64::MAX
    }

    /// Returns a flow of which something is due at a time that the tracker has reached. [`due`](Self::due) follows if the flow
    /// is open; called until there is none, before the packet with that time is counted.
    #[doc(hidden)]
    fn next_due(&mut self, _now: Timestamp) -> Option<FlowId> {
        None
    }

    /// Takes the flow that was named last.
    #[doc(hidden)]
    fn due(&mut self, _flow: &mut Flow<'_, S>, _now: Timestamp) {}
}

/// Wants nothing.
impl<S> FlowSink<S> for () {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }
}
