//! Adapter from the callbacks of the tracker, which is independent of the layers above it, to the stage and the sink.

use super::held::Held;
use super::sink::sealed::Stage as _;
use super::sink::{EngineOf, PerFlow, Sink, SlotOf};
use crate::base::{EndReason, NeighborProtocol, Packet, Timestamp, Transport};
use crate::filter::Filter;
#[cfg(feature = "protocols")]
use crate::filter::{LinkSubject, Subject};
#[cfg(feature = "protocols")]
use crate::neighbor::Neighbor;
use crate::tracker::{Flow, FlowEvent, FlowId, FlowView, Interest, Observer, Tracker};

/// Receives the callbacks of the tracker, and passes them to a stage and a sink.
pub(super) struct StageObserver<'a, K: Sink + ?Sized> {
    engine: &'a mut EngineOf<K>,
    sink: &'a mut K,
    held: &'a mut Held,
}

impl<'a, K: Sink + ?Sized> StageObserver<'a, K> {
    #[inline]
    pub(super) const fn new(engine: &'a mut EngineOf<K>, sink: &'a mut K, held: &'a mut Held) -> Self {
        Self { engine, sink, held }
    }

    /// Evicts flows as long as the memory of the sink is short.
    #[cold]
    fn evict_flows(&mut self, tracker: &mut Tracker<SlotOf<K>>) {
        while self.held.must_release() && tracker.evict_for_memory(self) {
            self.held.update(|left| self.sink.held_bytes(left));
        }
    }

    /// Calls the sink with a flow, and mutes the flow if the sink does.
    #[inline(always)]
    fn lend(&mut self, flow: &mut Flow<'_, SlotOf<K>>, call: impl FnOnce(&mut K, &mut Flow<'_, K::State>)) {
        let view = flow.view.with_application(K::Stage::application(&flow.state.stage));
        let mut lent = Flow::new(&mut flow.state.state, view);
        call(self.sink, &mut lent);
        if lent.is_muted() {
            self.mute(flow);
        }
    }

    #[cold]
    fn mute(&mut self, flow: &mut Flow<'_, SlotOf<K>>) {
        flow.mute();
        K::Stage::mute(self.engine, &mut flow.state.stage);
    }

    /// Returns whether the sink requests a packet. The sink's interest is not cached: for most sinks it is a constant,
    /// which lets the compiler omit unused callbacks.
    #[inline(always)]
    fn wants(&self, packet: &Packet<'_>) -> bool {
        let interest = self.sink.interest();
        if K::Stage::HAS_STREAMS && packet.transport == Transport::Tcp {
            interest.contains(Interest::PACKETS)
        } else {
            interest.wants_packets()
        }
    }

    /// Panics if the sink implements a callback that its interest excludes. Only for debug builds: the callback is called
    /// to find out, and a default, which has no effect, reports itself.
    #[cfg(debug_assertions)]
    fn check_interest(&mut self, state: &mut K::State, view: FlowView<'_>) {
        let interest = self.sink.interest();
        if interest.contains(Interest::VARIES) {
            return;
        }
        let mut check = |name, is_excluded: bool, call: &mut dyn FnMut(&mut K, &mut Flow<'_, K::State>)| {
            let mut flow = Flow::new(&mut *state, view);
            if is_excluded {
                call(self.sink, &mut flow);
                assert!(
                    flow.is_ignored(),
                    "the sink implements `{name}`, but its `interest` excludes it, so that it is never called; add it to \
                     the interest, or `Interest::VARIES` if this is meant"
                );
            }
        };
        check("started", !interest.contains(Interest::STARTS), &mut |sink, flow| sink.started(flow));
        check("packet", !interest.wants_packets(), &mut |sink, flow| sink.packet(flow, &Packet::EMPTY));
        check("event", !interest.contains(Interest::EVENTS), &mut |sink, flow| {
            sink.event(flow, &FlowEvent::Anomaly(crate::tracker::Anomaly::AckedUnseen));
        });
    }

    /// Returns whether neither the stage nor the sink has a use for further packets and events of a flow.
    #[inline(always)]
    fn is_over(&self, stage: &PerFlow<K>) -> bool {
        K::Stage::is_over(stage) && {
            let interest = self.sink.interest();
            !interest.wants_packets() && !interest.contains(Interest::EVENTS)
        }
    }
}

/// What the layers below the stage require of those above them: to receive the callbacks of the tracker and the messages of
/// neighbors, and to release memory between groups of packets.
pub(super) trait Above<S>: Observer<S> {
    /// Receives a message between neighbors in a packet, if the filter permits. A message without an IP packet is described
    /// by a packet without a key.
    fn neighbor(&mut self, protocol: NeighborProtocol, packet: &Packet<'_>, filter: Option<&Filter>);

    /// Returns whether a session was charged since the last call, so that memory may be short before the group ends.
    fn take_charged(&mut self) -> bool;

    /// Releases memory of stages if memory is short.
    fn relieve(&mut self, tracker: &mut Tracker<S>);
}

impl<K: Sink + ?Sized> Above<SlotOf<K>> for StageObserver<'_, K> {
    #[cfg(feature = "protocols")]
    fn neighbor(&mut self, protocol: NeighborProtocol, packet: &Packet<'_>, filter: Option<&Filter>) {
        if !self.sink.interest().contains(Interest::NEIGHBORS) {
            return;
        }
        let neighbor = Neighbor::read(protocol, packet);
        let head = &neighbor.head;
        let is_wanted = filter.is_none_or(|filter| {
            if protocol.is_in_ip() {
                filter.matches(&Subject::new(&packet.key, packet.side).with_vlan_ids(head.vlan_ids))
            } else {
                let addresses = (head.source_address, head.destination_address);
                filter.matches_link(&LinkSubject { protocol, addresses, vlan_ids: head.vlan_ids })
            }
        });
        if is_wanted {
            self.sink.neighbor(&neighbor);
        }
    }

    #[cfg(not(feature = "protocols"))]
    fn neighbor(&mut self, _: NeighborProtocol, _: &Packet<'_>, _: Option<&Filter>) {}

    #[inline]
    fn take_charged(&mut self) -> bool {
        K::Stage::take_charged(self.engine)
    }

    #[inline]
    fn relieve(&mut self, tracker: &mut Tracker<SlotOf<K>>) {
        self.held.update(|left| self.sink.held_bytes(left));
        K::Stage::relieve(self.engine, self.sink, self.held, tracker);
        if self.held.must_release() {
            self.evict_flows(tracker);
        }
    }
}

impl<K: Sink + ?Sized> Observer<SlotOf<K>> for StageObserver<'_, K> {
    #[inline(always)]
    fn interest(&self) -> Interest {
        self.sink.interest() | K::Stage::INTEREST
    }

    fn started(&mut self, flow: &mut Flow<'_, SlotOf<K>>) {
        self.lend(flow, |sink, flow| sink.started(flow));
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, SlotOf<K>>, packet: &Packet<'_>) {
        K::Stage::before_packet(self.engine, self.sink, flow, packet);
        if !flow.is_muted() && self.wants(packet) {
            self.lend(flow, |sink, flow| sink.packet(flow, packet));
        }
        if !flow.is_muted() {
            K::Stage::packet(self.engine, self.sink, flow, packet);
        }
        if flow.is_muted() || self.is_over(&flow.state.stage) {
            self.mute(flow);
        }
    }

    fn event(&mut self, flow: &mut Flow<'_, SlotOf<K>>, event: &FlowEvent) {
        self.lend(flow, |sink, flow| sink.event(flow, event));
    }

    fn record(&mut self, flow: &mut Flow<'_, SlotOf<K>>, reason: EndReason) {
        if !flow.view.is_empty() {
            self.lend(flow, |sink, flow| sink.record(flow, reason));
        }
    }

    #[inline]
    fn is_answer(&self, packet: &Packet<'_>) -> bool {
        K::Stage::is_answer(packet)
    }

    fn ending(&mut self, flow: &mut Flow<'_, SlotOf<K>>) {
        K::Stage::finish(self.engine, self.sink, flow);
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, mut slot: SlotOf<K>) {
        let view = view.with_application(K::Stage::application(&slot.stage));
        if !view.is_empty() {
            self.sink.record(&mut Flow::new(&mut slot.state, view), reason);
        }
        #[cfg(debug_assertions)]
        self.check_interest(&mut slot.state, view);
        self.sink.ended(&view, reason, slot.state);
    }

    #[inline(always)]
    fn touch(&self, slot: &SlotOf<K>) -> u64 {
        K::Stage::touch(&slot.stage)
    }

    #[inline]
    fn next_due_ns(&self) -> u64 {
        K::Stage::next_due_ns(self.engine)
    }

    fn next_due(&mut self, now: Timestamp) -> Option<FlowId> {
        K::Stage::next_due(self.engine, now)
    }

    fn due(&mut self, flow: &mut Flow<'_, SlotOf<K>>, now: Timestamp) {
        K::Stage::due(self.engine, self.sink, flow, now);
        if flow.is_muted() {
            self.mute(flow);
        }
    }
}
