//! Tracker and reassembler, wired: each segment of a flow goes to the streams in the flow's own slot.

use std::ops::ControlFlow;

use super::ConfigError;
use super::run::{Pipeline, PipelineStats, drive};
use super::shards::Deal;
use crate::base::{EndReason, Frame, FrameBatch, IpProtocol, Side, Timestamp};
use crate::extractor::{Packet, Transport};
use crate::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};
use crate::source::{Error, Source};
use crate::tracker::{Flow, FlowEvent, FlowId, FlowSink, FlowView, Interest, Tracker};

/// What a [`StreamPipeline`] keeps for a flow: where both directions stand, 32 octets each, and the caller's own state.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Slot<U> {
    streams: [Stream; 2],
    /// The caller's own state of the flow.
    pub user: U,
}

/// Receives what happens to flows, and the bytes of their TCP streams.
///
/// [`Flow::mute`] in any callback ends all calls for the flow but `ended`, and frees what its streams hold.
pub trait StreamSink<U>: FlowSink<U> {
    /// Something of what `side` sent, in the order of the stream; of the packet at hand it comes after
    /// [`FlowSink::packet`]. What is left of a stream when its flow ends comes before [`FlowSink::ended`].
    ///
    /// [`ControlFlow::Break`] means: no more of this direction. What it holds is freed, and its later segments cost a test.
    /// [`FirstOctets`](super::FirstOctets) does so after a number of octets.
    fn stream(&mut self, flow: &mut Flow<'_, U>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()>;
}

type Name = (FlowId, Side);

/// A pipeline whose flows have streams; made by [`Pipeline::with_streams`].
#[derive(Debug)]
pub struct StreamPipeline<U> {
    pub(super) pipeline: Pipeline<Slot<U>>,
    reassembler: Reassembler<Name>,
}

impl<U: Default> Pipeline<Slot<U>> {
    /// The same with streams: bytes in order for a [`StreamSink`].
    ///
    /// Limits and budget are those of `config`; give it the tracker's budget for one account of all memory.
    ///
    /// # Errors
    ///
    /// As [`Reassembler::new`].
    pub fn with_streams(self, config: ReassemblerConfig) -> Result<StreamPipeline<U>, ConfigError> {
        Ok(StreamPipeline { pipeline: self, reassembler: Reassembler::new(config)? })
    }
}

impl<U: Default> StreamPipeline<U> {
    /// The tracker, to look at.
    #[must_use]
    pub const fn tracker(&self) -> &Tracker<Slot<U>> {
        self.pipeline.tracker()
    }

    /// The reassembler, to look at.
    #[must_use]
    pub const fn reassembler(&self) -> &Reassembler<(FlowId, Side)> {
        &self.reassembler
    }

    /// What went through so far. Copies the counts by reason.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        PipelineStats { streams: self.reassembler.stats(), ..self.pipeline.stats() }
    }

    /// Takes all frames of a source, then ends the flows; see [`Pipeline::run`].
    ///
    /// # Errors
    ///
    /// What the source gives; the flows so far are ended before it is returned.
    pub fn run<K: StreamSink<U> + ?Sized>(
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
    pub fn batch<K: StreamSink<U> + ?Sized>(&mut self, batch: &FrameBatch, sink: &mut K) {
        self.pipeline.batch(batch, &mut Adapter::new(&mut self.reassembler, sink));
        self.relieve(sink);
    }

    /// Takes the frames of a batch that are dealt to this shard.
    pub(super) fn dealt<K: StreamSink<U> + ?Sized>(
        &mut self,
        batch: &FrameBatch,
        deal: &Deal,
        shard: usize,
        sink: &mut K,
    ) {
        self.pipeline.dealt(batch, deal, shard, &mut Adapter::new(&mut self.reassembler, sink));
        self.relieve(sink);
    }

    /// Takes one frame.
    pub fn frame<K: StreamSink<U> + ?Sized>(&mut self, frame: &Frame<'_>, sink: &mut K) {
        self.pipeline.frame(frame, &mut Adapter::new(&mut self.reassembler, sink));
        self.relieve(sink);
    }

    /// Ends datagrams, flows and holes that are due at a time, for live capture when no packets come.
    pub fn advance<K: StreamSink<U> + ?Sized>(&mut self, now: Timestamp, sink: &mut K) {
        self.pipeline.advance(now, &mut Adapter::new(&mut self.reassembler, sink));
        self.relieve(sink);
    }

    /// Ends all datagrams, streams and flows; see [`Tracker::finish`].
    pub fn finish<K: StreamSink<U> + ?Sized>(&mut self, sink: &mut K) {
        self.pipeline.finish(&mut Adapter::new(&mut self.reassembler, sink));
    }

    /// Panics unless each layer agrees with its own account, and all that waits behind holes belongs to a stream of an open flow.
    /// For tests and fuzzers; takes time linear in what is held.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.pipeline.check_invariants();
        self.reassembler.check_invariants();
        let streams = self.tracker().iter().flat_map(|(_, slot)| &slot.streams);
        let held_count = streams.filter(|stream| stream.is_held()).count();
        // What was kept only for comparison may have been taken back from a stream that still claims it.
        assert!(self.reassembler.held_stream_count() <= held_count, "what is held belongs to open flows");
    }

    /// Ends a flow and its streams at once. Whether it was open.
    pub fn remove<K: StreamSink<U> + ?Sized>(&mut self, id: FlowId, sink: &mut K) -> bool {
        self.pipeline.tracker_mut().remove(id, &mut Adapter::new(&mut self.reassembler, sink))
    }

    /// Gives up holes while memory is short, and returns spare memory. Holes that are due end between packets, when the tracker
    /// calls for them, so that batches of any size end them in the same order.
    #[inline]
    fn relieve<K: StreamSink<U> + ?Sized>(&mut self, sink: &mut K) {
        while let Some((id, side)) = self.reassembler.next_pressed() {
            let tracker = self.pipeline.tracker_mut();
            // A flow that ends finishes its streams, so that none is due without its flow.
            let Some((view, slot)) = tracker.get_mut(id) else { continue };
            let [a, b] = &mut slot.streams;
            let (own, other) = if side == Side::A { (a, b) } else { (b, a) };
            let mut out = Delivery::new(sink, &mut slot.user, &view, side);
            self.reassembler.skip(own, (id, side), |event| out.take(&event));
            let (is_stopped, is_muted) = (out.is_stopped, out.is_muted);
            if is_stopped {
                self.reassembler.stop(own);
            }
            if is_muted {
                self.reassembler.stop(other);
                tracker.mute(id);
            }
        }
    }
}

/// Stands between the tracker and the caller's sink.
struct Adapter<'a, K: ?Sized> {
    reassembler: &'a mut Reassembler<Name>,
    sink: &'a mut K,
    has_packets: bool,
    has_datagrams: bool,
}

/// The streams of both sides, A first.
type Pair = [Stream; 2];

impl<'a, K: ?Sized> Adapter<'a, K> {
    fn new<U>(reassembler: &'a mut Reassembler<Name>, sink: &'a mut K) -> Self
    where
        K: FlowSink<U>,
    {
        let interest = sink.interest();
        let has_packets = interest.contains(Interest::PACKETS);
        Self { reassembler, sink, has_packets, has_datagrams: interest.wants_packets() }
    }

    /// Lends a flow to the caller's sink.
    #[inline]
    fn lend<U>(&mut self, flow: &mut Flow<'_, Slot<U>>, call: impl FnOnce(&mut K, &mut Flow<'_, U>)) {
        let mut lent = Flow::new(&mut flow.state.user, flow.view);
        call(self.sink, &mut lent);
        if lent.is_muted() {
            self.mute(flow);
        }
    }

    #[cold]
    fn mute<U>(&mut self, flow: &mut Flow<'_, Slot<U>>) {
        flow.mute();
        flow.state.streams.iter_mut().for_each(|stream| self.reassembler.stop(stream));
    }

    /// Ends the holes of both directions that are due at a time, in the order in which they were due. Returns whether the flow was
    /// muted.
    #[cold]
    #[inline(never)]
    fn end_due_holes<U>(&mut self, view: &FlowView<'_>, slot: &mut Slot<U>, now: Timestamp) -> bool
    where
        K: StreamSink<U>,
    {
        let Slot { streams, user } = slot;
        let mut is_muted = false;
        // When nothing is due any more, a stream that was named by the reassembler is put back to where it waits.
        let mut rest = [Side::A, Side::B].into_iter().map(|side| (now, side));
        loop {
            let due = first_due(self.reassembler, streams).filter(|(due, _)| *due <= now);
            let Some((until, side)) = due.or_else(|| rest.next()) else { return is_muted };
            let [a, b] = &mut *streams;
            let stream = if side == Side::A { a } else { b };
            let mut out = Delivery::new(self.sink, user, view, side);
            self.reassembler.pass(stream, (view.id(), side), until, |event| out.take(&event));
            is_muted |= out.is_muted;
            if out.is_stopped {
                self.reassembler.stop(stream);
            }
            if is_muted {
                streams.iter_mut().for_each(|stream| self.reassembler.stop(stream));
            }
        }
    }
}

/// Returns the direction whose first hole ends by itself earlier than that of the other, and that time.
fn first_due(reassembler: &Reassembler<Name>, streams: &Pair) -> Option<(Timestamp, Side)> {
    let [a, b] = streams.each_ref().map(|stream| reassembler.due(stream));
    let [a, b] = [a.map(|due| (due, Side::A)), b.map(|due| (due, Side::B))];
    a.into_iter().chain(b).min_by_key(|(due, _)| *due)
}

impl<U, K: StreamSink<U> + ?Sized> FlowSink<Slot<U>> for Adapter<'_, K> {
    fn interest(&self) -> Interest {
        self.sink.interest() | Interest::PACKETS
    }

    fn started(&mut self, flow: &mut Flow<'_, Slot<U>>) {
        self.lend(flow, |sink, flow| sink.started(flow));
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, Slot<U>>, packet: &Packet<'_>) {
        let is_segment = packet.transport == Transport::Tcp;
        if is_segment
            && flow.state.streams.iter().any(Stream::is_held)
            && self.end_due_holes(&flow.view, &mut *flow.state, flow.view.clock())
        {
            return flow.mute();
        }
        let is_wanted = if is_segment { self.has_packets } else { self.has_datagrams };
        if is_wanted {
            self.lend(flow, |sink, flow| sink.packet(flow, packet));
            if flow.is_muted() {
                return;
            }
        }
        let Some(segment) = Segment::of(packet) else { return };
        let Slot { streams: [a, b], user } = &mut *flow.state;
        let side = packet.side;
        let (own, other) = if side == Side::A { (a, b) } else { (b, a) };
        let id = flow.view.id();
        self.reassembler.advance_clock(flow.view.clock());
        // What the acknowledgment brings was sent before this segment.
        let mut out = Delivery::new(self.sink, user, &flow.view, side.other());
        self.reassembler.acknowledgment(other, (id, out.side), &segment, |event| out.take(&event));
        let mut is_muted = out.is_muted;
        if out.is_stopped {
            self.reassembler.stop(other);
        }
        if !is_muted {
            let mut out = Delivery::new(self.sink, user, &flow.view, side);
            self.reassembler.segment(own, (id, side), &segment, |event| out.take(&event));
            is_muted = out.is_muted;
            if out.is_stopped {
                self.reassembler.stop(own);
            }
        }
        if is_muted {
            self.mute(flow);
        }
    }

    fn event(&mut self, flow: &mut Flow<'_, Slot<U>>, event: &FlowEvent) {
        self.lend(flow, |sink, flow| sink.event(flow, event));
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, mut slot: Slot<U>) {
        if view.key().protocol() == IpProtocol::TCP {
            self.end_due_holes(view, &mut slot, view.clock());
            let [a, b] = &mut slot.streams;
            let mut is_muted = false;
            for (side, stream) in [(Side::A, a), (Side::B, b)] {
                let mut out = Delivery::new(self.sink, &mut slot.user, view, side);
                // The rest of one direction may have been reason to mute the flow.
                out.is_stopped = is_muted;
                self.reassembler.finish_at(view.clock(), stream, |event| out.take(&event));
                is_muted |= out.is_muted;
            }
        }
        self.sink.ended(view, reason, slot.user);
    }

    fn wants_more(&self) -> bool {
        self.sink.wants_more()
    }

    #[inline]
    fn next_due_ns(&self) -> u64 {
        self.reassembler.next_due_ns()
    }

    fn next_due(&mut self, now: Timestamp) -> Option<FlowId> {
        self.reassembler.next_overdue(now).map(|(id, _)| id)
    }

    fn due(&mut self, flow: &mut Flow<'_, Slot<U>>, now: Timestamp) {
        if self.end_due_holes(&flow.view, &mut *flow.state, now) {
            flow.mute();
        }
    }
}

/// Hands the events of a stream to the caller's sink, until it wants no more.
struct Delivery<'a, 't, U, K: ?Sized> {
    sink: &'a mut K,
    user: &'a mut U,
    view: &'a FlowView<'t>,
    side: Side,
    is_stopped: bool,
    is_muted: bool,
}

impl<'a, 't, U, K: StreamSink<U> + ?Sized> Delivery<'a, 't, U, K> {
    #[inline(always)]
    const fn new(sink: &'a mut K, user: &'a mut U, view: &'a FlowView<'t>, side: Side) -> Self {
        Self { sink, user, view, side, is_stopped: false, is_muted: false }
    }

    #[inline]
    fn take(&mut self, event: &StreamEvent<'_>) {
        if self.is_stopped {
            return;
        }
        let mut flow = Flow::new(&mut *self.user, *self.view);
        self.is_stopped = self.sink.stream(&mut flow, self.side, event).is_break();
        if flow.is_muted() {
            (self.is_stopped, self.is_muted) = (true, true);
        }
    }
}
