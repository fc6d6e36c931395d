//! The callbacks of the tracker, and the types of their arguments.

use std::ops::BitOr;

use super::event::{CallbackChanges, FlowEvent};
use super::flow::FlowId;
use super::view::FlowView;
use crate::base::{EndReason, Evidence, Packet, Side, Timestamp};

/// A flow in a callback: the caller's mutable state, and a view of the tracker's data.
#[derive(Debug)]
pub struct Flow<'t, S> {
    /// The caller's own state of the flow.
    pub state: &'t mut S,
    /// The tracker's data of the flow.
    pub view: FlowView<'t>,
    /// What the callback changed: flags of [`CallbackChanges`].
    changed: u8,
    /// True if the callback is the default. Release builds do not check it, and would pay for it in each callback.
    #[cfg(debug_assertions)]
    is_ignored: bool,
}

impl<'t, S> Flow<'t, S> {
    /// Creates the argument of a callback from the caller's state and the tracker's data of a flow.
    #[inline(always)]
    pub(crate) const fn new(state: &'t mut S, view: FlowView<'t>) -> Self {
        Self {
            state,
            view,
            changed: 0,
            #[cfg(debug_assertions)]
            is_ignored: false,
        }
    }

    /// States that the callback is the default, which ignores its arguments.
    #[inline(always)]
    pub(crate) const fn ignore(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.is_ignored = true;
        }
    }

    /// Returns whether the callback was a default.
    #[cfg(debug_assertions)]
    pub(crate) const fn is_ignored(&self) -> bool {
        self.is_ignored
    }

    /// Returns whether the initiator of the flow sent the packet.
    #[must_use]
    #[inline]
    pub fn is_from_initiator(&self, packet: &Packet<'_>) -> bool {
        packet.side == self.view.initiator()
    }

    /// Returns the payload length of the packet in octets, negative if the responder sent it: an element of a sequence
    /// of packet lengths and directions. Zero for a packet without payload, whose direction
    /// [`is_from_initiator`](Self::is_from_initiator) returns. The initiator may change with the first packets
    /// ([`FlowEvent::DirectionChanged`](super::FlowEvent::DirectionChanged)).
    #[must_use]
    #[inline]
    pub fn signed_payload_len(&self, packet: &Packet<'_>) -> i64 {
        let len = i64::from(packet.payload_len);
        if self.is_from_initiator(packet) { len } else { -len }
    }

    /// Stops all callbacks for this flow except `record` and `ended`. The flow is still tracked. In the stage `Sessions`,
    /// a protocol that is not recognized yet stays unknown: to name it, mute the flow from
    /// [`Sink::session`](crate::pipeline::Sink::session) or later.
    pub fn mute(&mut self) {
        self.changed |= CallbackChanges::MUTED;
    }

    /// Returns whether [`mute`](Self::mute) was called during this callback, for sinks that wrap other sinks.
    #[must_use]
    pub const fn is_muted(&self) -> bool {
        self.changed & CallbackChanges::MUTED != 0
    }

    #[inline(always)]
    pub(crate) const fn changes(&self) -> CallbackChanges {
        CallbackChanges::new(self.changed, self.view.bits)
    }

    /// Records what a session learned about the direction of the flow.
    pub(crate) fn learn(&mut self, client: Side, evidence: Evidence) {
        let view = self.view.learned(client, evidence);
        if view.initiator() != self.view.initiator() {
            self.view = view;
            self.changed |= CallbackChanges::TURNED;
        }
    }

    /// Takes over the changes that a callback with another view of this flow made.
    #[cold]
    pub(crate) const fn take_changes(&mut self, changes: CallbackChanges) {
        self.changed |= changes.flags();
        if changes.has_turned() {
            self.view.bits = changes.bits;
        }
    }

    /// Passes a part of the caller's state to a closure, for sinks that wrap other sinks. If the closure mutes the
    /// flow, this flow is muted too.
    #[inline(always)]
    pub fn project<T, R>(
        &mut self,
        part: impl FnOnce(&mut S) -> &mut T,
        call: impl FnOnce(&mut Flow<'_, T>) -> R,
    ) -> R {
        let mut inner = Flow::new(part(self.state), self.view);
        let result = call(&mut inner);
        self.changed |= inner.changed & CallbackChanges::MUTED;
        #[cfg(debug_assertions)]
        {
            self.is_ignored |= inner.is_ignored;
        }
        result
    }
}

/// The callbacks that a sink requires. Callbacks that are not required cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// No optional callbacks: only records and the ends of flows, which are always delivered.
    pub const RECORDS: Self = Self(0);
    /// The callback [`Observer::started`].
    pub const STARTS: Self = Self(1);
    /// The callback [`Observer::packet`].
    pub const PACKETS: Self = Self(1 << 1);
    /// The callback [`Observer::packet`] for packets other than TCP segments, if streams deliver the octets of TCP;
    /// without streams, the same as [`PACKETS`](Self::PACKETS).
    pub const DATAGRAMS: Self = Self(1 << 3);
    /// The callback [`Observer::event`]. Active timeouts are always delivered.
    pub const EVENTS: Self = Self(1 << 2);
    /// The callback [`Sink::neighbor`](crate::pipeline::Sink::neighbor).
    pub const NEIGHBORS: Self = Self(1 << 5);
    /// All callbacks: starts, packets, datagrams, events and messages of neighbors.
    pub const ALL: Self = Self(15 | 1 << 5);
    /// No callback, but the statement that the interest depends on the value of the sink, or changes. A sink may then
    /// implement callbacks that its interest excludes, which debug builds refuse otherwise.
    pub const VARIES: Self = Self(1 << 4);

    /// Returns whether the callback for packets is required, for all packets or for those that are not TCP segments.
    #[inline(always)]
    pub(crate) const fn wants_packets(self) -> bool {
        self.0 & (Self::PACKETS.0 | Self::DATAGRAMS.0) != 0
    }

    /// Returns whether `self` includes all callbacks of `other`.
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

/// Receives the events of a [`Tracker`](super::Tracker) that is used alone. A pipeline uses a
/// [`Sink`](crate::pipeline::Sink) instead.
///
/// For one packet, the calls come in this order: `ended` of a flow that is evicted or replaced, `started`, `event`s,
/// `packet`. Every flow ends with a call of `ended`, which returns the caller's state. Usable as `dyn Observer<S>`.
pub trait Observer<S> {
    /// Returns the callbacks that the observer requires; read once per batch. `record` and `ended` are always called.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Called when a flow begins; the flow's first packet is not counted yet.
    fn started(&mut self, _flow: &mut Flow<'_, S>) {}

    /// Called after a packet was counted on its flow.
    fn packet(&mut self, _flow: &mut Flow<'_, S>, _packet: &Packet<'_>) {}

    /// Called when the flow changes, or has unusual traffic.
    fn event(&mut self, _flow: &mut Flow<'_, S>, _event: &FlowEvent) {}

    /// Called when a record of a flow that stays open is due: its active timeout has passed
    /// ([`EndReason::ActiveTimeout`]), or it closed and the [linger timeout](super::Timeouts::linger) is zero
    /// ([`EndReason::EndOfFlow`]). The view still shows the record that ends here; after this call the delta counters
    /// restart, and identity, direction and TCP state are kept. Called for muted flows too.
    ///
    /// Unlike [`Sink::record`](crate::pipeline::Sink::record), it is not called when the flow ends: [`ended`](Self::ended)
    /// creates the last record, unless [`FlowView::is_empty`].
    fn record(&mut self, _flow: &mut Flow<'_, S>, _reason: EndReason) {}

    /// Called when a flow ends; `_state` is the caller's state of the flow.
    fn ended(&mut self, _flow: &FlowView<'_>, _reason: EndReason, _state: S) {}

    /// Returns whether the first packet of a flow is an answer according to its content, so that its receiver is the
    /// initiator. Called if neither a handshake, the addresses nor the ports show that. For the adapter of this crate
    /// between a tracker and a stage.
    #[doc(hidden)]
    fn is_answer(&self, _packet: &Packet<'_>) -> bool {
        false
    }

    /// Called before [`ended`](Self::ended), while the direction of the flow can still change. For the adapter of this
    /// crate between a tracker and a stage.
    #[doc(hidden)]
    fn ending(&mut self, _flow: &mut Flow<'_, S>) {}

    /// Reads the caller's state of a flow that probably has one of the next packets, so that its memory is loaded
    /// together with that of other flows. The result has no meaning.
    #[doc(hidden)]
    fn touch(&self, _state: &S) -> u64 {
        0
    }

    /// Returns the time in nanoseconds of the observer's own next deadline. The tracker reads it after each call of
    /// [`packet`](Self::packet). For the adapter of this crate between a tracker and a stage.
    #[doc(hidden)]
    fn next_due_ns(&self) -> u64 {
        u64::MAX
    }

    /// Returns the identifier of a flow with a deadline that the clock of the tracker has reached. If the flow is open,
    /// [`due`](Self::due) is called next. This is repeated until the result is `None`, before the packet with that time
    /// is counted.
    #[doc(hidden)]
    fn next_due(&mut self, _now: Timestamp) -> Option<FlowId> {
        None
    }

    /// Processes the deadline of the flow that [`next_due`](Self::next_due) returned last.
    #[doc(hidden)]
    fn due(&mut self, _flow: &mut Flow<'_, S>, _now: Timestamp) {}
}

/// Observer that ignores all callbacks.
impl<S> Observer<S> for () {
    fn interest(&self) -> Interest {
        Interest::RECORDS
    }
}
