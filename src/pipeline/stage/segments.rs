//! TCP segments and the two streams of their flow, for the stages that have TCP streams.

use std::ops::ControlFlow;

use crate::base::{IpProtocol, Side, Timestamp};
use crate::base::{Packet, Transport};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::reassembler::{Reassembler, Segment, Stream, StreamEvent};
use crate::tracker::{FlowId, FlowView};

/// The streams of both sides of a TCP flow, side A first.
pub(super) type Pair = [Stream; 2];

/// The reassembler of a pipeline, which identifies a stream by flow and side.
pub(super) type Streams = Reassembler<(FlowId, Side)>;

/// Receives the events of the TCP streams of one flow.
pub(super) trait Consumer {
    /// Processes an event of the stream that `side` sent. [`ControlFlow::Break`] stops the stream.
    fn take(&mut self, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()>;

    /// Returns whether the sink muted the flow, so that no more events are delivered.
    fn is_muted(&self) -> bool;
}

/// Passes the events of one direction of a flow to a consumer until the consumer stops it.
struct SideConsumer<'c, C> {
    consumer: &'c mut C,
    side: Side,
    is_stopped: bool,
}

impl<'c, C: Consumer> SideConsumer<'c, C> {
    #[inline(always)]
    const fn new(consumer: &'c mut C, side: Side) -> Self {
        Self { consumer, side, is_stopped: false }
    }

    #[inline]
    fn take(&mut self, event: &StreamEvent<'_>) {
        if !self.is_stopped {
            self.is_stopped = self.consumer.take(self.side, event).is_break() || self.consumer.is_muted();
        }
    }
}

fn of(pair: &mut Pair, side: Side) -> &mut Stream {
    let [a, b] = pair;
    if side == Side::A { a } else { b }
}

/// Reads both streams of a flow. The result has no meaning.
#[inline(always)]
pub(super) fn touch(pair: &Pair) -> u64 {
    let [a, b] = pair;
    u64::from(a.is_held()) ^ u64::from(b.is_held())
}

/// Returns whether holes in the streams of a flow may be due before one of its packets.
#[inline]
pub(super) fn may_have_due_holes(pair: &Pair, packet: &Packet<'_>) -> bool {
    packet.transport == Transport::Tcp && pair.iter().any(Stream::is_held)
}

/// Ends the holes in the streams of both directions of a flow that are due at a time, in the order of their deadlines.
/// Stops the streams if the sink mutes the flow.
#[cold]
#[inline(never)]
pub(super) fn end_due_holes(
    streams: &mut Streams,
    pair: &mut Pair,
    id: FlowId,
    now: Timestamp,
    consumer: &mut impl Consumer,
) {
    // When nothing else is due, a stream named by the reassembler is returned to its place in the queue.
    let mut rest = [Side::A, Side::B].into_iter().map(|side| (now, side));
    loop {
        let due = first_due(streams, pair).filter(|(due, _)| *due <= now);
        let Some((until, side)) = due.or_else(|| rest.next()) else { return };
        let mut events = SideConsumer::new(consumer, side);
        streams.pass(of(pair, side), (id, side), until, |event| events.take(&event));
        if events.is_stopped {
            streams.stop(of(pair, side));
        }
        if consumer.is_muted() {
            stop(streams, pair);
        }
    }
}

/// Returns the side with the stream whose first hole is due first, and the time when it is due.
fn first_due(streams: &Streams, pair: &Pair) -> Option<(Timestamp, Side)> {
    let [a, b] = pair.each_ref().map(|stream| streams.due(stream));
    let [a, b] = [a.map(|due| (due, Side::A)), b.map(|due| (due, Side::B))];
    a.into_iter().chain(b).min_by_key(|(due, _)| *due)
}

/// Processes a TCP segment: first its acknowledgment, for the stream of the opposite side, then its octets.
#[inline]
pub(super) fn segment(
    streams: &mut Streams,
    pair: &mut Pair,
    view: &FlowView<'_>,
    packet: &Packet<'_>,
    consumer: &mut impl Consumer,
) {
    let Some(segment) = Segment::of(packet) else { return };
    let side = packet.side;
    let [a, b] = pair;
    let (own, other) = if side == Side::A { (a, b) } else { (b, a) };
    let id = view.id();
    streams.advance_clock(view.clock());
    // Octets delivered by the acknowledgment were sent before this segment.
    let mut events = SideConsumer::new(consumer, side.other());
    streams.acknowledgment(other, (id, events.side), &segment, |event| events.take(&event));
    if events.is_stopped {
        streams.stop(other);
    }
    if consumer.is_muted() {
        return;
    }
    let mut events = SideConsumer::new(consumer, side);
    streams.segment(own, (id, side), &segment, |event| events.take(&event));
    if events.is_stopped {
        streams.stop(own);
    }
}

/// Delivers the remaining octets and gaps of both streams of a flow that ends.
pub(super) fn finish(
    streams: &mut Streams,
    pair: &mut Pair,
    view: &FlowView<'_>,
    consumer: &mut impl Consumer,
) {
    if view.key().protocol() != IpProtocol::TCP {
        return;
    }
    if pair.iter().any(Stream::is_held) {
        end_due_holes(streams, pair, view.id(), view.clock(), consumer);
    }
    for side in [Side::A, Side::B] {
        let is_stopped = consumer.is_muted();
        let mut events = SideConsumer { consumer: &mut *consumer, side, is_stopped };
        streams.finish_at(view.clock(), of(pair, side), |event| events.take(&event));
    }
}

/// Ends the first hole of a stream, because memory is short.
pub(super) fn skip(
    streams: &mut Streams,
    pair: &mut Pair,
    (id, side): (FlowId, Side),
    consumer: &mut impl Consumer,
) {
    let mut events = SideConsumer::new(consumer, side);
    streams.skip(of(pair, side), (id, side), |event| events.take(&event));
    if events.is_stopped {
        streams.stop(of(pair, side));
    }
}

/// Stops both streams of a flow and releases their memory.
pub(super) fn stop(streams: &mut Streams, pair: &mut Pair) {
    pair.iter_mut().for_each(|stream| streams.stop(stream));
}

/// Writes both streams of a flow to a checkpoint.
pub(super) fn save(streams: &Streams, pair: &Pair, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
    pair.iter().try_for_each(|stream| streams.save(stream, out))
}

/// Reads both streams of a flow from a checkpoint, and delivers the gaps in place of the octets that were held.
pub(super) fn load(
    reader: &mut Reader<'_>,
    streams: &mut Streams,
    pair: &mut Pair,
    view: &FlowView<'_>,
    consumer: &mut impl Consumer,
) -> Result<(), Invalid> {
    for side in [Side::A, Side::B] {
        let is_stopped = consumer.is_muted();
        let mut events = SideConsumer { consumer: &mut *consumer, side, is_stopped };
        let target = (of(pair, side), (view.id(), side));
        streams.load(reader, target, view.end(), &mut |event| events.take(event))?;
        // Other flows do not release what a stream holds at their end.
        if events.is_stopped || view.key().protocol() != IpProtocol::TCP {
            streams.stop(of(pair, side));
        }
    }
    Ok(())
}

/// Panics unless the reassembler agrees with its own account, and all its memory belongs to streams of open flows.
pub(super) fn check_invariants<'f>(streams: &Streams, pairs: impl Iterator<Item = &'f Pair>) {
    streams.check_invariants();
    let held_count = pairs.flatten().filter(|stream| stream.is_held()).count();
    // Octets held only for comparison may have been released although their stream still claims them.
    assert!(streams.held_stream_count() <= held_count, "what is held belongs to open flows");
}
