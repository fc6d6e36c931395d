//! TCP segments and the two streams of their flow, for the stages that have TCP streams.

use std::ops::ControlFlow;

use crate::base::{DirectionEvidence, IpProtocol, Side, Timestamp};
use crate::base::{Packet, Transport};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::reassembler::{BothOut, CaptureSide, Connection, Reassembler, Segment, Stream, StreamEvent};
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

    /// Returns whether a segment with the first octets of a connection without its SYN may have an answer, so that they wait
    /// for a request that was captured later.
    fn may_answer(&self, _packet: &Packet<'_>) -> bool {
        true
    }
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

/// Passes the events of both directions of a flow to a consumer, each until the consumer stops it.
struct BothSides<'c, C> {
    consumer: &'c mut C,
    /// The directions that the consumer stopped, side A first.
    are_stopped: [bool; 2],
}

impl<'c, C: Consumer> BothSides<'c, C> {
    const fn new(consumer: &'c mut C) -> Self {
        Self { consumer, are_stopped: [false; 2] }
    }

    fn take(&mut self, side: Side, event: &StreamEvent<'_>) {
        let [a, b] = &mut self.are_stopped;
        let is_stopped = if side == Side::A { a } else { b };
        if !*is_stopped && !self.consumer.is_muted() {
            *is_stopped = self.consumer.take(side, event).is_break();
        }
    }

    /// Calls `call` with the streams of a flow and a callback for their events, and stops the streams that the consumer
    /// stopped.
    fn process(
        &mut self,
        (streams, pair): (&mut Streams, &mut Pair),
        id: FlowId,
        call: impl FnOnce(&mut Streams, &mut Connection<'_, (FlowId, Side)>, &mut BothOut<'_>),
    ) {
        let names = [(id, Side::A), (id, Side::B)];
        call(streams, &mut Connection::new(pair, names), &mut |side, event| self.take(side, event));
        while self
            .are_stopped
            .iter()
            .zip(&*pair)
            .any(|(is_stopped, stream)| *is_stopped && !stream.is_stopped())
        {
            let stopped = pair.iter_mut().zip(self.are_stopped).filter(|(_, is_stopped)| *is_stopped);
            stopped.for_each(|(stream, _)| streams.stop(stream));
            // Nothing waits for a stream that is stopped.
            let connection = &mut Connection::new(pair, names);
            streams.deliver_waiting(connection, &mut |side, event| self.take(side, event));
        }
        if self.consumer.is_muted() {
            stop(streams, pair);
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
    BothSides::new(consumer).process((streams, pair), id, |streams, connection, out| {
        streams.end_due_of_both(connection, now, out);
    });
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
    let [a, b] = &mut *pair;
    let (own, other) = if side == Side::A { (a, &*b) } else { (b, &*a) };
    let id = view.id();
    streams.advance_clock(view.clock());
    if !Streams::is_in_order(other, &segment) {
        return acknowledged((streams, pair), view, (packet, segment), consumer);
    }
    let mut events = SideConsumer::new(consumer, side);
    streams.next_segment((own, Some(other)), (id, side), &segment, |event| events.take(&event));
    if events.is_stopped {
        streams.stop(own);
    }
}

/// Returns whether a side is the responder, or may be, because the only evidence is that it sent the first packet.
#[cold]
fn may_respond(view: &FlowView<'_>, side: Side) -> bool {
    side != view.initiator() || view.direction_evidence() == DirectionEvidence::FirstSeen
}

/// Processes a TCP segment whose acknowledgment concerns the stream of the opposite side.
#[inline(never)]
fn acknowledged(
    (streams, pair): (&mut Streams, &mut Pair),
    view: &FlowView<'_>,
    (packet, segment): (&Packet<'_>, Segment<'_>),
    consumer: &mut impl Consumer,
) {
    let (id, side) = (view.id(), packet.side);
    let [a, b] = &mut *pair;
    let (own, other) = if side == Side::A { (a, b) } else { (b, a) };
    if !other.is_held() {
        let mut events = SideConsumer::new(&mut *consumer, side.other());
        streams.acknowledgment(other, (id, events.side), &segment, |event| events.take(&event));
        if events.is_stopped {
            streams.stop(other);
        }
        if consumer.is_muted() {
            return;
        }
        if Streams::begins_early(own, other, &segment)
            && may_respond(view, side)
            && consumer.may_answer(packet)
        {
            streams.await_beginning(other);
        }
        if !own.is_held() && Streams::is_delivered(other, &segment) {
            let mut events = SideConsumer::new(consumer, side);
            streams.next_segment((own, Some(other)), (id, side), &segment, |event| events.take(&event));
            if events.is_stopped {
                streams.stop(own);
            }
            return;
        }
    }
    exchange((streams, pair), view, (packet, segment), consumer);
}

/// Processes a TCP segment while octets of either side may wait for those of the other one.
#[cold]
#[inline(never)]
fn exchange(
    (streams, pair): (&mut Streams, &mut Pair),
    view: &FlowView<'_>,
    (packet, segment): (&Packet<'_>, Segment<'_>),
    consumer: &mut impl Consumer,
) {
    let mut waited_ns = None;
    BothSides::new(consumer).process((streams, pair), view.id(), |streams, connection, out| {
        waited_ns = streams.exchange(connection, packet.side, &segment, out);
    });
    if let Some(waited_ns) = waited_ns {
        let side = match view.mac(packet.side) {
            _ if packet.interface != view.interface() => CaptureSide::Interface(packet.interface),
            Some(mac) => CaptureSide::Mac(mac),
            None => CaptureSide::Initiator(packet.side == view.initiator()),
        };
        streams.note_skew(side, waited_ns);
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
    let now = view.clock();
    if pair.iter().any(Stream::is_held) {
        BothSides::new(consumer).process((streams, pair), view.id(), |streams, connection, out| {
            streams.deliver_held(connection, now, out);
        });
    }
    for side in [Side::A, Side::B] {
        let is_stopped = consumer.is_muted();
        let mut events = SideConsumer { consumer: &mut *consumer, side, is_stopped };
        streams.finish_at(now, of(pair, side), |event| events.take(&event));
    }
}

/// Ends the first hole of a stream, because memory is short.
pub(super) fn skip(
    streams: &mut Streams,
    pair: &mut Pair,
    (id, side): (FlowId, Side),
    consumer: &mut impl Consumer,
) {
    BothSides::new(consumer).process((streams, pair), id, |streams, connection, out| {
        streams.skip_of_both(connection, side, out);
    });
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
