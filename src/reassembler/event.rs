//! Output of the reassembler: bytes in order, the gaps between them, and anomalies.

use crate::base::Timestamp;

/// The next bytes of a stream in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// Offset of the first byte: number of octets of the stream before it, gaps included.
    pub offset: u64,
    /// The bytes, at least one. They are borrowed from the packet if it arrived in order, otherwise from the store.
    pub bytes: &'a [u8],
    /// Capture time of the last packet that was needed to deliver them: their own packet, or a later one that filled
    /// the hole in front of them. A [`Gap`] in front of them does not change it.
    pub timestamp: Timestamp,
}

impl<'a> Chunk<'a> {
    /// Creates a chunk at an offset with timestamp zero, for use without a reassembler.
    #[must_use]
    #[inline]
    pub const fn new(offset: u64, bytes: &'a [u8]) -> Self {
        Self { offset, bytes, timestamp: Timestamp::ZERO }
    }

    /// Sets the capture time.
    #[must_use]
    #[inline]
    pub const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }

    /// Returns the offset after the last byte.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Reason for which bytes of a stream are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GapReason {
    /// The receiver acknowledged them, so that they were sent, and the grace period has expired: the capture lost them.
    Acknowledged,
    /// They did not arrive before the deadline, and no acknowledgments were seen.
    Deadline,
    /// A limit on the octets held behind them was reached.
    Overflow,
    /// They were on the wire, but the snap length truncated the packet.
    Truncated,
    /// The stream ended.
    EndOfStream,
    /// The sender continues at sequence numbers that are more than a window away. The length is known modulo 2^32 only.
    Resynchronized,
}

impl GapReason {
    /// All reasons, in the order of [`ReassemblerStats::gap_counts`](super::ReassemblerStats::gap_counts).
    pub const ALL: [Self; 6] = [
        Self::Acknowledged,
        Self::Deadline,
        Self::Overflow,
        Self::Truncated,
        Self::EndOfStream,
        Self::Resynchronized,
    ];

    /// Returns the name in text, such as `acknowledged`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Deadline => "deadline",
            Self::Overflow => "overflow",
            Self::Truncated => "truncated",
            Self::EndOfStream => "end_of_stream",
            Self::Resynchronized => "resynchronized",
        }
    }
}

/// Bytes of a stream that are missing. Octets of a gap that arrive later are reported as [`StreamEvent::Repeated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Gap {
    /// Stream offset of the first missing octet.
    pub offset: u64,
    /// Number of missing octets, at least one.
    pub len: u64,
    /// Reason for the gap.
    pub reason: GapReason,
    /// Time at which the gap was due: the end of the grace period, or the deadline. It does not depend on when the gap
    /// was detected. For the other reasons, the time of the segment that was truncated, exceeded a limit or is far
    /// away, or the time of the stream's end.
    pub timestamp: Timestamp,
}

impl Gap {
    /// Creates a gap with timestamp zero, for use without a reassembler.
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

/// Origin of the bytes in a [`Conflict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Extent {
    /// Stream offset of the segment's first octet.
    pub offset: u64,
    /// Number of octets of the segment; for delivered bytes, the number that was compared.
    pub len: u64,
    /// Capture time of the segment; for delivered bytes, that of the latest ones.
    pub timestamp: Timestamp,
}

/// The same octets of a stream, sent twice with different content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Conflict {
    /// Stream offset of the first octet that differs.
    pub offset: u64,
    /// Number of octets from there up to and including the last one that differs.
    pub len: u64,
    /// The bytes that were held or delivered before.
    pub old: Extent,
    /// The segment that differs.
    pub new: Extent,
    /// True if the new bytes replace the old ones; always false if the old ones were delivered.
    pub is_new_kept: bool,
}

/// Event in one direction of a TCP connection, in the order of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// The next bytes.
    Chunk(Chunk<'a>),
    /// Bytes that are missing.
    Gap(Gap),
    /// Bytes that differ from those received before at the same offset.
    Conflict(Conflict),
    /// Octets that were received again, or late: they were delivered, held or skipped before. Keep-alives are not
    /// reported.
    Repeated {
        /// Stream offset of the first of them.
        offset: u64,
        /// Number of octets.
        len: u64,
    },
    /// Octets after the FIN, which no receiver reads (RFC 9293 section 3.10.7.4). They are not delivered.
    AfterFin {
        /// Stream offset of the first of them.
        offset: u64,
        /// Number of octets.
        len: u64,
    },
    /// The FIN was reached: the stream is complete up to here.
    Fin {
        /// Number of octets of the stream.
        offset: u64,
        /// Capture time of the last packet that was needed: the FIN's own, or one that filled a hole in front of it.
        timestamp: Timestamp,
    },
    /// The direction was stopped by [`OverflowPolicy::Poison`](super::OverflowPolicy::Poison). This is the last event
    /// of the stream.
    Poisoned {
        /// Number of octets that were delivered or skipped; held octets are lost.
        offset: u64,
    },
}
