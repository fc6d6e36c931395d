//! The reassembler: accepts segments and delivers bytes in order.

use super::config::ReassemblerConfig;
use super::event::{Chunk, StreamEvent};
use super::held_states::{HeldState, HeldStates};
use super::pieces::Out;
use super::policy::OverflowPolicy;
use super::segment::{PADDING_LEN_MAX, Segment};
use super::stats::ReassemblerStats;
use super::store::Store;
use super::stream::{Peer, Stream};
use crate::base::{Account, Allowance, ConfigError, Limits, Resources, TcpFlags, Timestamp, duration_nanos};

/// TCP control bits that exclude a segment from the fast path.
const CONTROL: u16 = TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;

/// The largest window in octets that TCP can advertise (RFC 7323 section 2.2). No legitimate segment is farther away
/// from the next expected sequence number.
pub(super) const WINDOW_MAX: u32 = 1 << 30;

/// Reassembles the byte streams of TCP connections. Owns all held octets; the state of each direction is a [`Stream`]
/// that the caller stores. `T` identifies a stream, for example by flow and side.
///
/// Octets that arrive in order are delivered as a slice of the segment: no copy, no allocation, constant time. Octets
/// ahead of a hole are copied into blocks of 2 KiB, within [`Limits`](crate::base::Limits). A segment takes time
/// logarithmic in the number of pieces that its side holds, and linear in those that it overlaps or moves.
#[derive(Debug)]
pub struct Reassembler<T> {
    pub(super) config: ReassemblerConfig,
    pub(super) limits: Limits,
    pub(super) ack_grace_ns: u64,
    pub(super) skew_max_ns: u64,
    pub(super) hole_timeout_ns: u64,
    /// Limit on the distance of a segment ahead of a hole that is dropped, in octets: [`WINDOW_MAX`] if the configuration
    /// allows no octets to be held, otherwise 0.
    dropped_ahead_max: u32,
    /// Number of delivered octets that are kept for comparison with repeated octets, a power of two or zero.
    pub(super) compared_len: usize,
    pub(super) memory: Allowance,
    pub(super) store: Store,
    pub(super) holds: HeldStates<T>,
    /// The highest timestamp of any processed segment, in nanoseconds.
    pub(super) now_ns: u64,
    /// Capture time of the latest packet with octets that the current call delivered.
    pub(super) delivered_at: Timestamp,
    /// The opposite direction of the stream that the current call processes.
    pub(super) peer: Peer,
    pub(super) stats: ReassemblerStats,
}

impl<T: Copy> Default for Reassembler<T> {
    /// Creates a reassembler with the default configuration.
    fn default() -> Self {
        Self::build(ReassemblerConfig::default(), &Resources::default())
    }
}

impl<T: Copy> Reassembler<T> {
    /// Creates a reassembler. Allocates no memory yet.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] if `compared_len` exceeds its maximum.
    pub fn new(config: ReassemblerConfig, resources: &Resources) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::build(config, resources))
    }

    fn build(config: ReassemblerConfig, resources: &Resources) -> Self {
        let compared_len = match config.compared_len {
            0 => 0,
            len => (len as usize).next_power_of_two(),
        };
        let limits = resources.limits;
        let holds_nothing = limits.stream_side_bytes_max == 0 || limits.stream_side_segment_count_max == 0;
        let is_in_order_only = holds_nothing && config.overflow == OverflowPolicy::DropNewest;
        Self {
            ack_grace_ns: duration_nanos(config.ack_grace),
            skew_max_ns: duration_nanos(config.skew_max.max(config.ack_grace)),
            hole_timeout_ns: duration_nanos(config.hole_timeout),
            dropped_ahead_max: if is_in_order_only { WINDOW_MAX } else { 0 },
            compared_len,
            memory: Allowance::new(resources.budget.clone(), Account::Streams, limits.stream_bytes_max),
            store: Store::default(),
            holds: HeldStates::new(),
            now_ns: 0,
            delivered_at: Timestamp::ZERO,
            peer: Peer::Unknown,
            stats: ReassemblerStats::default(),
            config,
            limits,
        }
    }

    /// Processes a segment of the direction `stream`, and calls `out` with the resulting events.
    /// [`next_due`](Self::next_due) returns `name` to identify the stream.
    ///
    /// The stream begins at the first segment, with or without SYN, unless that segment may be a keep-alive. A repeated
    /// SYN changes nothing. A SYN with another sequence number becomes the beginning if the receiver acknowledges it,
    /// or octets follow it, before any octets were delivered. A RST is ignored; the caller ends the stream. Urgent
    /// octets remain in the stream (RFC 6093).
    #[inline]
    pub fn segment(
        &mut self,
        stream: &mut Stream,
        name: T,
        segment: &Segment<'_>,
        out: impl FnMut(StreamEvent<'_>),
    ) {
        self.next_segment((stream, None), name, segment, out);
    }

    /// Processes a segment of a direction whose opposite direction is known, and was delivered up to the acknowledgment
    /// number of the segment.
    #[inline(always)]
    pub(crate) fn next_segment(
        &mut self,
        (stream, other): (&mut Stream, Option<&Stream>),
        name: T,
        segment: &Segment<'_>,
        mut out: impl FnMut(StreamEvent<'_>),
    ) {
        self.advance_clock(segment.timestamp);
        if stream.has(Stream::STOPPED) {
            return;
        }
        let bytes = segment.payload;
        if stream.flags == Stream::ANCHORED && segment.flags.0 & CONTROL == 0 {
            let ahead = segment.seq.distance_from(stream.next);
            if ahead == 0 {
                if segment.len as usize == bytes.len()
                    && (bytes.len() > PADDING_LEN_MAX || !segment.may_be_padding())
                {
                    if !bytes.is_empty() {
                        let offset = stream.offset;
                        stream.offset += u64::from(segment.len);
                        stream.next = stream.next.add(segment.len);
                        out(StreamEvent::Chunk(Chunk { offset, bytes, timestamp: segment.timestamp }));
                    }
                    return;
                }
            } else if self.is_dropped(stream, ahead, segment.len) {
                stream.note_dropped(segment.seq.add(segment.len));
                self.stats.refused_count += 1;
                return;
            }
        }
        self.peer = other.map_or(Peer::Unknown, Stream::as_peer);
        // By value, so that the segment of an inlined caller stays in registers on the paths above.
        self.process_slow(stream, name, *segment, &mut |event| out(*event));
        self.peer = Peer::Unknown;
    }

    /// Processes the acknowledgment in a segment of the opposite direction. The receiver has received all octets of
    /// `stream` up to the acknowledgment number, so that missing ones are awaited only for a short grace period.
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

    /// Returns whether a segment of a stream that is only anchored is dropped, because it begins after a hole and the
    /// configuration allows no octets to be held. `ahead` is its distance from the next expected octet, and not zero. May
    /// return false for a segment that the slow path drops.
    #[inline(always)]
    const fn is_dropped(&self, stream: &Stream, ahead: i32, len: u32) -> bool {
        // The window is a power of two, so that this compares both the distance and the length with it. A negative
        // distance is a large number.
        const { assert!(WINDOW_MAX.is_power_of_two()) };
        let is_within_window = (ahead as u32 | len) < self.dropped_ahead_max;
        is_within_window && stream.has_plain_acks()
    }

    /// Advances the reassembler's clock to `timestamp`, the time of a packet that the reassembler did not process.
    #[inline(always)]
    pub(crate) fn advance_clock(&mut self, timestamp: Timestamp) {
        // A branch, so that there is no data dependency on the time of the previous segment.
        if timestamp.as_nanos() > self.now_ns {
            self.now_ns = timestamp.as_nanos();
        }
    }

    /// Stops a stream and releases its held octets. Each later segment costs only the test of a flag.
    pub fn stop(&mut self, stream: &mut Stream) {
        self.release(stream);
        stream.flags |= Stream::STOPPED;
    }

    /// Returns the memory of the reassembler in bytes, as charged to the budget. Up to 128 KiB of it are spare blocks.
    #[must_use]
    pub const fn held_bytes(&self) -> u64 {
        self.memory.held_bytes()
    }

    /// Returns the number of streams that have held octets, pending acknowledgments, or octets for comparison.
    #[doc(hidden)]
    #[must_use]
    pub const fn held_stream_count(&self) -> usize {
        self.holds.live_count()
    }

    /// Returns the counters of the reassembler.
    #[must_use]
    pub const fn stats(&self) -> ReassemblerStats {
        let mut stats = self.stats;
        stats.held_bytes_max = self.memory.peak_bytes();
        stats
    }

    /// Panics unless lists, pieces and counts agree. For tests; takes time linear in the held data.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        let (live_len, block_count, bytes) = self.holds.check_invariants();
        self.store.check_invariants(live_len, block_count);
        assert_eq!(bytes + self.store.spare_bytes(), self.memory.held_bytes(), "all memory is accounted");
        assert!(self.memory.held_bytes() <= self.limits.stream_bytes_max);
    }

    /// Returns the number of held pieces that were visited or moved since the reassembler was created. For tests;
    /// counted in debug builds only.
    #[doc(hidden)]
    #[must_use]
    pub const fn step_count(&self) -> u64 {
        self.store.step_count
    }

    /// Returns the held state of a stream, if the stream has one that was not evicted.
    pub(super) fn hold_of(&mut self, stream: &Stream) -> Option<&mut HeldState<T>> {
        if stream.has(Stream::HELD) { self.holds.get_mut(stream.hold) } else { None }
    }

    /// Returns the held state of a stream. Creates it if there is none; returns `None` if there is no memory for it.
    pub(super) fn hold_or_new(&mut self, stream: &mut Stream, name: T) -> Option<&mut HeldState<T>> {
        if !stream.has(Stream::HELD) || self.holds.get(stream.hold).is_none() {
            stream.flags &= !Stream::HELD;
            stream.hold = self.holds.insert(&mut self.memory, name)?;
            stream.flags |= Stream::HELD;
            self.holds.arm(stream.hold, super::held_states::Wait::Open, self.now_ns);
        }
        self.holds.get_mut(stream.hold)
    }

    /// Releases the held octets of a stream, without delivering them.
    pub(super) fn release(&mut self, stream: &mut Stream) {
        if stream.has(Stream::HELD) {
            self.holds.remove(&mut self.store, &mut self.memory, stream.hold);
            stream.flags &= !Stream::HELD;
        }
    }

    /// Stops a stream because a memory limit was reached, releases its held octets, and reports
    /// [`StreamEvent::Poisoned`](super::StreamEvent::Poisoned).
    pub(super) fn poison(&mut self, stream: &mut Stream, out: &mut Out<'_>) {
        self.release(stream);
        stream.flags |= Stream::STOPPED;
        stream.marks |= Stream::POISONED;
        self.stats.poisoned_count += 1;
        out(&StreamEvent::Poisoned { offset: stream.offset });
    }
}
