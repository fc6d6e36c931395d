//! Output of the reassembler: bytes in order, the gaps between them, and anomalies.

use crate::base::Timestamp;
use crate::row::{Group, Name};

/// The next bytes of a TCP stream in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// Stream offset of the chunk's first byte: the number of octets of the stream before it, including gaps.
    pub offset: u64,
    /// The bytes of the chunk, at least one. They are borrowed from the packet if it arrived in order, otherwise from
    /// the reassembler's memory.
    pub bytes: &'a [u8],
    /// Capture time of the last packet that was needed to deliver the chunk: the packet that contained its bytes, or a
    /// later one that filled the hole before them. A [`Gap`] before the chunk does not change the time.
    pub timestamp: Timestamp,
}

impl<'a> Chunk<'a> {
    /// Creates a chunk at a stream offset with timestamp zero, for use without a reassembler.
    #[must_use]
    #[inline]
    pub const fn new(offset: u64, bytes: &'a [u8]) -> Self {
        Self { offset, bytes, timestamp: Timestamp::ZERO }
    }

    /// Sets the capture time of the chunk.
    #[must_use]
    #[inline]
    pub const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }

    /// Returns the stream offset after the chunk's last byte.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Reason why bytes of a stream are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// The receiver acknowledged the missing octets, so the sender sent them, but they were not captured before the
    /// grace period expired.
    Acknowledged,
    /// The missing octets did not arrive before the deadline, and no acknowledgments were seen.
    Deadline,
    /// A limit on the octets held after the missing ones was reached.
    Overflow,
    /// The missing octets were on the wire, but the packet was truncated by the snap length.
    Truncated,
    /// The stream ended before the missing octets arrived.
    EndOfStream,
    /// The sender continues at sequence numbers that are more than a window away. The length of the gap is known only
    /// modulo 2^32.
    Resynchronized,
    /// The pipeline was restored from a checkpoint, which does not contain octets that were held behind a hole, nor the
    /// state of all parsers: the length includes the hole.
    Checkpoint,
}

impl GapReason {
    /// All reasons for a gap, in the order of [`ReassemblerStats::gap_counts`](super::ReassemblerStats::gap_counts).
    pub const ALL: [Self; 7] = [
        Self::Acknowledged,
        Self::Deadline,
        Self::Overflow,
        Self::Truncated,
        Self::EndOfStream,
        Self::Resynchronized,
        Self::Checkpoint,
    ];

    /// Returns the name of the reason in text, such as `acknowledged`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Deadline => "deadline",
            Self::Overflow => "overflow",
            Self::Truncated => "truncated",
            Self::EndOfStream => "end_of_stream",
            Self::Resynchronized => "resynchronized",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Bytes that are missing in a TCP stream. Octets of a gap that arrive later are reported as [`StreamEvent::Repeated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// Stream offset of the first missing octet.
    pub offset: u64,
    /// Number of missing octets, at least one.
    pub len: u64,
    /// Reason why the octets are missing.
    pub reason: GapReason,
    /// Time at which the gap was due: for [`Acknowledged`](GapReason::Acknowledged) the end of the grace period, for
    /// [`Deadline`](GapReason::Deadline) the deadline, regardless of when the gap was detected. For other reasons, the
    /// time of the segment that was truncated, exceeded a limit or is far away, or the time of the stream's end.
    pub timestamp: Timestamp,
}

impl Gap {
    /// Creates a gap of `len` octets at a stream offset, with timestamp zero, for use without a reassembler.
    #[must_use]
    pub const fn new(offset: u64, len: u64, reason: GapReason) -> Self {
        Self { offset, len, reason, timestamp: Timestamp::ZERO }
    }

    /// Sets the time at which the gap was due.
    #[must_use]
    pub const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }
}

/// The reason for a gap, and the time at which it was due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    pub(super) reason: GapReason,
    pub(super) timestamp: Timestamp,
}

/// Origin of the old or the new bytes in a [`Conflict`]: a segment, or bytes that were already delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// Stream offset of the first octet of the segment; for delivered bytes, of the first octet that was compared.
    pub offset: u64,
    /// Number of octets of the segment; for delivered bytes, the number of octets that were compared.
    pub len: u64,
    /// Capture time of the segment; for delivered bytes, the time of the latest delivered chunk.
    pub timestamp: Timestamp,
}

/// Octets of a stream that were received twice with different content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// Stream offset of the first octet that differs.
    pub offset: u64,
    /// Number of octets from the first to the last octet that differs, inclusive.
    pub len: u64,
    /// Origin of the old bytes, which were held or delivered before.
    pub old: Extent,
    /// Origin of the new bytes: the segment that differs from the old bytes.
    pub new: Extent,
    /// True if the new bytes replace the old ones; always false if the old bytes were already delivered.
    pub is_new_kept: bool,
}

crate::table! {
    /// A gap in a stream.
    impl "stream.gap" for Gap as gap {
        /// Stream offset of the first missing octet.
        "offset": u64 [octets] = gap.offset;
        /// Number of missing octets.
        "len": u64 [octets] = gap.len;
        /// Reason why the octets are missing.
        "reason": Name = Name(gap.reason.name());
        /// Time at which the gap was due.
        "timestamp": Timestamp = gap.timestamp;
    }
}

crate::table! {
    /// Octets of a segment.
    impl "stream.extent" for Extent as extent {
        /// Stream offset of the first octet of the segment.
        "offset": u64 [octets] = extent.offset;
        /// Number of octets of the segment.
        "len": u64 [octets] = extent.len;
        /// Capture time of the segment.
        "timestamp": Timestamp = extent.timestamp;
    }
}

crate::table! {
    /// Octets that differ from those received before at the same offset.
    impl "stream.conflict" for Conflict as conflict {
        /// Stream offset of the first octet that differs.
        "offset": u64 [octets] = conflict.offset;
        /// Number of octets from the first to the last one that differs.
        "len": u64 [octets] = conflict.len;
        /// Origin of the old octets.
        "old": Group<Extent> = Group(conflict.old);
        /// Origin of the new octets.
        "new": Group<Extent> = Group(conflict.new);
        /// True if the new octets replace the old ones.
        "is_new_kept": bool = conflict.is_new_kept;
    }
}

/// Event in one direction of a TCP connection, in the order of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// The next bytes of the stream.
    Chunk(Chunk<'a>),
    /// Bytes of the stream that are missing.
    Gap(Gap),
    /// Bytes that differ from those received before at the same stream offset.
    Conflict(Conflict),
    /// Octets that were received again or late: they were delivered, held or skipped before. Keep-alives are not
    /// reported.
    Repeated {
        /// Stream offset of the first repeated octet.
        offset: u64,
        /// Number of repeated octets.
        len: u64,
    },
    /// Octets after the FIN, which no receiver reads (RFC 9293 section 3.10.7.4). They are not delivered.
    AfterFin {
        /// Stream offset of the first octet after the FIN.
        offset: u64,
        /// Number of octets after the FIN.
        len: u64,
    },
    /// The FIN was reached: all octets of the stream were delivered or reported as gaps.
    Fin {
        /// Length of the stream in octets, including gaps.
        offset: u64,
        /// Capture time of the last packet that was needed to reach the FIN: the packet with the FIN, or a later one
        /// that filled a hole before it.
        timestamp: Timestamp,
    },
    /// The stream was stopped by [`OverflowPolicy::Poison`](super::OverflowPolicy::Poison), because a memory limit was
    /// reached. This is the last event of the stream.
    Poisoned {
        /// Number of octets that were delivered or skipped before the stop; held octets are discarded.
        offset: u64,
    },
}
