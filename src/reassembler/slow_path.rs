//! Segments outside the fast path: the first segment, and segments that repeat, overlap, arrive early or end the
//! stream.

use super::event::{Cause, Chunk, Conflict, Extent, Gap, GapReason, StreamEvent};
use super::holes::is_waiting;
use super::pieces::{New, Origin, Out, Reservation};
use super::policy::OverflowPolicy;
use super::reassembler::{Reassembler, WINDOW_MAX};
use super::segment::Segment;
use super::stream::{Peer, Stream};
use crate::base::{SeqNum, TcpFlags, Timestamp};

/// Number of consecutive segments far from the expected sequence number, each beginning where the previous one ended,
/// after which a stream continues at their sequence numbers.
const STRAYS_TO_FOLLOW: u8 = 8;

/// A segment with its sequence numbers converted to stream offsets. Octets before the stream's first octet have
/// negative offsets.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    begin: i64,
    /// Stream offset after the last captured octet; `end` is the offset after the last octet on the wire.
    captured_end: i64,
    end: i64,
    wire_len: u32,
    payload: &'a [u8],
    timestamp: Timestamp,
    ack: SeqNum,
}

impl<'a> Arrival<'a> {
    /// Returns the captured bytes between two stream offsets, limited to the bytes of the segment.
    fn bytes(&self, from: i64, to: i64) -> &'a [u8] {
        let place = |offset: i64| (offset.clamp(self.begin, self.captured_end) - self.begin) as usize;
        self.payload.get(place(from)..place(to)).unwrap_or_default()
    }

    fn origin(&self) -> Origin {
        Origin { begin: self.begin.max(0) as u64, end: self.end.max(0) as u64, timestamp: self.timestamp }
    }
}

impl<T: Copy> Reassembler<T> {
    /// Processes a segment that the fast path does not handle: any except one whose octets are next in order and
    /// complete.
    #[inline(never)]
    pub(super) fn process_slow(
        &mut self,
        stream: &mut Stream,
        name: T,
        mut segment: Segment<'_>,
        out: &mut Out<'_>,
    ) {
        if segment.flags.contains(TcpFlags::RST) {
            return;
        }
        self.end_due(stream, self.now_ns, out);
        self.delivered_at = segment.timestamp;
        if stream.has(Stream::DOUBTED) && !self.decide(stream, name, &segment, out) {
            return;
        }
        if segment.may_be_padding() && self.doubt(stream, &segment) {
            return;
        }
        // The sequence number of the first octet, also in a SYN.
        segment.seq = segment.seq.add(u32::from(segment.flags.contains(TcpFlags::SYN)));
        let segment = &segment;
        let seq = segment.seq;
        let start = stream.next;
        let has_more = self.anchor(stream, segment, out);
        if !has_more {
            // Held octets may be next now, or no hole may be left.
            if stream.has(Stream::HELD) && stream.next != start {
                self.settle(stream, name, 0, out);
            }
            return;
        }
        let ahead = seq.distance_from(stream.next);
        if ahead.unsigned_abs() >= WINDOW_MAX || segment.len >= WINDOW_MAX {
            if !self.follow_stray(stream, segment, out) {
                return;
            }
        } else {
            stream.stray_count = 0;
        }
        let begin = stream.offset as i64 + i64::from(seq.distance_from(stream.next));
        let captured_end = begin + segment.payload.len() as i64;
        let end = begin + i64::from(segment.len);
        let mut arrival = Arrival {
            begin,
            captured_end,
            end,
            wire_len: segment.len,
            payload: segment.payload,
            timestamp: segment.timestamp,
            ack: segment.ack,
        };
        let is_first_fin = segment.flags.contains(TcpFlags::FIN)
            && !stream.has(Stream::FIN_KNOWN)
            && end >= stream.offset as i64;
        if is_first_fin {
            stream.fin = seq.add(segment.len);
            stream.flags |= Stream::FIN_KNOWN;
        }
        self.drop_after_fin(stream, &mut arrival, out);
        let before = stream.offset;
        self.repeat(stream, &arrival, out);
        self.take(stream, name, &arrival, out);
        self.settle(stream, name, before, out);
        if is_first_fin && let Some(hold) = self.hold_of(stream) {
            hold.fin_at = segment.timestamp;
        }
    }

    /// Processes a segment that is more than the largest window away from the expected sequence number. Returns whether
    /// the stream now continues at this segment.
    fn follow_stray(&mut self, stream: &mut Stream, segment: &Segment<'_>, out: &mut Out<'_>) -> bool {
        let seq = segment.seq;
        self.stats.stray_count += 1;
        stream.marks &= !(Stream::CONTESTED | Stream::HINTED);
        if segment.len == 0 || segment.len >= WINDOW_MAX {
            return false;
        }
        let is_in_row = stream.stray_count > 0 && seq == stream.stray_next;
        stream.stray_count = if is_in_row { stream.stray_count.saturating_add(1) } else { 1 };
        stream.stray_next = seq.add(segment.len);
        if stream.stray_count < STRAYS_TO_FOLLOW {
            return false;
        }
        let cause = Cause { reason: GapReason::Resynchronized, timestamp: segment.timestamp };
        self.deliver_rest(stream, cause, out);
        self.release(stream);
        stream.stray_count = 0;
        stream.flags &= !(Stream::FIN_KNOWN | Stream::ENDED);
        let len = u64::from(seq.0.wrapping_sub(stream.next.0));
        self.gap(stream, stream.offset + len, cause, out);
        true
    }

    /// Removes the octets after the FIN from a segment, and reports them.
    fn drop_after_fin(&mut self, stream: &Stream, arrival: &mut Arrival<'_>, out: &mut Out<'_>) {
        let Some(fin) = stream.fin_offset().filter(|fin| arrival.end > *fin as i64) else { return };
        let from = arrival.begin.max(fin as i64);
        let len = (arrival.end - from) as u64;
        let is_keep_alive = arrival.wire_len == 1 && from == fin as i64;
        arrival.end = fin as i64;
        arrival.captured_end = arrival.captured_end.min(arrival.end);
        // A keep-alive has the sequence number of the FIN; another FIN without octets may have any number.
        if !is_keep_alive && len > 0 {
            self.stats.after_fin_count += 1;
            out(&StreamEvent::AfterFin { offset: from as u64, len });
        }
        arrival.begin = arrival.begin.min(arrival.end);
    }

    /// Reports octets of a segment that were received before, and compares them with the earlier ones if those are
    /// still kept.
    fn repeat(&mut self, stream: &Stream, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let at = stream.offset as i64;
        let end = arrival.end.min(at);
        // One octet before the next one is a keep-alive, or equivalent to one (RFC 9293 section 3.8.4).
        let is_keep_alive = arrival.wire_len == 1 && arrival.end == at;
        if arrival.begin >= end || is_keep_alive {
            return;
        }
        self.stats.repeated_count += 1;
        let (from, to) = (arrival.begin.max(0), end.max(0));
        if from < to {
            out(&StreamEvent::Repeated { offset: from as u64, len: (to - from) as u64 });
        }
        let bytes = arrival.bytes(from, to);
        let Some(hold) = self.hold_of(stream) else { return };
        let Some(((offset, len), compared)) = hold.recent.compare(from as u64, bytes) else { return };
        let timestamp = hold.recent.timestamp;
        let old = Extent { offset: compared.0, len: compared.1 - compared.0, timestamp };
        let origin = arrival.origin();
        let new =
            Extent { offset: origin.begin, len: origin.end - origin.begin, timestamp: origin.timestamp };
        self.stats.conflict_count += 1;
        self.stats.conflict_octet_count += len;
        out(&StreamEvent::Conflict(Conflict { offset, len, old, new, is_new_kept: false }));
    }

    /// Delivers or holds the octets of a segment that were not delivered or skipped before.
    fn take(&mut self, stream: &mut Stream, name: T, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        if arrival.end <= stream.offset as i64 {
            return;
        }
        let is_ahead = arrival.begin > stream.offset as i64;
        if (is_ahead || self.must_wait(stream, arrival)) && !self.hold(stream, name, arrival, out) {
            return;
        }
        // Octets that are not held are in order now.
        for is_captured in [true, false] {
            let (from, to) = if is_captured {
                (arrival.begin, arrival.captured_end)
            } else {
                (arrival.captured_end, arrival.end)
            };
            let start = stream.offset as i64;
            if from > start || to <= start {
                continue;
            }
            let bytes = is_captured.then(|| arrival.bytes(start, to));
            let (start, end, origin) = (stream.offset, to as u64, arrival.origin());
            let new = New { start, end, bytes, origin, ack: arrival.ack };
            self.deliver(stream, name, &new, out);
        }
    }

    /// Returns whether a segment that is next in order was sent after octets of the opposite direction that were not
    /// delivered yet, or comes after such a segment.
    fn must_wait(&mut self, stream: &Stream, arrival: &Arrival<'_>) -> bool {
        self.peer.is_before(arrival.ack) || self.hold_of(stream).is_some_and(|hold| is_waiting(stream, hold))
    }

    /// Delivers a new part of a segment that is next in order, and the held pieces that follow it.
    pub(super) fn deliver(&mut self, stream: &mut Stream, name: T, new: &New<'_>, out: &mut Out<'_>) {
        if stream.has(Stream::COMPARED) {
            let _ = self.hold_or_new(stream, name);
        }
        let Self { store, holds, memory, stats, config, compared_len, delivered_at, peer, .. } = self;
        let hold = if stream.has(Stream::HELD) { holds.get_mut(stream.hold) } else { None };
        let timestamp = new.origin.timestamp;
        let Some(hold) = hold else {
            match new.bytes {
                Some(bytes) => out(&StreamEvent::Chunk(Chunk { offset: new.start, bytes, timestamp })),
                None => {
                    let len = new.end - new.start;
                    stats.count_gap(GapReason::Truncated, len);
                    out(&StreamEvent::Gap(Gap::new(new.start, len, GapReason::Truncated).at(timestamp)));
                }
            }
            stream.advance_to(new.end);
            return;
        };
        let recent = &mut hold.recent;
        let mut out = |event: &StreamEvent<'_>| {
            match event {
                StreamEvent::Chunk(chunk) if *compared_len > 0 => {
                    stats.uncompared_octet_count += recent.push(memory, chunk, *compared_len);
                }
                StreamEvent::Gap(gap) => stats.count_gap(gap.reason, gap.len),
                StreamEvent::Conflict(conflict) => {
                    stats.conflict_count += 1;
                    stats.conflict_octet_count += conflict.len;
                }
                _ => {}
            }
            out(event);
        };
        hold.pieces.deliver(store, new, config.overlap, &mut out);
        *delivered_at = timestamp;
        let range = (new.end, stream.drain_limit());
        let end = hold.pieces.drain(store, range, *peer, delivered_at, &mut out);
        stream.advance_to(end);
        store.trim(memory);
    }

    /// Holds a segment that begins after a hole, or that waits for the opposite direction. If limits are reached, nothing
    /// waits for the opposite direction, and the overflow policy is applied. Returns true if the segment is not held
    /// because it is next in order now.
    fn hold(&mut self, stream: &mut Stream, name: T, arrival: &Arrival<'_>, out: &mut Out<'_>) -> bool {
        loop {
            if self.try_hold(stream, name, arrival, out) {
                return false;
            }
            if self.peer.is_known() {
                self.peer = Peer::Unknown;
                let cause = Cause { reason: GapReason::Overflow, timestamp: arrival.timestamp };
                self.skip_hole(stream, stream.offset, cause, out);
                if arrival.begin <= stream.offset as i64 {
                    return true;
                }
                continue;
            }
            match self.config.overflow {
                OverflowPolicy::DropNewest => {
                    let ahead = arrival.end - stream.offset as i64;
                    stream.note_dropped(stream.next.add(ahead as u32));
                    self.stats.refused_count += 1;
                    return false;
                }
                OverflowPolicy::Poison => {
                    self.poison(stream, out);
                    return false;
                }
                OverflowPolicy::Slide => {
                    let first = self.hold_of(stream).and_then(|hold| hold.pieces.first_start());
                    let to = first.map_or(arrival.begin as u64, |first| first.min(arrival.begin as u64));
                    let cause = Cause { reason: GapReason::Overflow, timestamp: arrival.timestamp };
                    self.skip_hole(stream, to, cause, out);
                    if arrival.begin <= stream.offset as i64 {
                        return true;
                    }
                }
            }
        }
    }

    /// Holds the octets of a segment that were not delivered, if the limits allow it. Returns whether they did.
    fn try_hold(&mut self, stream: &mut Stream, name: T, arrival: &Arrival<'_>, out: &mut Out<'_>) -> bool {
        let limits = self.limits;
        if limits.stream_side_segment_count_max == 0 || limits.stream_side_bytes_max == 0 {
            return false;
        }
        let begin = arrival.begin.max(stream.offset as i64);
        let range = (begin as u64, arrival.end as u64);
        loop {
            match self.reserve(stream, name, range, arrival.payload.len()) {
                Reservation::Reserved => break,
                // Memory that is used for comparison only is released in favor of held segments.
                Reservation::NoMemory if self.drop_compared() => {}
                _ => return false,
            }
        }
        let Self { store, holds, stats, config, .. } = self;
        let Some(hold) = holds.get_mut(stream.hold) else { return false };
        let mut held_len = 0;
        let mut out = |event: &StreamEvent<'_>| {
            if let StreamEvent::Conflict(conflict) = event {
                stats.conflict_count += 1;
                stats.conflict_octet_count += conflict.len;
            }
            out(event);
        };
        let parts = [
            (begin, arrival.captured_end, Some(arrival.bytes(begin, arrival.captured_end))),
            (begin.max(arrival.captured_end), arrival.end, None),
        ];
        for (from, to, bytes) in parts {
            if from < to {
                let (start, end, origin) = (from as u64, to as u64, arrival.origin());
                let new = New { start, end, bytes, origin, ack: arrival.ack };
                held_len += hold.pieces.place(store, new, config.overlap, &mut out);
            }
        }
        stats.held_segment_count += u64::from(held_len > 0);
        stats.repeated_count += u64::from(held_len < range.1 - range.0);
        stats.held_octet_count += held_len;
        true
    }

    fn reserve(&mut self, stream: &mut Stream, name: T, range: (u64, u64), len: usize) -> Reservation {
        if self.hold_or_new(stream, name).is_none() {
            return Reservation::NoMemory;
        }
        let Self { store, holds, memory, limits, .. } = self;
        let Some(hold) = holds.get_mut(stream.hold) else { return Reservation::NoMemory };
        if hold.pieces.len() >= limits.stream_side_segment_count_max as usize {
            return Reservation::SideIsFull;
        }
        hold.pieces.reserve(store, memory, range, len, limits.stream_side_bytes_max)
    }
}
