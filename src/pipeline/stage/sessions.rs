//! The stage of sinks that process messages of application protocols.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use super::super::config::Config;
use super::super::held::Held;
use super::super::sink::{NotInStage, Sink, Slot, SlotOf, Stage, sealed};
use super::super::stats::PipelineStats;
use super::segments::{self, Consumer, Pair};
use crate::base::{Application, ConfigError, Evidence, IpProtocol, Resources, Side, TcpFlags, Timestamp};
use crate::base::{Packet, Transport};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::reassembler::{GapReason, StreamEvent};
use crate::session::{
    Driver, EndKind, FlowContext, MessageMeta, Payload, Protocols, Receiver, Session, SessionEvent,
    may_answer,
};
use crate::tracker::{CallbackChanges, Flow, FlowId, FlowView, Interest, Tracker};

/// The stage of sinks that process messages of application protocols: the messages of the parsers `P` are delivered to
/// [`Sink::message`], and [`FlowView::application`] names the protocol of a flow. Takes 96 bytes per flow.
///
/// `protocols::Standard` is the set of built-in parsers (feature `protocols`);
/// [`protocols!`](crate::protocols!) defines a custom set.
#[derive(Clone, Copy, Debug)]
pub struct Sessions<P>(PhantomData<fn() -> P>);

impl<P: Protocols> Stage for Sessions<P> {
    type Message<'m> = P::Message<'m>;
    type StreamEvent<'e> = NotInStage;
    type SessionEvent = SessionEvent;
}

/// State of a flow in the stage [`Sessions`]: the flow's TCP streams and its session.
#[derive(Debug)]
pub struct SessionState<P: Protocols> {
    pair: Pair,
    session: Session<P>,
}

impl<P: Protocols> Default for SessionState<P> {
    fn default() -> Self {
        Self { pair: Pair::default(), session: Session::default() }
    }
}

/// State of the stage [`Sessions`] for all flows: the reassembler and the session driver.
#[derive(Debug)]
pub struct SessionEngine<P: Protocols> {
    streams: segments::Streams,
    driver: Driver<P>,
}

/// Delivers the messages of one flow to the sink, until the flow is muted.
struct Messages<'a, 't, K: Sink + ?Sized> {
    sink: &'a mut K,
    flow: Flow<'t, K::State>,
}

impl<'a, 't, P: Protocols, K: Sink<Stage = Sessions<P>> + ?Sized> Messages<'a, 't, K> {
    #[inline]
    fn new(sink: &'a mut K, state: &'t mut K::State, view: FlowView<'t>, session: &Session<P>) -> Self {
        Self { sink, flow: Flow::new(state, view.with_application(application(session))) }
    }
}

impl<P: Protocols, K: Sink<Stage = Sessions<P>> + ?Sized> Receiver<P> for Messages<'_, '_, K> {
    fn message(&mut self, meta: &MessageMeta, message: P::Message<'_>) {
        if !self.flow.is_muted() {
            self.sink.message(&mut self.flow, meta, &message);
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        if self.flow.view.application().is_none() {
            self.flow.view = self.flow.view.with_application(event.application());
        }
        if !self.flow.is_muted() {
            self.sink.session(&mut self.flow, event);
        }
    }

    fn learned(&mut self, client: Side, evidence: Evidence) {
        self.flow.learn(client, evidence);
    }
}

/// Passes the streams or datagrams of one flow to the parser of its session.
struct Conversation<'a, 't, P: Protocols, K: Sink + ?Sized> {
    driver: &'a mut Driver<P>,
    session: &'a mut Session<P>,
    sink: &'a mut K,
    state: &'a mut K::State,
    view: FlowView<'t>,
    changes: CallbackChanges,
}

impl<P: Protocols, K: Sink<Stage = Sessions<P>> + ?Sized> Conversation<'_, '_, P, K> {
    /// Records what a call of the driver changed about the flow.
    #[inline]
    fn note(&mut self, changes: CallbackChanges) {
        if changes.is_some() {
            self.changes = self.changes.and(changes);
            self.view = self.view.after(changes);
        }
    }

    /// Passes the payload of a datagram to the parser.
    fn datagram(&mut self, packet: &Packet<'_>) {
        if self.session.ignores(|| packet.payload()) {
            return;
        }
        let mut messages = Messages::new(&mut *self.sink, &mut *self.state, self.view, self.session);
        let context =
            FlowContext::new(&packet.key, self.view.initiator(), packet.timestamp).of_flow(self.view.id());
        let payload = Payload { bytes: packet.payload(), len: packet.payload_len as usize };
        self.driver.datagram(self.session, &context, packet.side, payload, &mut messages);
        let changes = messages.flow.changes();
        self.note(changes);
    }

    /// Closes the session of the flow because memory is short.
    fn evict(&mut self) {
        let mut messages = Messages::new(&mut *self.sink, &mut *self.state, self.view, self.session);
        let view = &self.view;
        let context = context(view, view.end());
        self.driver.evict(self.session, &context, &mut messages);
        let changes = messages.flow.changes();
        self.note(changes);
    }

    /// Reads the session from a checkpoint.
    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let mut messages = Messages::new(&mut *self.sink, &mut *self.state, self.view, self.session);
        let view = &self.view;
        let context = context(view, view.end()).of_flow(view.id());
        self.driver.load(reader, self.session, &context, &mut messages)?;
        let changes = messages.flow.changes();
        self.note(changes);
        if self.is_muted() {
            self.driver.close(self.session);
        }
        Ok(())
    }

    /// Ends the session because its flow ends.
    fn finish(&mut self) {
        if self.session.is_off() {
            return;
        }
        let mut messages = Messages::new(&mut *self.sink, &mut *self.state, self.view, self.session);
        let view = &self.view;
        let context = context(view, view.end());
        let is_reset = view.key().protocol() == IpProtocol::TCP
            && [Side::A, Side::B].iter().any(|side| view.tcp_flags(*side).contains(TcpFlags::RST));
        let kind = if is_reset { EndKind::Reset } else { EndKind::Flow };
        self.driver.finish(self.session, &context, kind, &mut messages);
        let changes = messages.flow.changes();
        self.note(changes);
    }
}

impl<P: Protocols, K: Sink<Stage = Sessions<P>> + ?Sized> Consumer for Conversation<'_, '_, P, K> {
    #[inline]
    fn take(&mut self, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        if self.session.is_off() {
            return ControlFlow::Break(());
        }
        let view = &self.view;
        let mut messages = Messages::new(&mut *self.sink, &mut *self.state, *view, self.session);
        let is_picked_up = !is_from_start(view, side);
        let context = context(view, captured(event, view)).of_flow(view.id()).picked_up(is_picked_up);
        let wants = match event {
            StreamEvent::Chunk(chunk) => {
                self.driver.chunk(self.session, &context, side, chunk, &mut messages)
            }
            StreamEvent::Gap(gap) => self.driver.gap(self.session, &context, side, gap, &mut messages),
            StreamEvent::Fin { .. } => {
                self.driver.fin(self.session, &context, side, &mut messages);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        };
        let changes = messages.flow.changes();
        if changes.is_some() {
            self.note(changes);
            if self.is_muted() {
                self.driver.close(self.session);
            }
        }
        wants
    }

    #[inline]
    fn is_muted(&self) -> bool {
        self.changes.is_muted()
    }

    /// Names need no order of both directions.
    fn may_answer(&self, packet: &Packet<'_>) -> bool {
        !self.driver.is_naming_only() && may_answer::<P>(packet)
    }
}

impl<P: Protocols> Sessions<P> {
    /// Ends the first hole of a TCP stream because memory is short. A separate function, so that the test for short
    /// memory is inlined.
    #[cold]
    #[inline(never)]
    fn skip<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut SessionEngine<P>,
        sink: &mut K,
        tracker: &mut Tracker<SlotOf<K>>,
        name: (FlowId, Side),
    ) {
        // A flow that ends finishes its streams, so no stream is due without its flow.
        let Some((view, slot)) = tracker.get_mut(name.0) else { return };
        let (streams, pair, mut conversation) = Self::parts(engine, sink, slot, view);
        segments::skip(streams, pair, name, &mut conversation);
        let changes = conversation.changes;
        if changes.is_muted() {
            <Self as sealed::Stage>::mute(engine, &mut slot.stage);
        }
        tracker.apply_to(name.0, changes);
    }

    /// Splits the slot of a flow into its TCP streams and the consumer of their events.
    #[inline(always)]
    fn parts<'a, 't, K: Sink<Stage = Self> + ?Sized>(
        engine: &'a mut SessionEngine<P>,
        sink: &'a mut K,
        slot: &'a mut SlotOf<K>,
        view: FlowView<'t>,
    ) -> (&'a mut segments::Streams, &'a mut Pair, Conversation<'a, 't, P, K>) {
        let SessionEngine { streams, driver } = engine;
        let Slot { stage: SessionState { pair, session }, state } = slot;
        (
            streams,
            pair,
            Conversation { driver, session, sink, state, view, changes: CallbackChanges::default() },
        )
    }
}

impl<P: Protocols> sealed::Stage for Sessions<P> {
    type PerFlow = SessionState<P>;
    type Engine = SessionEngine<P>;
    const INTEREST: Interest = Interest::PACKETS;
    const HAS_STREAMS: bool = true;
    const HAS_SESSIONS: bool = true;
    const NAME: &'static str = "sessions";

    fn engine(config: &Config, resources: &Resources) -> Result<Self::Engine, ConfigError> {
        let streams = segments::Streams::new(config.streams.clone().unwrap_or_default(), resources)?;
        Ok(SessionEngine { streams, driver: Driver::new(config.sessions.unwrap_or_default(), resources) })
    }

    #[inline]
    fn application(slot: &SessionState<P>) -> Option<&'static Application> {
        application(&slot.session)
    }

    /// The session of the flow learns the direction from more than the first packet.
    #[inline(always)]
    fn is_answer(_: &Packet<'_>) -> bool {
        false
    }

    #[inline(always)]
    fn touch(slot: &SessionState<P>) -> u64 {
        segments::touch(&slot.pair) ^ u64::from(slot.session.is_off())
    }

    #[inline]
    fn before_packet<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        packet: &Packet<'_>,
    ) {
        if segments::may_have_due_holes(&flow.state.stage.pair, packet) {
            Self::due(engine, sink, flow, flow.view.clock());
        }
    }

    #[inline]
    fn packet<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        packet: &Packet<'_>,
    ) {
        let view = flow.view;
        let (streams, pair, mut conversation) = Self::parts(engine, sink, flow.state, view);
        match packet.transport {
            Transport::Tcp => segments::segment(streams, pair, &view, packet, &mut conversation),
            Transport::Icmp => {}
            _ => conversation.datagram(packet),
        }
        let changes = conversation.changes;
        if changes.is_some() {
            flow.take_changes(changes);
        }
    }

    #[inline(always)]
    fn is_over(slot: &SessionState<P>) -> bool {
        slot.session.is_off()
    }

    fn mute(engine: &mut Self::Engine, slot: &mut SessionState<P>) {
        segments::stop(&mut engine.streams, &mut slot.pair);
        engine.driver.close(&mut slot.session);
    }

    fn finish<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
    ) {
        let view = flow.view;
        let (streams, pair, mut conversation) = Self::parts(engine, sink, flow.state, view);
        segments::finish(streams, pair, &view, &mut conversation);
        conversation.finish();
        let changes = conversation.changes;
        flow.take_changes(changes);
    }

    #[inline]
    fn next_due_ns(engine: &Self::Engine) -> u64 {
        engine.streams.next_due_ns()
    }

    fn next_due(engine: &mut Self::Engine, now: Timestamp) -> Option<FlowId> {
        engine.streams.next_overdue(now).map(|(id, _)| id)
    }

    fn due<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        now: Timestamp,
    ) {
        let view = flow.view;
        let (streams, pair, mut conversation) = Self::parts(engine, sink, flow.state, view);
        segments::end_due_holes(streams, pair, view.id(), now, &mut conversation);
        let changes = conversation.changes;
        if changes.is_some() {
            flow.take_changes(changes);
        }
    }

    #[inline(always)]
    fn take_charged(engine: &mut Self::Engine) -> bool {
        engine.driver.take_charged()
    }

    #[inline(always)]
    fn relieve<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut Self::Engine,
        sink: &mut K,
        held: &mut Held,
        tracker: &mut Tracker<SlotOf<K>>,
    ) {
        while let Some(name) = engine.streams.next_pressed() {
            Self::skip(engine, sink, tracker, name);
        }
        while let Some(id) = engine.driver.next_evicted() {
            // A flow that ends closes its session, so no session is evicted without its flow.
            let Some((view, slot)) = tracker.get_mut(id) else { continue };
            let (_, _, mut conversation) = Self::parts(engine, &mut *sink, slot, view);
            conversation.evict();
            let changes = conversation.changes;
            if changes.is_muted() {
                Self::mute(engine, &mut slot.stage);
            }
            tracker.apply_to(id, changes);
            held.update(|left| sink.held_bytes(left));
        }
    }

    fn save_engine(engine: &Self::Engine, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        engine.driver.save_all(out)
    }

    fn load_engine(engine: &mut Self::Engine, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        engine.driver.load_all(reader)
    }

    fn save(
        engine: &Self::Engine,
        state: &SessionState<P>,
        out: &mut StateWriter<'_>,
    ) -> Result<(), Invalid> {
        // The session first: its octets were sent before the gaps of its streams.
        engine.driver.save(&state.session, out)?;
        segments::save(&engine.streams, &state.pair, out)
    }

    fn load<K: Sink<Stage = Self> + ?Sized>(
        engine: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        reader: &mut Reader<'_>,
    ) -> Result<(), Invalid> {
        let view = flow.view;
        let (streams, pair, mut conversation) = Self::parts(engine, sink, flow.state, view);
        conversation.load(reader)?;
        segments::load(reader, streams, pair, &view, &mut conversation)?;
        let changes = conversation.changes;
        if changes.is_some() {
            flow.take_changes(changes);
        }
        Ok(())
    }

    fn count(engine: &Self::Engine, stats: &mut PipelineStats) {
        stats.streams = engine.streams.stats();
        stats.sessions = engine.driver.stats();
    }

    fn held_stream_count(engine: &Self::Engine) -> usize {
        engine.streams.held_stream_count()
    }

    fn check_invariants<'f>(engine: &Self::Engine, flows: impl Iterator<Item = &'f SessionState<P>>) {
        let (mut held_bytes, mut listed_count) = (0, 0);
        let pairs = flows.map(|slot| {
            let session_bytes = slot.session.held_bytes();
            assert!(
                session_bytes == 0 || slot.session.is_listed(),
                "a session that holds memory can be evicted"
            );
            held_bytes += session_bytes;
            listed_count += usize::from(slot.session.is_listed());
            &slot.pair
        });
        segments::check_invariants(&engine.streams, pairs);
        assert_eq!(held_bytes, engine.driver.stats().held_bytes, "what sessions hold belongs to open flows");
        assert_eq!(listed_count, engine.driver.check_invariants(), "listed sessions belong to open flows");
    }
}

/// Returns the context of the octets of a flow with this capture time.
#[inline]
fn context<'v>(view: &'v FlowView<'_>, timestamp: Timestamp) -> FlowContext<'v> {
    FlowContext::new(view.key(), view.initiator(), timestamp).with_bits(view.bits())
}

#[inline]
fn application<P: Protocols>(session: &Session<P>) -> Option<&'static Application> {
    session.application().map(|(protocol, evidence)| protocol.application(evidence))
}

/// Returns whether the start of the TCP stream that a side sent is known: by the side's own SYN, or by the SYN-ACK that
/// acknowledges it.
#[inline]
fn is_from_start(view: &FlowView<'_>, side: Side) -> bool {
    let has_syn = |side| view.tcp_flags(side).contains(TcpFlags::SYN);
    has_syn(side) || (side == view.initiator() && has_syn(side.other()))
}

/// Returns the capture time of a stream event, or the time at which it was due. For a gap at the end of a flow, returns
/// the time of the flow's last packet.
fn captured(event: &StreamEvent<'_>, view: &FlowView<'_>) -> Timestamp {
    match event {
        StreamEvent::Chunk(chunk) => chunk.timestamp,
        StreamEvent::Gap(gap) if gap.reason != GapReason::EndOfStream => gap.timestamp,
        StreamEvent::Fin { timestamp, .. } => *timestamp,
        _ => view.end(),
    }
}
