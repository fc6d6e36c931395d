//! The time check: a time far ahead of all others is accepted only if the next frame confirms it.
//!
//! Flows, holes and fragments expire by packet time. A single timestamp in the far future, from a damaged file or a
//! failing clock, would end them all. A frame whose time is far ahead of all earlier ones is therefore deferred until
//! the next frame. If that frame steps back as far, the deferred frame is processed at the latest accepted time. In a
//! capture in chronological order no frame is ever doubted, regardless of pauses. The result depends only on the frames
//! and their order.

use std::time::Duration;

use crate::base::{Frame, FrameBatch, LinkType, Timestamp};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::{Prefix, Reader};

/// Maximum duration by which a frame's time may exceed all earlier times and still be accepted at once. By default, no
/// established connection times out within this duration.
pub const TIME_JUMP_MAX: Duration = Duration::from_secs(300);

/// State of the check for frame times that are far ahead of all earlier ones.
#[derive(Debug, Default)]
pub(super) struct Jumps {
    /// Time of the first frame with a time in nanoseconds; zero before it.
    first_ns: u64,
    /// Latest accepted frame time in nanoseconds; zero before the first one.
    latest_ns: u64,
    /// Latest frame time that was not accepted, in nanoseconds; zero for none.
    doubted_ns: u64,
    /// The deferred frame, which waits for the next frame to confirm its time; empty if there is none.
    held: FrameBatch,
    /// True if every frame time is accepted without a check.
    pub(super) is_off: bool,
    /// True if a time was far ahead of all earlier ones, accepted or not.
    pub(super) has_jumped: bool,
    /// Number of frames with a time that was not accepted.
    pub(super) doubted_count: u64,
}

/// Result of the check of the times of several frames.
#[derive(Default)]
struct Verdicts {
    /// Index of each frame whose time was corrected, and the corrected time in nanoseconds.
    corrected: Vec<(usize, u64)>,
    /// True if the last frame is deferred, until the next frame confirms its time or not.
    is_last_held: bool,
}

impl Jumps {
    /// Creates the state of the time check before the first frame. If `is_off` is true, every time is accepted.
    pub(super) fn new(is_off: bool) -> Self {
        Self { is_off, ..Self::default() }
    }

    /// Checks the frame times of a batch. Returns `None` if the frames are accepted unchanged; otherwise a batch that
    /// replaces them.
    #[inline]
    pub(super) fn review(&mut self, batch: &FrameBatch) -> Option<FrameBatch> {
        // If the latest time needs no check, neither does any other time of the batch.
        let latest_ns = batch.latest().as_nanos();
        if self.first_ns == 0 {
            let mut times_ns = batch.iter().map(|frame| frame.timestamp.as_nanos());
            self.first_ns = times_ns.find(|time_ns| *time_ns > 0).unwrap_or(0);
        }
        if self.is_plain(latest_ns) {
            self.latest_ns = self.latest_ns.max(latest_ns);
            return None;
        }
        self.review_each(batch)
    }

    /// Checks the time of a single frame. Returns `None` if the frame is accepted unchanged; otherwise a batch that
    /// replaces it, which is empty if the frame is deferred.
    #[inline]
    pub(super) fn review_frame(&mut self, frame: &Frame<'_>) -> Option<FrameBatch> {
        let time_ns = frame.timestamp.as_nanos();
        // Before the first time there is no reference.
        let is_first = self.latest_ns == 0 && self.held.is_empty();
        if self.first_ns == 0 {
            self.first_ns = time_ns;
        }
        if is_first || self.is_plain(time_ns) {
            self.latest_ns = self.latest_ns.max(time_ns);
            return None;
        }
        let mut batch = FrameBatch::new();
        batch.push(frame);
        self.review_each(&batch)
    }

    #[inline]
    fn is_plain(&self, time_ns: u64) -> bool {
        self.is_off || (self.held.is_empty() && self.latest_ns > 0 && !is_ahead(time_ns, self.latest_ns))
    }

    #[cold]
    #[inline(never)]
    fn review_each(&mut self, batch: &FrameBatch) -> Option<FrameBatch> {
        let held = std::mem::take(&mut self.held);
        let frames = || held.iter().chain(batch.iter());
        let verdicts = self.judge(frames().map(|frame| frame.timestamp.as_nanos()));
        if held.is_empty() && verdicts.corrected.is_empty() && !verdicts.is_last_held {
            return None;
        }
        let count = held.len() + batch.len() - usize::from(verdicts.is_last_held);
        let mut reviewed = FrameBatch::new();
        let mut corrected = verdicts.corrected.iter().peekable();
        for (index, frame) in frames().enumerate() {
            if index == count {
                self.held.push(&frame);
                break;
            }
            let time = corrected.next_if(|(corrected, _)| *corrected == index);
            let timestamp = time.map_or(frame.timestamp, |(_, ns)| Timestamp::from_nanos(*ns));
            reviewed.push(&Frame { timestamp, ..frame });
        }
        Some(reviewed)
    }

    fn judge(&mut self, times_ns: impl Iterator<Item = u64>) -> Verdicts {
        let mut verdicts = Verdicts::default();
        let mut times_ns = times_ns.enumerate().peekable();
        while let Some((index, time_ns)) = times_ns.next() {
            let has_jumped = self.latest_ns > 0 && is_ahead(time_ns, self.latest_ns);
            self.has_jumped |= has_jumped;
            let is_doubtful = has_jumped && time_ns.abs_diff(self.doubted_ns) > nanos(TIME_JUMP_MAX);
            match times_ns.peek() {
                None if is_doubtful => verdicts.is_last_held = true,
                Some((_, next_ns)) if is_doubtful && is_ahead(time_ns, *next_ns) => {
                    self.doubt(time_ns);
                    verdicts.corrected.push((index, self.latest_ns));
                }
                _ => self.latest_ns = self.latest_ns.max(time_ns),
            }
        }
        verdicts
    }

    const fn doubt(&mut self, time_ns: u64) {
        self.doubted_ns = time_ns;
        self.doubted_count += 1;
    }

    /// Returns the time of the first frame with a time, and the latest accepted time; `None` before that frame.
    pub(super) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        let times = (Timestamp::from_nanos(self.first_ns), Timestamp::from_nanos(self.latest_ns));
        (self.first_ns > 0).then_some(times)
    }

    /// Returns whether the check of frames that follow is the same with a new state as with this one, if the first of them
    /// has the time `first_ns`.
    pub(super) fn is_plain_before(&self, first_ns: u64) -> bool {
        self.held.is_empty() && !(self.latest_ns > 0 && !self.is_off && is_ahead(first_ns, self.latest_ns))
    }

    /// Continues with the state `later`, which checked the frames that follow, without a jump among them.
    pub(super) fn follow(&mut self, later: &Self) {
        if self.first_ns == 0 {
            self.first_ns = later.first_ns;
        }
        self.latest_ns = self.latest_ns.max(later.latest_ns);
    }

    /// Returns the time of the first frame with a time in nanoseconds; zero before it.
    pub(super) const fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Returns whether all times were accepted at once.
    pub(super) fn is_calm(&self) -> bool {
        !self.has_jumped && self.held.is_empty()
    }

    /// Returns a copy of the current state.
    pub(super) fn snapshot(&self) -> Self {
        let mut held = FrameBatch::default();
        self.held.iter().for_each(|frame| held.push(&frame));
        Self { held, ..*self }
    }

    /// Writes the state of the check to a checkpoint, with the deferred frame.
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        out.be(self.latest_ns)?;
        out.be(self.doubted_ns)?;
        out.varint(self.held.len() as u64)?;
        for frame in self.held.iter() {
            out.be(frame.timestamp.as_nanos())?;
            out.be(frame.link_type.0)?;
            out.be(frame.wire_len)?;
            out.be(frame.interface)?;
            out.prefixed(Prefix::U32, frame.data)?;
        }
        Ok(())
    }

    /// Reads the state of the check from a checkpoint.
    pub(super) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        self.latest_ns = reader.be()?;
        self.doubted_ns = reader.be()?;
        for _ in 0..reader.varint()? {
            self.held.push(&Frame {
                timestamp: Timestamp::from_nanos(reader.be()?),
                link_type: LinkType(reader.be()?),
                wire_len: reader.be()?,
                interface: reader.be()?,
                data: reader.prefixed(Prefix::U32)?,
            });
        }
        Ok(())
    }

    /// Returns the deferred frame with its own time, because no frame follows that could confirm it.
    pub(super) fn release(&mut self) -> Option<FrameBatch> {
        if self.held.is_empty() {
            return None;
        }
        self.latest_ns = self.latest_ns.max(self.held.latest().as_nanos());
        Some(std::mem::take(&mut self.held))
    }

    /// Returns the deferred frame. Its time is kept if it is not far ahead of `now`, the time of the caller's clock,
    /// and of all frames; otherwise it is corrected.
    pub(super) fn release_at(&mut self, now: Timestamp) -> Option<FrameBatch> {
        self.latest_ns = self.latest_ns.max(now.as_nanos());
        let time_ns = self.held.latest().as_nanos();
        if self.held.is_empty() || !is_ahead(time_ns, self.latest_ns) {
            return self.release();
        }
        self.doubt(time_ns);
        let held = std::mem::take(&mut self.held);
        let mut corrected = FrameBatch::new();
        let timestamp = Timestamp::from_nanos(self.latest_ns);
        held.iter().for_each(|frame| corrected.push(&Frame { timestamp, ..frame }));
        Some(corrected)
    }
}

const fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// Returns whether the time `time_ns` exceeds `of_ns` by more than [`TIME_JUMP_MAX`].
#[inline]
const fn is_ahead(time_ns: u64, of_ns: u64) -> bool {
    time_ns > of_ns.saturating_add(nanos(TIME_JUMP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const FAR: u64 = 1 << 33;

    /// Returns the times in seconds that the check assigns to frames in batches of `size` frames, and the number of
    /// times that were not accepted.
    fn accepted_times(size: usize, seconds: &[u64]) -> (Vec<u64>, u64) {
        let mut jumps = Jumps::default();
        let mut times = Vec::new();
        let mut take = |batch: &FrameBatch| {
            times.extend(batch.iter().map(|frame| frame.timestamp.as_nanos() / 1_000_000_000));
        };
        for part in seconds.chunks(size) {
            let mut batch = FrameBatch::new();
            for second in part {
                batch.push(&Frame::ethernet(Timestamp::from_parts(*second, 0), &[1, 2, 3]));
            }
            take(jumps.review(&batch).as_ref().unwrap_or(&batch));
        }
        jumps.release().iter().for_each(&mut take);
        (times, jumps.doubted_count)
    }

    #[track_caller]
    fn check(seconds: &[u64], accepted: &[u64], doubted_count: u64) {
        for size in [1, 2, 3, 1000] {
            assert_eq!(
                accepted_times(size, seconds),
                (accepted.to_vec(), doubted_count),
                "in batches of {size}"
            );
        }
        // The frames are also reviewed one by one.
        let mut jumps = Jumps::default();
        let mut times = Vec::new();
        for second in seconds {
            let octets = [1, 2, 3];
            let frame = Frame::ethernet(Timestamp::from_parts(*second, 0), &octets);
            match jumps.review_frame(&frame) {
                None => times.push(*second),
                Some(batch) => {
                    times.extend(batch.iter().map(|frame| frame.timestamp.as_nanos() / 1_000_000_000))
                }
            }
        }
        times.extend(jumps.release().iter().flat_map(|batch| {
            batch.iter().map(|frame| frame.timestamp.as_nanos() / 1_000_000_000).collect::<Vec<_>>()
        }));
        assert_eq!((times, jumps.doubted_count), (accepted.to_vec(), doubted_count));
    }

    #[test]
    fn times_in_order_are_accepted_after_pauses_of_any_length() {
        let sparse: Vec<u64> = (1..20).map(|day| day * 86_400).collect();
        check(&sparse, &sparse, 0);
        check(&[10, 11, 12, FAR, FAR + 1, FAR + 1], &[10, 11, 12, FAR, FAR + 1, FAR + 1], 0);
        check(&[10, FAR], &[10, FAR], 0);
        check(&[FAR], &[FAR], 0);
        check(&[], &[], 0);
    }

    #[test]
    fn a_single_time_ahead_of_all_others_is_rejected() {
        check(&[10, 11, FAR, 12, 13], &[10, 11, 11, 12, 13], 1);
        check(&[10, FAR, 11, FAR / 2, 12, 13], &[10, 10, 11, 11, 12, 13], 2);
        // A later pause neither confirms a time nor causes doubt about the following frames.
        check(
            &[10, FAR, 10 + 20 * MINUTE, 11 + 20 * MINUTE],
            &[10, 10, 10 + 20 * MINUTE, 11 + 20 * MINUTE],
            1,
        );
        // A time close to all others needs no confirmation.
        check(&[10, 10 + 5 * MINUTE, 11], &[10, 10 + 5 * MINUTE, 11], 0);
        check(&[10, 11 + 5 * MINUTE, 11], &[10, 11 + 5 * MINUTE, 11], 0);
        check(&[10, 12 + 5 * MINUTE, 11], &[10, 10, 11], 1);
    }

    #[test]
    fn a_second_frame_confirms_another_clock() {
        // Every other frame is from an interface whose clock is an hour ahead.
        let hour = 60 * MINUTE;
        check(&[10, hour + 10, 11, hour + 11, 12, hour + 12], &[10, 10, 11, hour + 11, 12, hour + 12], 1);
    }

    #[test]
    fn frames_without_a_time_cause_no_doubt() {
        check(&[0, 0, FAR, 0, FAR + 1], &[0, 0, FAR, 0, FAR + 1], 0);
    }

    #[test]
    fn the_clock_of_the_caller_confirms_or_rejects_a_time() {
        let at = Timestamp::from_parts;
        for (now, accepted) in [(FAR, FAR), (FAR - 5 * MINUTE, FAR), (20, 20)] {
            let mut jumps = Jumps::default();
            let mut batch = FrameBatch::new();
            batch.push(&Frame::ethernet(at(10, 0), &[1]));
            batch.push(&Frame::ethernet(at(FAR, 0), &[2]));
            assert_eq!(jumps.review(&batch).map(|reviewed| reviewed.len()), Some(1));
            let released = jumps.release_at(at(now, 0)).expect("a buffered frame");
            assert_eq!(released.latest(), at(accepted, 0));
            assert!(jumps.release_at(at(now, 0)).is_none());
        }
    }
}
