//! Order of octets in both directions of a connection.
//!
//! A capture may have an answer before its request: its two directions come from two interfaces or queues, or a segment
//! of one was lost. The acknowledgment number of a segment states which octets of the opposite direction its sender had
//! received. Octets whose sender had received more than was delivered are therefore held, although they are next in
//! their own direction, until the missing ones were delivered or reported as a gap, or [`skew_max`] has passed.
//!
//! [`skew_max`]: super::ReassemblerConfig::skew_max

use super::event::{Cause, GapReason, StreamEvent};
use super::held_states::{HeldState, Wait};
use super::holes::is_waiting;
use super::reassembler::Reassembler;
use super::segment::Segment;
use super::skew::CaptureSide;
use super::stream::{Peer, Stream};
use crate::base::{Side, TcpFlags, Timestamp};

/// Maximum number of streams with held octets with which the first octets of a connection without a SYN wait for the other
/// direction.
const AWAITED_COUNT_MAX: usize = 1024;

/// Both streams of a connection, side A first, and their names in the reassembler.
#[derive(Debug)]
pub(crate) struct Connection<'s, T> {
    streams: &'s mut [Stream; 2],
    names: [T; 2],
}

/// Callback for the events of both streams of a connection.
pub(crate) type BothOut<'o> = dyn FnMut(Side, &StreamEvent<'_>) + 'o;

/// What a connection waits for next.
struct Due {
    at: Timestamp,
    side: Side,
    /// True if octets of `side` wait for the opposite direction; false if the stream of `side` has a hole.
    is_ordering: bool,
}

impl<'s, T: Copy> Connection<'s, T> {
    pub(crate) const fn new(streams: &'s mut [Stream; 2], names: [T; 2]) -> Self {
        Self { streams, names }
    }

    /// Returns the stream that `side` sent, its name, and the stream of the opposite direction.
    const fn split(&mut self, side: Side) -> (&mut Stream, T, &Stream) {
        let ([a, b], [name_a, name_b]) = (&mut *self.streams, self.names);
        match side {
            Side::A => (a, name_a, b),
            Side::B => (b, name_b, a),
        }
    }
}

impl<T: Copy> Reassembler<T> {
    /// Returns whether a segment needs no other order than that of the capture: nothing of the opposite direction is
    /// held, and its octets were delivered up to the acknowledgment number of the segment. `other` is the stream of
    /// that direction.
    #[inline(always)]
    pub(crate) fn is_in_order(other: &Stream, segment: &Segment<'_>) -> bool {
        !other.has(Stream::HELD) && other.has_plain_acks() && !segment.ack.is_after(other.next)
    }

    /// Returns whether no octets of the opposite direction are held or awaited that the sender of a segment had received.
    #[inline]
    pub(crate) fn is_delivered(other: &Stream, segment: &Segment<'_>) -> bool {
        !other.has(Stream::HELD) && !other.as_peer().is_before(segment.ack)
    }

    /// Returns whether a segment has the first octets of a stream without a SYN, and nothing of the opposite direction was
    /// captured, so that it is not known whether the octets that the segment acknowledges are late.
    #[inline(always)]
    pub(crate) fn begins_early(stream: &Stream, other: &Stream, segment: &Segment<'_>) -> bool {
        !stream.has_begun()
            && !other.is_anchored()
            && segment.len > 0
            && segment.flags.0 & (TcpFlags::SYN.0 | TcpFlags::RST.0 | TcpFlags::ACK.0) == TcpFlags::ACK.0
    }

    /// Lets the first octets of the opposite direction wait for a stream of which nothing was captured, unless there are
    /// many streams with held octets.
    #[cold]
    pub(crate) fn await_beginning(&mut self, stream: &mut Stream) {
        if self.holds.live_count() < AWAITED_COUNT_MAX {
            stream.marks |= Stream::AWAITED;
        }
    }

    /// Processes a segment of `side`: first its acknowledgment, then its octets, then those that waited for them. Returns
    /// the time in nanoseconds for which the first of these waited, if there are any.
    #[cold]
    #[inline(never)]
    pub(crate) fn exchange(
        &mut self,
        connection: &mut Connection<'_, T>,
        side: Side,
        segment: &Segment<'_>,
        out: &mut BothOut<'_>,
    ) -> Option<u64> {
        // Octets delivered by the acknowledgment were sent before this segment.
        self.with(connection, side.other(), |reassembler, stream, name| {
            reassembler.acknowledgment(stream, name, segment, |event| out(side.other(), &event));
        });
        let (stream, name, other) = connection.split(side);
        // Octets that waited for the beginning of a stream may not be late: what precedes the capture is unknown.
        let waiting = if stream.is_anchored() { self.waiting_of(other) } else { None };
        let has_ack = segment.len > 0 && segment.flags.contains(TcpFlags::ACK);
        if has_ack && !stream.has(Stream::STOPPED) && other.as_peer().is_before(segment.ack) {
            self.with(connection, side, |reassembler, stream, name| {
                reassembler.process_slow(stream, name, *segment, &mut |event| out(side, event));
            });
        } else {
            self.next_segment((stream, Some(other)), name, segment, |event| out(side, &event));
        }
        self.deliver_waiting(connection, out);
        let (offset, captured) = waiting?;
        let (.., other) = connection.split(side);
        let waited_ns = segment.timestamp.as_nanos().saturating_sub(captured.as_nanos());
        (other.offset > offset && waited_ns > 0).then_some(waited_ns)
    }

    /// Returns the offset and the capture time of the octets of a stream that wait for the opposite direction.
    fn waiting_of(&self, stream: &Stream) -> Option<(u64, Timestamp)> {
        let hold = if stream.has(Stream::HELD) { self.holds.get(stream.hold)? } else { return None };
        let (captured, _) = hold.pieces.first_segment().filter(|_| is_waiting(stream, hold))?;
        Some((stream.offset, captured))
    }

    /// Counts a segment of a direction that was captured after an answer to it, which waited for `waited_ns` nanoseconds.
    #[cold]
    pub(crate) fn note_skew(&mut self, side: CaptureSide, waited_ns: u64) {
        self.stats.skew.note(side, waited_ns);
    }

    /// Delivers the octets of both streams that wait for nothing more.
    pub(crate) fn deliver_waiting(&mut self, connection: &mut Connection<'_, T>, out: &mut BothOut<'_>) {
        let (mut side, mut unchanged_count) = (Side::A, 0);
        while unchanged_count < 2 {
            let has_advanced = self.with(connection, side, |reassembler, stream, name| {
                let before = stream.offset;
                let is_next = |hold: &&mut HeldState<T>| is_waiting(stream, hold);
                if reassembler.hold_of(stream).filter(is_next).is_some() {
                    // Only octets are delivered here, and no gap is reported.
                    let cause = Cause { reason: GapReason::Acknowledged, timestamp: Timestamp::ZERO };
                    reassembler.skip_hole(stream, before, cause, &mut |event| out(side, event));
                    reassembler.settle(stream, name, before, &mut |event| out(side, event));
                }
                stream.offset > before
            });
            unchanged_count = if has_advanced { 0 } else { unchanged_count + 1 };
            side = side.other();
        }
    }

    /// Ends the holes and the waiting of both streams that are due at `now`, in the order in which they were due.
    pub(crate) fn end_due_of_both(
        &mut self,
        connection: &mut Connection<'_, T>,
        now: Timestamp,
        out: &mut BothOut<'_>,
    ) {
        while let Some(due) = self.first_due_of_both(connection).filter(|due| due.at <= now) {
            let side = due.side;
            if due.is_ordering {
                let cause = Cause { reason: GapReason::Acknowledged, timestamp: due.at };
                self.deliver_next(connection, side, cause, out);
            } else {
                self.with(connection, side, |reassembler, stream, name| {
                    reassembler.pass(stream, name, due.at, |event| out(side, &event));
                });
            }
            self.deliver_waiting(connection, out);
        }
        // Nothing else is due: a stream named by the reassembler is returned to its place in the queue.
        for side in [Side::A, Side::B] {
            self.with(connection, side, |reassembler, stream, name| {
                reassembler.pass(stream, name, now, |event| out(side, &event));
            });
        }
    }

    fn first_due_of_both(&self, connection: &Connection<'_, T>) -> Option<Due> {
        let streams = [Side::A, Side::B].into_iter().zip(&*connection.streams);
        let due = streams.filter_map(|(side, stream)| {
            let hold = if stream.has(Stream::HELD) { self.holds.get(stream.hold) } else { None };
            let is_ordering = hold.is_some_and(|hold| is_waiting(stream, hold));
            let at = match hold {
                Some(hold) if is_ordering => Some(Timestamp::from_nanos(self.late_until_ns(hold))),
                _ => self.due(stream),
            };
            at.map(|at| Due { at, side, is_ordering })
        });
        due.min_by_key(|due| due.at)
    }

    /// Delivers the first held octets of `side`: before them, reports as gaps those of the opposite direction that their
    /// sender had received, and the hole in front of them.
    fn deliver_next(
        &mut self,
        connection: &mut Connection<'_, T>,
        side: Side,
        cause: Cause,
        out: &mut BothOut<'_>,
    ) {
        let (stream, _, other) = connection.split(side);
        let peer = other.as_peer();
        let Some(pieces) = self.hold_of(stream).map(|hold| &hold.pieces) else { return };
        let Some((start, (_, ack))) = pieces.first_start().zip(pieces.first_segment()) else { return };
        self.with(connection, side.other(), |_, stream, _| stream.marks &= !Stream::AWAITED);
        if let Some(missing_len) = peer.missing_len(ack) {
            self.with(connection, side.other(), |reassembler, stream, name| {
                let before = stream.offset;
                if stream.has(Stream::SOFT) {
                    // The beginning of the stream is not known yet, so that nothing is known to be missing.
                    stream.next = ack;
                    return;
                }
                let out = &mut |event: &StreamEvent<'_>| out(side.other(), event);
                let end = (before + missing_len).min(stream.drain_limit());
                reassembler.skip_to(stream, end, cause, out);
                reassembler.settle(stream, name, before, out);
            });
        }
        self.with(connection, side, |reassembler, stream, name| {
            let before = stream.offset;
            let out = &mut |event: &StreamEvent<'_>| out(side, event);
            let to = start.min(stream.drain_limit());
            reassembler.skip_hole(stream, to, cause, out);
            if stream.offset == before {
                // Both directions wait for each other.
                reassembler.peer = Peer::Unknown;
                reassembler.skip_hole(stream, to, cause, out);
            }
            reassembler.settle(stream, name, before, out);
            if reassembler.holds.wait(stream.hold) == Wait::Deadline {
                // The next hole waits from the time at which this one was due, no matter when that was noticed.
                reassembler.holds.arm(stream.hold, Wait::Deadline, cause.timestamp.as_nanos());
            }
        });
    }

    /// Ends the first hole of the stream of `side`, or the waiting of its octets, because memory is short.
    pub(crate) fn skip_of_both(
        &mut self,
        connection: &mut Connection<'_, T>,
        side: Side,
        out: &mut BothOut<'_>,
    ) {
        self.with(connection, side.other(), |_, stream, _| stream.marks &= !Stream::AWAITED);
        let (stream, name, _) = connection.split(side);
        self.skip(stream, name, |event| out(side, &event));
        self.deliver_waiting(connection, out);
    }

    /// Delivers the octets of a connection that ends at the time `now` and of which any are held, in the order of their
    /// acknowledgments, and otherwise in that of their capture. What is missing after them remains for
    /// [`finish_at`](Self::finish_at).
    pub(crate) fn deliver_held(
        &mut self,
        connection: &mut Connection<'_, T>,
        now: Timestamp,
        out: &mut BothOut<'_>,
    ) {
        self.end_due_of_both(connection, now, out);
        let cause = Cause { reason: GapReason::EndOfStream, timestamp: now };
        while let Some(side) = self.first_held_of_both(connection) {
            self.deliver_next(connection, side, cause, out);
            self.deliver_waiting(connection, out);
        }
    }

    /// Returns the side whose first held octets were sent first.
    fn first_held_of_both(&self, connection: &Connection<'_, T>) -> Option<Side> {
        let [a, b] = &*connection.streams;
        let held = [(Side::A, a, b), (Side::B, b, a)].into_iter().filter_map(|(side, stream, other)| {
            let hold = if stream.has(Stream::HELD) { self.holds.get(stream.hold)? } else { return None };
            let start = hold.pieces.first_start().filter(|start| *start < stream.drain_limit());
            let (_, (timestamp, ack)) = start.zip(hold.pieces.first_segment())?;
            Some((other.as_peer().is_before(ack), timestamp, side))
        });
        held.min_by_key(|(is_early, timestamp, _)| (*is_early, *timestamp)).map(|(.., side)| side)
    }

    /// Calls `call` with the stream that `side` sent and its name, while its octets wait for the opposite direction.
    fn with<R>(
        &mut self,
        connection: &mut Connection<'_, T>,
        side: Side,
        call: impl FnOnce(&mut Self, &mut Stream, T) -> R,
    ) -> R {
        let (stream, name, other) = connection.split(side);
        self.peer = other.as_peer();
        let result = call(self, stream, name);
        self.peer = Peer::Unknown;
        result
    }
}
