//! End of holes that are not filled: after an acknowledgment, at a deadline, after an overflow, or at the end of the
//! stream.

use super::event::{Cause, Gap, GapReason, StreamEvent};
use super::held_states::{Acked, HeldState, Wait};
use super::pieces::Out;
use super::reassembler::{Reassembler, WINDOW_MAX};
use super::segment::Segment;
use super::stream::{ACK_AHEAD_MAX, Handle, Peer, Stream};
use crate::base::{TcpFlags, Timestamp};

impl<T: Copy> Reassembler<T> {
    /// Returns the name of a stream with a hole that [`skip`](Self::skip) can end at `now`: the grace period or the
    /// deadline of the hole has expired, or memory is short and the stream has waited longest. Takes constant time.
    ///
    /// Without this call, the same holes end at the same offsets when the next segment of the stream arrives; the call
    /// only makes this happen earlier. Call `skip` for the returned stream before the next call of `next_due`;
    /// otherwise the held octets of the stream are discarded.
    #[inline]
    pub fn next_due(&mut self, now: Timestamp) -> Option<T> {
        self.next_overdue(now).or_else(|| self.next_pressed())
    }

    /// Returns the name of the stream with the hole that was due first, if its time is not after `now`.
    pub(crate) fn next_overdue(&mut self, now: Timestamp) -> Option<T> {
        self.now_ns = self.now_ns.max(now.as_nanos());
        // Every waiting hold uses memory.
        if self.memory.held_bytes() == 0 {
            return None;
        }
        self.remove_returned();
        let (handle, due_ns) = self.first_due()?;
        if due_ns <= self.now_ns { self.take_due(handle) } else { None }
    }

    /// Returns the time in nanoseconds at which [`next_overdue`](Self::next_overdue) will return a stream; `u64::MAX`
    /// if no hole ends by time.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> u64 {
        if self.memory.held_bytes() == 0 {
            u64::MAX
        } else {
            self.first_due().map_or(u64::MAX, |(_, due_ns)| due_ns)
        }
    }

    /// Returns the handle of the stream with the hole that is due first, and the due time in nanoseconds. Considers the
    /// first streams in the lists that wait for a time.
    fn first_due(&self) -> Option<(Handle, u64)> {
        let oldest = |wait| self.holds.oldest(wait);
        let graced = oldest(Wait::Grace).map(|(handle, hold)| (handle, self.graced_until_ns(hold)));
        let late = oldest(Wait::Late).map(|(handle, hold)| (handle, self.late_until_ns(hold)));
        let overdue = oldest(Wait::Deadline)
            .map(|(handle, hold)| (handle, hold.armed_ns.saturating_add(self.hole_timeout_ns)));
        [graced, late, overdue].into_iter().flatten().min_by_key(|(_, due_ns)| *due_ns)
    }

    /// Returns the time in nanoseconds at which an acknowledged hole ends that octets or the FIN follow.
    fn graced_until_ns(&self, hold: &HeldState<T>) -> u64 {
        let late_ns = hold.acked.since_ns.saturating_add(self.skew_max_ns);
        hold.graced_ns().saturating_add(self.ack_grace_ns).min(late_ns)
    }

    /// Returns the time in nanoseconds until which a stream waits for a direction that may be captured late.
    pub(super) fn late_until_ns(&self, hold: &HeldState<T>) -> u64 {
        hold.late_ns().saturating_add(self.skew_max_ns)
    }

    /// Returns the name of the stream that `handle` refers to, and moves its held state to the list [`Wait::Returned`]
    /// until the caller processes the stream.
    fn take_due(&mut self, handle: Handle) -> Option<T> {
        let hold = self.holds.get(handle)?;
        let (name, armed_ns) = (hold.name, hold.armed_ns);
        self.holds.arm(handle, Wait::Returned, armed_ns);
        Some(name)
    }

    /// Removes the held state of streams that were returned to the caller but not processed: these streams were dropped
    /// without `finish`.
    fn remove_returned(&mut self) {
        while let Some((handle, _)) = self.holds.oldest(Wait::Returned) {
            self.stats.orphaned_count += 1;
            self.holds.remove(&mut self.store, &mut self.memory, handle);
        }
    }

    /// Returns the name of the stream that has waited longest for a hole to be filled, if memory is short.
    pub(crate) fn next_pressed(&mut self) -> Option<T> {
        if self.memory.held_bytes() == 0 {
            return None;
        }
        self.remove_returned();
        while self.memory.is_pressed()
            && let Some((handle, _)) = self.holds.oldest(Wait::Kept)
        {
            // Octets kept for comparison only are evicted first, without notice to their stream.
            self.holds.remove(&mut self.store, &mut self.memory, handle);
        }
        if self.memory.must_release() {
            self.holds.give_back(&mut self.memory);
        }
        if !self.memory.is_pressed() {
            return None;
        }
        let waits = [Wait::Open, Wait::Deadline, Wait::Late, Wait::Grace].into_iter();
        let oldest = waits.filter_map(|wait| self.holds.oldest(wait)).min_by_key(|(_, hold)| hold.armed_ns);
        let (handle, _) = oldest?;
        self.take_due(handle)
    }

    /// Ends the holes of a stream that are due. If no hole is due and memory is short, ends the stream's first hole.
    pub fn skip(&mut self, stream: &mut Stream, name: T, mut out: impl FnMut(StreamEvent<'_>)) {
        let mut out = |event: &StreamEvent<'_>| out(*event);
        let offered = stream.offset;
        self.end_due(stream, self.now_ns, &mut out);
        let before = stream.offset;
        if before == offered && self.memory.is_pressed() {
            self.end_first_hole(stream, &mut out);
        }
        self.settle(stream, name, before, &mut out);
    }

    /// Ends the holes of a stream that are due when a segment of the opposite direction arrives, so that the order of
    /// events in both directions depends only on their segments, and not on when the caller calls
    /// [`next_due`](Self::next_due).
    #[inline(never)]
    pub(super) fn pass_time(&mut self, stream: &mut Stream, name: T, now_ns: u64, out: &mut Out<'_>) {
        let offered = stream.offset;
        self.end_due(stream, now_ns, out);
        if stream.offset != offered || self.holds.wait(stream.hold) == Wait::Returned {
            self.settle(stream, name, stream.offset, out);
        }
    }

    /// Ends the holes of a stream that are due at `now`, for a caller that processes both directions in the order of
    /// due times.
    pub(crate) fn pass(
        &mut self,
        stream: &mut Stream,
        name: T,
        now: Timestamp,
        mut out: impl FnMut(StreamEvent<'_>),
    ) {
        if stream.has(Stream::HELD) && !stream.has(Stream::STOPPED) {
            self.pass_time(stream, name, now.as_nanos(), &mut |event| out(*event));
        }
    }

    /// Returns the time at which the first hole of a stream ends; `None` if no timeout applies to it.
    pub(crate) fn due(&self, stream: &Stream) -> Option<Timestamp> {
        if !stream.has(Stream::HELD) || stream.has(Stream::STOPPED) {
            return None;
        }
        let hold = self.holds.get(stream.hold)?;
        // There is no hole before octets that wait for the opposite direction.
        if is_waiting(stream, hold) {
            return None;
        }
        let due_ns = if hold.acked.end > stream.offset && !is_fin_likely(stream, hold) {
            if is_tail(stream, hold) { self.late_until_ns(hold) } else { self.graced_until_ns(hold) }
        } else if !stream.is_acked() && first_known(stream, hold).is_some() {
            hold.armed_ns.saturating_add(self.hole_timeout_ns)
        } else {
            return None;
        };
        Some(Timestamp::from_nanos(due_ns))
    }

    /// Ends the first hole of a stream to release memory for other streams.
    fn end_first_hole(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        let cause = Cause { reason: GapReason::Overflow, timestamp: Timestamp::from_nanos(self.now_ns) };
        if let Some(to) = self.first_known(stream) {
            return self.skip_hole(stream, to, cause, out);
        }
        // The stream holds no octets, only acknowledgments.
        let Some(hold) = self.hold_of(stream) else { return };
        let end = hold.acked_latest.end;
        if !is_fin_likely(stream, hold) {
            self.gap(stream, end, cause, out);
        }
        if let Some(hold) = self.hold_of(stream) {
            (hold.acked, hold.acked_latest) = Default::default();
        }
    }

    /// Ends a stream at the time `now`: ends the holes that are due by then, delivers the held octets and the gaps
    /// between them, and releases the memory. Resets the stream to its initial state.
    pub fn finish_at(&mut self, now: Timestamp, stream: &mut Stream, mut out: impl FnMut(StreamEvent<'_>)) {
        if !stream.has(Stream::STOPPED) {
            let mut out = |event: &StreamEvent<'_>| out(*event);
            // The clock of the reassembler may be ahead of or behind this stream.
            self.end_due(stream, now.as_nanos(), &mut out);
            self.delivered_at = Timestamp::ZERO;
            self.deliver_rest(stream, Cause { reason: GapReason::EndOfStream, timestamp: now }, &mut out);
        }
        self.release(stream);
        *stream = Stream::default();
    }

    /// Ends a stream at the highest timestamp seen, without checking whether holes are due: delivers the held octets
    /// and the gaps between them, and releases the memory. Resets the stream to its initial state.
    pub fn finish(&mut self, stream: &mut Stream, mut out: impl FnMut(StreamEvent<'_>)) {
        if !stream.has(Stream::STOPPED) {
            let cause =
                Cause { reason: GapReason::EndOfStream, timestamp: Timestamp::from_nanos(self.now_ns) };
            self.delivered_at = Timestamp::ZERO;
            self.deliver_rest(stream, cause, &mut |event| out(*event));
        }
        self.release(stream);
        *stream = Stream::default();
    }

    /// Processes an acknowledgment by the receiver of a stream; it may be beyond the captured octets.
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
            // If the SYN of a handshake was not captured, its acknowledgment determines where the stream begins.
            if segment.flags.contains(TcpFlags::SYN) {
                stream.anchor(segment.ack, if self.compared_len > 0 { Stream::COMPARED } else { 0 });
                stream.marks |= Stream::ACKED;
            }
            return;
        }
        self.end_due(stream, self.now_ns, out);
        self.delivered_at = segment.timestamp;
        if stream.has(Stream::DOUBTED)
            && segment.ack.distance_from(stream.next) >= i32::from(stream.padding_len)
        {
            self.believe(stream, name, segment.timestamp, out);
        }
        let before = stream.offset;
        stream.marks |= Stream::ACKED;
        if stream.marks & Stream::CONTESTED != 0 {
            self.confirm_start(stream, segment.ack, out);
        }
        let ahead = segment.ack.distance_from(stream.next);
        if ahead.unsigned_abs() >= WINDOW_MAX {
            self.hint_start(stream, segment.ack);
        }
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
            // Memory for a hold was refused. A single octet may be the FIN.
            None if end == offset + 1 => {}
            None => {
                let timestamp = Timestamp::from_nanos(now_ns);
                self.skip_to(stream, end, Cause { reason: GapReason::Acknowledged, timestamp }, out);
            }
        }
    }

    /// Returns the stream offset at which the first hole of a stream ends: the start of the first held piece, the FIN,
    /// or the end of the dropped octets.
    fn first_known(&self, stream: &Stream) -> Option<u64> {
        let hold = if stream.has(Stream::HELD) { self.holds.get(stream.hold) } else { None };
        match hold {
            Some(hold) => first_known(stream, hold),
            None => stream.fin_offset().filter(|fin| *fin > stream.offset).or_else(|| stream.dropped_end()),
        }
    }

    /// Ends the holes of a stream that are due at `now_ns`. The result does not depend on when this is called: the
    /// deadline of a hole is counted from the deadline of the previous one, and the time of a gap is the time at which
    /// it was due.
    pub(super) fn end_due(&mut self, stream: &mut Stream, now_ns: u64, out: &mut Out<'_>) {
        while let Some(due) = self.due(stream).filter(|due| due.as_nanos() <= now_ns) {
            self.delivered_at = Timestamp::ZERO;
            let Some(hold) = self.hold_of(stream) else { return };
            if hold.acked.end > stream.offset && !is_fin_likely(stream, hold) {
                // Octets after the last captured ones may only be late, so that they are due after `skew_max`.
                let end = last_known(stream, hold).unwrap_or(u64::MAX).min(hold.acked.end);
                let cause = Cause { reason: GapReason::Acknowledged, timestamp: due };
                self.skip_to(stream, end, cause, out);
                let (offset, fin) = (stream.offset, stream.fin_offset());
                if let Some(hold) = self.hold_of(stream) {
                    let _ = hold.pass_acked(offset, fin);
                    // The hold waits again, behind those that were added in the meantime.
                    self.holds.arm(stream.hold, Wait::Open, now_ns);
                }
            } else {
                let Some(to) = self.first_known(stream) else { return };
                self.skip_hole(stream, to, Cause { reason: GapReason::Deadline, timestamp: due }, out);
                let has_more = self.first_known(stream).is_some();
                let (wait, since_ns) =
                    if has_more { (Wait::Deadline, due.as_nanos()) } else { (Wait::Open, now_ns) };
                self.holds.arm(stream.hold, wait, since_ns);
            }
            self.reach_fin(stream, out);
        }
    }

    /// Skips all missing octets of a stream up to the offset `end`, except a last octet that may be the FIN. Ends at
    /// octets that wait for the opposite direction.
    pub(super) fn skip_to(&mut self, stream: &mut Stream, end: u64, cause: Cause, out: &mut Out<'_>) {
        while stream.offset < end {
            if self.hold_of(stream).is_some_and(|hold| is_fin_likely(stream, hold)) {
                return;
            }
            let before = stream.offset;
            let first = self.hold_of(stream).and_then(|hold| hold.pieces.first_start());
            self.skip_hole(stream, first.map_or(end, |first| first.min(end)), cause, out);
            if stream.offset == before {
                // The next octets wait for the opposite direction.
                return;
            }
        }
    }

    /// Skips the missing octets up to the stream offset `to`, which is not beyond the first held piece, and delivers
    /// the held octets that follow.
    pub(super) fn skip_hole(&mut self, stream: &mut Stream, to: u64, cause: Cause, out: &mut Out<'_>) {
        self.gap(stream, to, cause, out);
        // Held octets keep their capture time, no matter when the hole in front of them ends.
        self.delivered_at = Timestamp::ZERO;
        let Self { store, holds, memory, stats, compared_len, delivered_at, peer, .. } = self;
        let hold = if stream.has(Stream::HELD) { holds.get_mut(stream.hold) } else { None };
        let Some(hold) = hold else { return };
        let recent = &mut hold.recent;
        let range = (stream.offset, stream.drain_limit());
        let end = hold.pieces.drain(store, range, *peer, delivered_at, &mut |event| {
            match event {
                StreamEvent::Chunk(chunk) if *compared_len > 0 => {
                    stats.uncompared_octet_count += recent.push(memory, chunk, *compared_len);
                }
                StreamEvent::Gap(gap) => stats.count_gap(gap.reason, gap.len),
                _ => {}
            }
            out(event);
        });
        stream.advance_to(end);
        store.trim(memory);
    }

    /// Reports a gap from the current offset of the stream to the offset `to`, and continues the stream there.
    pub(super) fn gap(&mut self, stream: &mut Stream, to: u64, cause: Cause, out: &mut Out<'_>) {
        let (offset, len) = (stream.offset, to.saturating_sub(stream.offset));
        if len > 0 {
            stream.advance_to(to);
            self.stats.count_gap(cause.reason, len);
            out(&StreamEvent::Gap(Gap::new(offset, len, cause.reason).at(cause.timestamp)));
        }
    }

    /// Delivers all held octets of a stream, and reports all octets that are known to be missing as gaps.
    pub(super) fn deliver_rest(&mut self, stream: &mut Stream, cause: Cause, out: &mut Out<'_>) {
        self.believe_at_end(stream, cause.timestamp, out);
        self.peer = Peer::Unknown;
        while let Some(to) = self.first_known(stream) {
            self.skip_hole(stream, to, cause, out);
        }
        let acked_end = self.hold_of(stream).map_or(0, |hold| hold.acked_latest.end);
        if !stream.has(Stream::FIN_KNOWN) {
            self.skip_to(stream, acked_end, cause, out);
        }
        self.reach_fin(stream, out);
    }

    fn reach_fin(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        if stream.has(Stream::FIN_KNOWN) && !stream.has(Stream::ENDED) && stream.next == stream.fin {
            stream.flags |= Stream::ENDED;
            let fin_at = self.hold_of(stream).map_or(Timestamp::ZERO, |hold| hold.fin_at);
            out(&StreamEvent::Fin { offset: stream.offset, timestamp: self.delivered_at.max(fin_at) });
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

    /// Completes an operation on a stream: ends the stream if the FIN is reached, and then removes the stream's held
    /// state, or moves it to the list for what the stream waits for now.
    pub(super) fn settle(&mut self, stream: &mut Stream, name: T, before: u64, out: &mut Out<'_>) {
        if stream.has(Stream::STOPPED) {
            return;
        }
        self.reach_fin(stream, out);
        let is_waiting_for_fin = stream.has(Stream::FIN_KNOWN) && !stream.has(Stream::ENDED);
        let has_dropped = !stream.is_acked() && stream.dropped_end().is_some();
        if is_waiting_for_fin || has_dropped {
            // Without memory for a hold, the gap is reported at the end of the stream.
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
            () if is_waiting(stream, hold) => Wait::Late,
            () if hold.acked.end > offset && is_tail(stream, hold) => Wait::Late,
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
            Wait::Late => has_progressed || is_acked_anew,
            Wait::Grace => is_acked_anew,
            _ => false,
        };
        if wait != was || is_renewed {
            let is_kept = was == Wait::Returned && !has_progressed;
            self.holds.arm(stream.hold, wait, if is_kept { armed_ns } else { now_ns });
        }
    }

    /// Discards the octets of the stream that has been longest in the list [`Wait::Kept`], which are kept only for
    /// comparison with repeated octets. Returns whether there was such a stream.
    pub(super) fn drop_compared(&mut self) -> bool {
        let Some((handle, _)) = self.holds.oldest(Wait::Kept) else { return false };
        self.holds.remove(&mut self.store, &mut self.memory, handle);
        true
    }
}

/// Returns the stream offset at which the first hole of a stream ends: the start of the first held piece, the FIN, or
/// the end of the dropped octets.
fn first_known<T>(stream: &Stream, hold: &HeldState<T>) -> Option<u64> {
    let first = hold.pieces.first_start();
    match stream.fin_offset() {
        // Held octets after the FIN are never delivered.
        Some(fin) => Some(first.map_or(fin, |first| first.min(fin))).filter(|_| fin > stream.offset),
        None => first.or_else(|| stream.dropped_end()),
    }
}

/// Returns the stream offset after the last captured octets behind the first hole of a stream; `None` if there are none,
/// or if octets after them, such as the FIN, are known.
fn last_known<T>(stream: &Stream, hold: &HeldState<T>) -> Option<u64> {
    hold.pieces.last_end().filter(|_| !stream.has(Stream::FIN_KNOWN) && stream.dropped_end().is_none())
}

/// Returns whether the next octets of a stream are held because they wait for the opposite direction.
pub(super) fn is_waiting<T>(stream: &Stream, hold: &HeldState<T>) -> bool {
    hold.pieces.first_start() == Some(stream.offset) && !stream.has(Stream::ENDED)
}

/// Returns whether nothing was captured after the hole of a stream, so that the whole direction may be late.
fn is_tail<T>(stream: &Stream, hold: &HeldState<T>) -> bool {
    hold.pieces.is_empty() && !stream.has(Stream::FIN_KNOWN) && stream.dropped_end().is_none()
}

/// Returns whether an acknowledged octet that is missing is most likely a FIN that was not captured: it is a single
/// octet, and no octets after it are held.
fn is_fin_likely<T>(stream: &Stream, hold: &HeldState<T>) -> bool {
    hold.pieces.is_empty() && hold.acked_latest.end == stream.offset + 1 && !stream.has(Stream::FIN_KNOWN)
}
