//! How holes end other than by being filled: acknowledged, overdue, in the way, or with the stream.

use super::event::{Gap, GapReason, StreamEvent};
use super::holds::{Acked, Hold, Wait};
use super::pieces::Out;
use super::reassembler::Reassembler;
use super::segment::Segment;
use super::stream::Stream;
use crate::base::{TcpFlags, Timestamp};

/// How far beyond all that is known of a stream an acknowledgment is believed.
const ACK_AHEAD_MAX: u64 = 16 << 20;

impl<T: Copy> Reassembler<T> {
    /// A stream for which [`skip`](Self::skip) has something to do at `now`, which is constant time to find: a grace or a
    /// deadline passed, or memory is short and it waits longest.
    ///
    /// The same holes end in the same places without this, when the stream's own next segment comes; this only makes it
    /// sooner. Call `skip` on the named stream before the next call: what is left alone is taken back.
    #[inline]
    pub fn next_due(&mut self, now: Timestamp) -> Option<T> {
        self.now_ns = self.now_ns.max(now.as_nanos());
        // What waits takes memory.
        if self.memory.held_bytes() == 0 { None } else { self.next_due_of_held() }
    }

    fn next_due_of_held(&mut self) -> Option<T> {
        while let Some((handle, _)) = self.holds.oldest(Wait::Offered) {
            // Its stream is gone without `finish`.
            self.stats.orphaned_count += 1;
            self.holds.remove(&mut self.store, &mut self.memory, handle);
        }
        while self.memory.is_pressed()
            && let Some((handle, _)) = self.holds.oldest(Wait::Kept)
        {
            // What is kept for comparison only goes first, and its stream need not know.
            self.holds.remove(&mut self.store, &mut self.memory, handle);
        }
        if self.memory.is_asked_back() {
            self.holds.give_back(&mut self.memory);
        }
        let graced = self.holds.oldest(Wait::Grace);
        let graced = graced.filter(|(_, hold)| self.is_over(hold.acked.since_ns, self.ack_grace_ns));
        let overdue = self.holds.oldest(Wait::Deadline);
        let overdue = || overdue.filter(|(_, hold)| self.is_over(hold.armed_ns, self.hole_timeout_ns));
        let pressed = || {
            let waits = [Wait::Open, Wait::Deadline, Wait::Grace].into_iter();
            let oldest =
                waits.filter_map(|wait| self.holds.oldest(wait)).min_by_key(|(_, hold)| hold.armed_ns);
            oldest.filter(|_| self.memory.is_pressed())
        };
        let (handle, hold) = graced.or_else(overdue).or_else(pressed)?;
        let (name, armed_ns) = (hold.name, hold.armed_ns);
        self.holds.arm(handle, Wait::Offered, armed_ns);
        Some(name)
    }

    /// Ends the holes of a stream that are due; if there are none and memory is short, its first hole.
    pub fn skip(&mut self, stream: &mut Stream, name: T, mut out: impl FnMut(StreamEvent<'_>)) {
        let mut out = |event: &StreamEvent<'_>| out(*event);
        let offered = stream.offset;
        self.end_due(stream, &mut out);
        let before = stream.offset;
        if before == offered && self.memory.is_pressed() {
            self.give_way(stream, &mut out);
        }
        self.settle(stream, name, before, &mut out);
    }

    /// Ends the holes of a stream that are due when the other direction goes on, so that the order of both is that of their own
    /// segments, whenever somebody sweeps.
    #[inline(never)]
    pub(super) fn pass_time(&mut self, stream: &mut Stream, name: T, out: &mut Out<'_>) {
        let offered = stream.offset;
        self.end_due(stream, out);
        if stream.offset != offered {
            self.settle(stream, name, stream.offset, out);
        }
    }

    /// Gives up what a stream waits for first, so that others find memory.
    fn give_way(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        if let Some(to) = self.first_known(stream) {
            return self.skip_hole(stream, to, GapReason::Overflow, out);
        }
        // It holds nothing, and only knows what was acknowledged.
        let Some(hold) = self.hold_of(stream) else { return };
        let end = hold.acked_latest.end;
        if !is_fin_likely(stream, hold) {
            self.gap(stream, end, GapReason::Overflow, out);
        }
        if let Some(hold) = self.hold_of(stream) {
            (hold.acked, hold.acked_latest) = Default::default();
        }
    }

    /// Ends a stream at a time: ends the holes that are due by then, delivers what it holds with the gaps between, and frees
    /// it. The stream is as new afterwards.
    pub fn finish_at(&mut self, now: Timestamp, stream: &mut Stream, mut out: impl FnMut(StreamEvent<'_>)) {
        if !stream.has(Stream::STOPPED) {
            // Others may have got further, or not as far.
            let latest_ns = std::mem::replace(&mut self.now_ns, now.as_nanos());
            self.end_due(stream, &mut |event| out(*event));
            self.now_ns = latest_ns;
        }
        self.finish(stream, out);
    }

    /// Ends a stream: delivers what it holds with the gaps between, and frees it. The stream is as new afterwards.
    pub fn finish(&mut self, stream: &mut Stream, mut out: impl FnMut(StreamEvent<'_>)) {
        if !stream.has(Stream::STOPPED) {
            self.deliver_rest(stream, GapReason::End, &mut |event| out(*event));
        }
        self.release(stream);
        *stream = Stream::default();
    }

    /// An acknowledgment that may be beyond what came.
    #[inline(never)]
    pub(super) fn acknowledge(
        &mut self,
        stream: &mut Stream,
        name: T,
        segment: &Segment<'_>,
        out: &mut Out<'_>,
    ) {
        let is_usable = segment.flags.contains(TcpFlags::ACK) && !segment.flags.contains(TcpFlags::RST);
        if !is_usable || stream.has(Stream::STOPPED | Stream::ENDED) {
            return;
        }
        if !stream.has(Stream::ANCHORED) {
            // Of a handshake whose SYN was not captured, this tells where the stream begins.
            if segment.flags.contains(TcpFlags::SYN) {
                stream.anchor(segment.ack, if self.compared_len > 0 { Stream::COMPARED } else { 0 });
                stream.marks |= Stream::ACKED;
            }
            return;
        }
        self.end_due(stream, out);
        let before = stream.offset;
        stream.marks |= Stream::ACKED;
        let ahead = segment.ack.distance_from(stream.next);
        if ahead > 0 && !stream.has(Stream::SOFT) {
            let end = stream.offset + ahead as u64;
            self.note_acked(stream, name, stream.fin_offset().map_or(end, |fin| fin.min(end)), out);
        }
        self.settle(stream, name, before, out);
    }

    fn note_acked(&mut self, stream: &mut Stream, name: T, end: u64, out: &mut Out<'_>) {
        let now_ns = self.now_ns;
        let held_end = self.hold_of(stream).and_then(|hold| hold.pieces.last_end());
        let known = stream.offset.max(held_end.unwrap_or(0)).max(stream.fin_offset().unwrap_or(0));
        if end <= stream.offset {
            return;
        }
        if end > known + ACK_AHEAD_MAX {
            self.stats.implausible_ack_count += 1;
            return;
        }
        let offset = stream.offset;
        match self.hold_or_new(stream, name) {
            Some(hold) => {
                let acked = Acked { end, since_ns: now_ns };
                if hold.acked.end <= offset {
                    (hold.acked, hold.acked_latest) = (acked, acked);
                } else if end > hold.acked_latest.end {
                    hold.acked_latest = acked;
                }
            }
            // There is no memory to wait with. One octet may be the FIN.
            None if end == offset + 1 => {}
            None => self.skip_to(stream, end, GapReason::Acknowledged, out),
        }
    }

    /// Where the first hole of a stream ends: at the first piece or the FIN, or behind what was dropped.
    fn first_known(&mut self, stream: &Stream) -> Option<u64> {
        let first = self.hold_of(stream).and_then(|hold| hold.pieces.first_start());
        match stream.fin_offset() {
            // What is held behind the FIN is never reached.
            Some(fin) => Some(first.map_or(fin, |first| first.min(fin))).filter(|_| fin > stream.offset),
            None => first.or_else(|| stream.dropped_end()),
        }
    }

    const fn is_over(&self, since_ns: u64, time_ns: u64) -> bool {
        self.now_ns.saturating_sub(since_ns) >= time_ns
    }

    /// Ends the holes whose time is over, as was decided when they opened or were acknowledged: whenever this is called, the
    /// deadline of a hole is counted from that of the one before.
    pub(super) fn end_due(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        let now_ns = self.now_ns;
        while let Some(hold) = self.hold_of(stream) {
            let (acked, armed_ns) = (hold.acked, hold.armed_ns);
            let is_acked_hole = acked.end > stream.offset && !is_fin_likely(stream, hold);
            if is_acked_hole && self.is_over(acked.since_ns, self.ack_grace_ns) {
                self.skip_to(stream, acked.end, GapReason::Acknowledged, out);
                let offset = stream.offset;
                let Some(hold) = self.hold_of(stream) else { return };
                let _ = hold.pass_acked(offset, stream.fin_offset());
                // It waits anew, behind those that came in the meantime.
                self.holds.arm(stream.hold, Wait::Open, now_ns);
                continue;
            }
            if stream.is_acked() || !self.is_over(armed_ns, self.hole_timeout_ns) {
                return;
            }
            let Some(to) = self.first_known(stream) else { return };
            self.skip_hole(stream, to, GapReason::Deadline, out);
            if self.first_known(stream).is_none() {
                return self.holds.arm(stream.hold, Wait::Open, now_ns);
            }
            self.holds.arm(stream.hold, Wait::Deadline, armed_ns.saturating_add(self.hole_timeout_ns));
        }
    }

    /// Gives up all that is missing up to an offset, but for what may be the FIN.
    fn skip_to(&mut self, stream: &mut Stream, end: u64, reason: GapReason, out: &mut Out<'_>) {
        while stream.offset < end {
            if self.hold_of(stream).is_some_and(|hold| is_fin_likely(stream, hold)) {
                return;
            }
            let first = self.hold_of(stream).and_then(|hold| hold.pieces.first_start());
            self.skip_hole(stream, first.map_or(end, |first| first.min(end)), reason, out);
        }
    }

    /// Gives up what is missing up to an offset that is not beyond the first piece, and delivers what follows.
    pub(super) fn skip_hole(&mut self, stream: &mut Stream, to: u64, reason: GapReason, out: &mut Out<'_>) {
        self.gap(stream, to, reason, out);
        let Self { store, holds, memory, stats, compared_len, now_ns, .. } = self;
        let hold = if stream.has(Stream::HELD) { holds.get_mut(stream.hold) } else { None };
        let Some(hold) = hold else { return };
        let (recent, timestamp) = (&mut hold.recent, Timestamp::from_nanos(*now_ns));
        let end = hold.pieces.drain(store, stream.offset, stream.drain_limit(), &mut |event| {
            match event {
                StreamEvent::Chunk(chunk) if *compared_len > 0 => {
                    stats.uncompared_octet_count +=
                        recent.push(memory, chunk.offset, chunk.bytes, *compared_len, timestamp);
                }
                StreamEvent::Gap(gap) => stats.count_gap(gap.reason, gap.len),
                _ => {}
            }
            out(event);
        });
        stream.advance_to(end);
        store.trim(memory);
    }

    /// Tells a gap from where the stream stands to an offset.
    pub(super) fn gap(&mut self, stream: &mut Stream, to: u64, reason: GapReason, out: &mut Out<'_>) {
        let (offset, len) = (stream.offset, to.saturating_sub(stream.offset));
        if len > 0 {
            stream.advance_to(to);
            self.stats.count_gap(reason, len);
            out(&StreamEvent::Gap(Gap { offset, len, reason }));
        }
    }

    /// Delivers all that is held, and tells all that is known to be missing.
    pub(super) fn deliver_rest(&mut self, stream: &mut Stream, reason: GapReason, out: &mut Out<'_>) {
        while let Some(to) = self.first_known(stream) {
            self.skip_hole(stream, to, reason, out);
        }
        let acked_end = self.hold_of(stream).map_or(0, |hold| hold.acked_latest.end);
        if !stream.has(Stream::FIN_KNOWN) {
            self.skip_to(stream, acked_end, reason, out);
        }
        self.reach_fin(stream, out);
    }

    fn reach_fin(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        if stream.has(Stream::FIN_KNOWN) && !stream.has(Stream::ENDED) && stream.next == stream.fin {
            stream.flags |= Stream::ENDED;
            out(&StreamEvent::Fin { offset: stream.offset });
            let Self { store, holds, memory, stats, .. } = self;
            let hold = if stream.has(Stream::HELD) { holds.get_mut(stream.hold) } else { None };
            let Some(pieces) = hold.map(|hold| &mut hold.pieces) else { return };
            if let Some((first, end)) = pieces.first_start().zip(pieces.last_end()) {
                stats.after_fin_count += 1;
                out(&StreamEvent::AfterFin { offset: first, len: end - first });
                pieces.clear(store, memory);
            }
        }
    }

    /// After anything happened: reaches the FIN, frees a hold that is not needed, or puts it where it waits.
    pub(super) fn settle(&mut self, stream: &mut Stream, name: T, before: u64, out: &mut Out<'_>) {
        if stream.has(Stream::STOPPED) {
            return;
        }
        self.reach_fin(stream, out);
        let is_waiting_for_fin = stream.has(Stream::FIN_KNOWN) && !stream.has(Stream::ENDED);
        let has_dropped = !stream.is_acked() && stream.dropped_end().is_some();
        if is_waiting_for_fin || has_dropped {
            // Without memory for it, the end of the stream tells the gap.
            let _ = self.hold_or_new(stream, name);
        }
        let (now_ns, offset) = (self.now_ns, stream.offset);
        let Some(hold) = (if stream.has(Stream::HELD) { self.holds.get_mut(stream.hold) } else { None })
        else {
            stream.flags &= !Stream::HELD;
            return;
        };
        let is_acked_anew = hold.pass_acked(offset, stream.fin_offset());
        let has_hole = !hold.pieces.is_empty() || is_waiting_for_fin || has_dropped;
        let wait = match () {
            () if is_fin_likely(stream, hold) => Wait::Open,
            () if hold.acked.end > offset => Wait::Grace,
            () if has_hole && stream.is_acked() => Wait::Open,
            () if has_hole => Wait::Deadline,
            () if stream.has(Stream::COMPARED) => Wait::Kept,
            () => return self.release(stream),
        };
        let armed_ns = hold.armed_ns;
        let was = self.holds.wait(stream.hold);
        let has_progressed = offset > before;
        let is_renewed = match wait {
            Wait::Deadline => has_progressed,
            Wait::Grace => is_acked_anew,
            _ => false,
        };
        if wait != was || is_renewed {
            let is_kept = was == Wait::Offered && !has_progressed;
            self.holds.arm(stream.hold, wait, if is_kept { armed_ns } else { now_ns });
        }
    }

    /// Takes back what the stream that was quiet longest keeps for comparison. Whether there was any.
    pub(super) fn drop_compared(&mut self) -> bool {
        let Some((handle, _)) = self.holds.oldest(Wait::Kept) else { return false };
        self.holds.remove(&mut self.store, &mut self.memory, handle);
        true
    }
}

/// Whether what was acknowledged is most likely a FIN that was not captured: one octet that nobody saw, with nothing
/// behind it.
fn is_fin_likely<T>(stream: &Stream, hold: &Hold<T>) -> bool {
    hold.pieces.is_empty() && hold.acked_latest.end == stream.offset + 1 && !stream.has(Stream::FIN_KNOWN)
}
