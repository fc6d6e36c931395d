//! Tracker, reassembler and session driver, wired: what flows say goes to the parsers of their protocols.

use std::ops::ControlFlow;

use super::run::{PipelineStats, drive};
use super::shards::Deal;
use super::streams::{StreamPipeline, StreamSink};
use crate::base::{EndReason, Frame, FrameBatch, IpProtocol, Side, TcpFlags, Timestamp};
use crate::extractor::{Packet, Transport};
use crate::reassembler::{GapReason, StreamEvent};
use crate::session::{
    About, Driver, DriverConfig, DriverStats, EndKind, Evidence, Protocol, Protocols, Receiver, Session,
    SessionEvent, Whose,
};
use crate::source::{Error, Source};
use crate::tracker::{Flow, FlowEvent, FlowId, FlowSink, FlowView, Interest, Tracker};

/// What a [`SessionPipeline`] keeps for a flow beside its streams: how its protocol stands, and the caller's own state.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionSlot<P: Protocols, U> {
    session: Session<P>,
    /// The caller's own state of the flow.
    pub user: U,
}

impl<P: Protocols, U: Default> Default for SessionSlot<P, U> {
    fn default() -> Self {
        Self { session: Session::default(), user: U::default() }
    }
}

/// Receives what happens to flows, and what is said in them.
///
/// [`Flow::mute`] in any callback ends all calls for the flow but `ended`, and frees what its session holds.
pub trait SessionSink<P: Protocols, U>: FlowSink<U> {
    /// A message. What it borrows is gone after the call. Of the packet at hand it comes after [`FlowSink::packet`]; messages of
    /// a flow that ends come before [`FlowSink::ended`].
    fn message(&mut self, flow: &mut Flow<'_, U>, about: &About, message: P::Message<'_>);

    /// A protocol was recognised, or a parser gave up. A protocol that only its port tells is named when the flow ends.
    fn session(&mut self, flow: &mut Flow<'_, U>, event: &SessionEvent) {
        let _ = (flow, event);
    }
}

/// A pipeline whose flows have sessions; made by [`StreamPipeline::with_sessions`].
#[derive(Debug)]
pub struct SessionPipeline<P: Protocols, U> {
    pub(super) streams: StreamPipeline<SessionSlot<P, U>>,
    driver: Driver<P>,
}

impl<P: Protocols, U: Default> StreamPipeline<SessionSlot<P, U>> {
    /// The same with sessions: messages for a [`SessionSink`].
    ///
    /// Limits and budget are those of `config`; give it the tracker's budget for one account of all memory.
    #[must_use]
    pub fn with_sessions(self, config: &DriverConfig) -> SessionPipeline<P, U> {
        SessionPipeline { streams: self, driver: Driver::new(config) }
    }
}

impl<P: Protocols, U: Default> SessionPipeline<P, U> {
    /// The tracker, to look at.
    #[must_use]
    pub const fn tracker(&self) -> &Tracker<super::Slot<SessionSlot<P, U>>> {
        self.streams.tracker()
    }

    /// What went through so far. Copies the counts by reason.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        PipelineStats { sessions: self.driver.stats(), ..self.streams.stats() }
    }

    /// What the driver counted.
    #[must_use]
    pub fn session_stats(&self) -> DriverStats {
        self.driver.stats()
    }

    /// Takes all frames of a source, then ends the flows; see [`Pipeline::run`](super::Pipeline::run).
    ///
    /// # Errors
    ///
    /// What the source gives; the flows so far are ended before it is returned.
    pub fn run<K: SessionSink<P, U> + ?Sized>(
        &mut self,
        source: &mut (impl Source + ?Sized),
        sink: &mut K,
    ) -> Result<(), Error> {
        let outcome = drive(source, |batch| {
            self.batch(batch, sink);
            sink.wants_more()
        });
        self.finish(sink);
        outcome
    }

    /// Takes the frames of a batch.
    pub fn batch<K: SessionSink<P, U> + ?Sized>(&mut self, batch: &FrameBatch, sink: &mut K) {
        self.streams.batch(batch, &mut Adapter::new(&mut self.driver, sink));
    }

    /// Takes the frames of a batch that are dealt to this shard.
    pub(super) fn dealt<K: SessionSink<P, U> + ?Sized>(
        &mut self,
        batch: &FrameBatch,
        deal: &Deal,
        shard: usize,
        sink: &mut K,
    ) {
        self.streams.dealt(batch, deal, shard, &mut Adapter::new(&mut self.driver, sink));
    }

    /// Takes one frame.
    pub fn frame<K: SessionSink<P, U> + ?Sized>(&mut self, frame: &Frame<'_>, sink: &mut K) {
        self.streams.frame(frame, &mut Adapter::new(&mut self.driver, sink));
    }

    /// Ends datagrams, flows and holes that are due at a time, for live capture when no packets come.
    pub fn advance<K: SessionSink<P, U> + ?Sized>(&mut self, now: Timestamp, sink: &mut K) {
        self.streams.advance(now, &mut Adapter::new(&mut self.driver, sink));
    }

    /// Ends all sessions, streams and flows; see [`Tracker::finish`].
    pub fn finish<K: SessionSink<P, U> + ?Sized>(&mut self, sink: &mut K) {
        self.streams.finish(&mut Adapter::new(&mut self.driver, sink));
    }

    /// Panics unless each layer agrees with its own account, and all that sessions hold belongs to open flows. For tests and
    /// fuzzers; takes time linear in what is held.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.streams.check_invariants();
        let held_bytes: u64 = self.tracker().iter().map(|(_, slot)| slot.user.session.held_bytes()).sum();
        assert_eq!(held_bytes, self.driver.stats().held_bytes, "what sessions hold belongs to open flows");
    }

    /// Ends a flow, its streams and its session at once. Whether it was open.
    pub fn remove<K: SessionSink<P, U> + ?Sized>(&mut self, id: FlowId, sink: &mut K) -> bool {
        self.streams.remove(id, &mut Adapter::new(&mut self.driver, sink))
    }

    /// The protocol of an open flow, if it is known by now.
    #[must_use]
    pub fn application(&self, id: FlowId) -> Option<(&'static Protocol, Evidence)> {
        let (_, slot) = self.tracker().get(id)?;
        slot.user.session.application()
    }
}

/// Stands between the streams and the caller's sink.
struct Adapter<'a, P: Protocols, K: ?Sized> {
    driver: &'a mut Driver<P>,
    sink: &'a mut K,
    has_packets: bool,
}

impl<'a, P: Protocols, K: ?Sized> Adapter<'a, P, K> {
    fn new<U>(driver: &'a mut Driver<P>, sink: &'a mut K) -> Self
    where
        K: FlowSink<U>,
    {
        let has_packets = sink.interest().contains(Interest::PACKETS);
        Self { driver, sink, has_packets }
    }

    /// Lends a flow to the caller's sink.
    #[inline]
    fn lend<U>(
        &mut self,
        flow: &mut Flow<'_, SessionSlot<P, U>>,
        call: impl FnOnce(&mut K, &mut Flow<'_, U>),
    ) {
        let mut lent = Flow::new(&mut flow.state.user, flow.view);
        call(self.sink, &mut lent);
        if lent.is_muted() {
            self.mute(flow);
        }
    }

    #[cold]
    fn mute<U>(&mut self, flow: &mut Flow<'_, SessionSlot<P, U>>) {
        flow.mute();
        self.driver.close(&mut flow.state.session);
    }
}

impl<P: Protocols, U, K: SessionSink<P, U> + ?Sized> FlowSink<SessionSlot<P, U>> for Adapter<'_, P, K> {
    fn interest(&self) -> Interest {
        self.sink.interest() | Interest::DATAGRAMS
    }

    fn started(&mut self, flow: &mut Flow<'_, SessionSlot<P, U>>) {
        self.lend(flow, |sink, flow| sink.started(flow));
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, SessionSlot<P, U>>, packet: &Packet<'_>) {
        if self.has_packets {
            self.lend(flow, |sink, flow| sink.packet(flow, packet));
            if flow.is_muted() {
                return;
            }
        }
        if matches!(packet.transport, Transport::Tcp | Transport::Icmp) {
            return;
        }
        let SessionSlot { session, user } = &mut *flow.state;
        if session.is_off() {
            return;
        }
        let mut hearing = Hearing { sink: self.sink, flow: Flow::new(user, flow.view) };
        let whose = Whose::new(&packet.key, flow.view.initiator(), packet.timestamp);
        let payload = (packet.payload(), packet.payload_len as usize);
        self.driver.datagram(session, &whose, packet.side, payload, &mut hearing);
        if hearing.flow.is_muted() {
            self.mute(flow);
        }
    }

    fn event(&mut self, flow: &mut Flow<'_, SessionSlot<P, U>>, event: &FlowEvent) {
        self.lend(flow, |sink, flow| sink.event(flow, event));
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, slot: SessionSlot<P, U>) {
        let SessionSlot { mut session, mut user } = slot;
        let mut hearing = Hearing { sink: &mut *self.sink, flow: Flow::new(&mut user, *view) };
        let whose = Whose::new(view.key(), view.initiator(), view.end());
        let is_reset = view.key().protocol() == IpProtocol::TCP
            && [Side::A, Side::B].iter().any(|side| view.tcp_flags(*side).contains(TcpFlags::RST));
        let kind = if is_reset { EndKind::Reset } else { EndKind::Flow };
        self.driver.finish(&mut session, &whose, kind, &mut hearing);
        self.sink.ended(view, reason, user);
    }

    fn wants_more(&self) -> bool {
        self.sink.wants_more()
    }
}

impl<P: Protocols, U, K: SessionSink<P, U> + ?Sized> StreamSink<SessionSlot<P, U>> for Adapter<'_, P, K> {
    #[inline]
    fn stream(
        &mut self,
        flow: &mut Flow<'_, SessionSlot<P, U>>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let SessionSlot { session, user } = &mut *flow.state;
        if session.is_off() {
            return ControlFlow::Break(());
        }
        let view = flow.view;
        let mut hearing = Hearing { sink: &mut *self.sink, flow: Flow::new(user, view) };
        let is_picked_up = !is_from_start(&view, side);
        let whose = Whose::new(view.key(), view.initiator(), captured(event, &view)).picked_up(is_picked_up);
        let wants = match event {
            StreamEvent::Chunk(chunk) => self.driver.chunk(session, &whose, side, chunk, &mut hearing),
            StreamEvent::Gap(gap) => self.driver.gap(session, &whose, side, gap, &mut hearing),
            StreamEvent::Fin { .. } => {
                self.driver.fin(session, &whose, side, &mut hearing);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        };
        if hearing.flow.is_muted() {
            self.mute(flow);
        }
        wants
    }
}

/// Whether a side's stream is known from its beginning: by its own SYN, or by the SYN-ACK that acknowledges it.
#[inline]
fn is_from_start(view: &FlowView<'_>, side: Side) -> bool {
    let has_syn = |side| view.tcp_flags(side).contains(TcpFlags::SYN);
    has_syn(side) || (side == view.initiator() && has_syn(side.other()))
}

/// Returns the capture time of an event, or the time at which it was due. A gap at the end of a flow has the time of the
/// flow's last packet.
fn captured(event: &StreamEvent<'_>, view: &FlowView<'_>) -> Timestamp {
    match event {
        StreamEvent::Chunk(chunk) => chunk.timestamp,
        StreamEvent::Gap(gap) if gap.reason != GapReason::End => gap.timestamp,
        StreamEvent::Fin { timestamp, .. } => *timestamp,
        _ => view.end(),
    }
}

/// Hands what the driver says of one flow to the caller's sink, until the flow is muted.
struct Hearing<'a, 't, U, K: ?Sized> {
    sink: &'a mut K,
    flow: Flow<'t, U>,
}

impl<P: Protocols, U, K: SessionSink<P, U> + ?Sized> Receiver<P> for Hearing<'_, '_, U, K> {
    fn message(&mut self, about: &About, message: P::Message<'_>) {
        if !self.flow.is_muted() {
            self.sink.message(&mut self.flow, about, message);
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        if !self.flow.is_muted() {
            self.sink.session(&mut self.flow, event);
        }
    }
}
