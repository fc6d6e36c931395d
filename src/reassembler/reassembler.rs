//! The reassembler: segments in, bytes in order out.

use super::config::{ConfigError, ReassemblerConfig};
use super::event::{Chunk, StreamEvent};
use super::holds::{Hold, Holds};
use super::pieces::Out;
use super::policy::OverflowPolicy;
use super::segment::Segment;
use super::stats::ReassemblerStats;
use super::store::Store;
use super::stream::Stream;
use crate::base::{Account, Allowance, TcpFlags, Timestamp, duration_nanos};

/// Control bits that make a segment more than octets.
const CONTROL: u16 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;

/// The largest window that TCP can offer (RFC 7323 section 2.2): nothing sensible lies farther away.
pub(super) const WINDOW_MAX: u32 = 1 << 30;

/// Puts the octets of TCP connections in order. Owns all that waits; where each direction stands is in a [`Stream`] of the
/// caller's, and `T` names one: a flow and a side, say.
///
/// Octets that come in order are handed on as the segment's own bytes: no copy, no allocation, constant time. What comes ahead
/// of a hole is copied into blocks of 2 KiB, under the caps of [`Limits`](crate::base::Limits); a segment takes time
/// logarithmic in the number of pieces that its side holds, and linear in those that it overlaps or makes move.
#[derive(Debug)]
pub struct Reassembler<T> {
    pub(super) config: ReassemblerConfig,
    pub(super) ack_grace_ns: u64,
    pub(super) hole_timeout_ns: u64,
    /// Nothing is held, and what is ahead is dropped.
    is_in_order_only: bool,
    /// Octets to compare, a power of two, or zero.
    pub(super) compared_len: usize,
    pub(super) memory: Allowance,
    pub(super) store: Store,
    pub(super) holds: Holds<T>,
    /// The highest timestamp seen.
    pub(super) now_ns: u64,
    /// Capture time of the packet that brought the latest octets that the current call delivered.
    pub(super) delivered_at: Timestamp,
    pub(super) stats: ReassemblerStats,
}

impl<T: Copy> Default for Reassembler<T> {
    /// With the default configuration.
    fn default() -> Self {
        Self::build(ReassemblerConfig::default())
    }
}

impl<T: Copy> Reassembler<T> {
    /// A reassembler with a configuration of the caller's. Allocates nothing yet.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] for more octets to compare than allowed.
    pub fn new(config: ReassemblerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::build(config))
    }

    fn build(config: ReassemblerConfig) -> Self {
        let compared_len = match config.compared_len {
            0 => 0,
            len => (len as usize).next_power_of_two(),
        };
        let limits = &config.limits;
        let holds_nothing = limits.stream_side_bytes_max == 0 || limits.stream_side_segment_count_max == 0;
        Self {
            ack_grace_ns: duration_nanos(config.ack_grace),
            hole_timeout_ns: duration_nanos(config.hole_timeout),
            is_in_order_only: holds_nothing && config.overflow == OverflowPolicy::DropNewest,
            compared_len,
            memory: Allowance::new(config.budget.clone(), Account::Streams, config.limits.stream_bytes_max),
            store: Store::default(),
            holds: Holds::new(),
            now_ns: 0,
            delivered_at: Timestamp::ZERO,
            stats: ReassemblerStats::default(),
            config,
        }
    }

    /// Takes a segment of the direction that `stream` is about, and calls `out` with what it brings. `name` is what
    /// [`next_due`](Self::next_due) calls the stream by.
    ///
    /// The stream begins at the first segment, SYN or not, unless that may be a keep-alive. A repeated SYN changes nothing. A
    /// SYN with another number is the beginning if the receiver acknowledges it, or octets follow it, before any octets were
    /// delivered. A RST is left to the caller. Urgent octets stay where they are in the stream (RFC 6093).
    #[inline]
    pub fn segment(
        &mut self,
        stream: &mut Stream,
        name: T,
        segment: &Segment<'_>,
        mut out: impl FnMut(StreamEvent<'_>),
    ) {
        self.advance_clock(segment.timestamp);
        let bytes = segment.payload;
        let is_next = stream.flags == Stream::ANCHORED
            && segment.seq == stream.next
            && segment.flags.0 & CONTROL == 0
            && segment.len as usize == bytes.len();
        if is_next {
            if !bytes.is_empty() {
                let offset = stream.offset;
                stream.offset += u64::from(segment.len);
                stream.next = stream.next.add(segment.len);
                out(StreamEvent::Chunk(Chunk { offset, bytes, timestamp: segment.timestamp }));
            }
        } else if self.is_dropped(stream, segment) {
            stream.note_dropped(segment.seq.add(segment.len));
            self.stats.refused_count += 1;
        } else if !stream.has(Stream::STOPPED) {
            self.arrive(stream, name, segment, &mut |event| out(*event));
        }
    }

    /// Takes the acknowledgment in a segment of the other direction: what `stream` lacks up to there was received and
    /// is not waited for, but for a short grace.
    #[inline]
    pub fn acknowledgment(
        &mut self,
        stream: &mut Stream,
        name: T,
        segment: &Segment<'_>,
        mut out: impl FnMut(StreamEvent<'_>),
    ) {
        self.advance_clock(segment.timestamp);
        if stream.has(Stream::HELD) {
            self.pass_time(stream, name, self.now_ns, &mut |event| out(*event));
        }
        if !stream.has_plain_acks() || segment.ack.is_after(stream.next) {
            self.acknowledge(stream, name, segment, &mut |event| out(*event));
        }
    }

    /// Whether a segment is dropped because it is ahead and nothing may be held, as far as that is quickly told.
    #[inline(always)]
    fn is_dropped(&self, stream: &Stream, segment: &Segment<'_>) -> bool {
        let ahead = segment.seq.distance_from(stream.next);
        self.is_in_order_only
            && stream.flags == Stream::ANCHORED
            && stream.has_plain_acks()
            && segment.flags.0 & CONTROL == 0
            && segment.len < WINDOW_MAX
            && (1..WINDOW_MAX as i32).contains(&ahead)
    }

    /// Lets time go on, for segments that were captured earlier than others of which this reassembler does not know.
    #[inline(always)]
    pub fn advance_clock(&mut self, timestamp: Timestamp) {
        // A branch, so that nothing waits for the time of the segment before.
        if timestamp.as_nanos() > self.now_ns {
            self.now_ns = timestamp.as_nanos();
        }
    }

    /// Wants nothing more of a stream: what it holds is freed, and its later segments cost the test of a flag.
    pub fn stop(&mut self, stream: &mut Stream) {
        self.release(stream);
        stream.flags |= Stream::STOPPED;
    }

    /// Allowance in use, in bytes as accounted. Up to 128 KiB of it is spare.
    #[must_use]
    pub const fn held_bytes(&self) -> u64 {
        self.memory.held_bytes()
    }

    /// Streams that have something here.
    #[must_use]
    pub const fn held_stream_count(&self) -> usize {
        self.holds.live_count()
    }

    /// What it counted.
    #[must_use]
    pub const fn stats(&self) -> ReassemblerStats {
        let mut stats = self.stats;
        stats.held_bytes_max = self.memory.peak_bytes();
        stats
    }

    /// Panics unless lists, pieces and counts agree. For tests; takes time linear in what is held.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let (live_len, block_count, bytes) = self.holds.check_invariants();
        self.store.check_invariants(live_len, block_count);
        assert_eq!(bytes + self.store.spare_bytes(), self.memory.held_bytes(), "all memory is accounted");
        assert!(self.memory.held_bytes() <= self.config.limits.stream_bytes_max);
    }

    /// Pieces that were looked at or moved since it was made. For tests; counted in debug builds only.
    #[doc(hidden)]
    #[must_use]
    pub const fn step_count(&self) -> u64 {
        self.store.step_count
    }

    /// The hold of a stream, if it has one that was not taken back.
    pub(super) fn hold_of(&mut self, stream: &Stream) -> Option<&mut Hold<T>> {
        if stream.has(Stream::HELD) { self.holds.get_mut(stream.hold) } else { None }
    }

    /// The same, made if there is none and memory for it.
    pub(super) fn hold_or_new(&mut self, stream: &mut Stream, name: T) -> Option<&mut Hold<T>> {
        if !stream.has(Stream::HELD) || self.holds.get(stream.hold).is_none() {
            stream.flags &= !Stream::HELD;
            stream.hold = self.holds.insert(&mut self.memory, name)?;
            stream.flags |= Stream::HELD;
            self.holds.arm(stream.hold, super::holds::Wait::Open, self.now_ns);
        }
        self.holds.get_mut(stream.hold)
    }

    /// Frees what a stream holds.
    pub(super) fn release(&mut self, stream: &mut Stream) {
        if stream.has(Stream::HELD) {
            self.holds.remove(&mut self.store, &mut self.memory, stream.hold);
            stream.flags &= !Stream::HELD;
        }
    }

    /// The direction stops for want of room.
    pub(super) fn poison(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        self.release(stream);
        stream.flags |= Stream::STOPPED | Stream::POISONED;
        self.stats.poisoned_count += 1;
        out(&StreamEvent::Poisoned { offset: stream.offset });
    }
}
