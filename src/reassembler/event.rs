//! What comes out: bytes in order, the gaps between them, and what was odd.

use crate::base::Timestamp;

/// Bytes of a stream, next in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// Where they begin: octets of the stream before them, gaps included.
    pub offset: u64,
    /// The bytes, never none: the packet's own if it came in order, otherwise the store's.
    pub bytes: &'a [u8],
    /// Capture time of the last packet that was needed to make them next: their own packet, or a later one that filled the
    /// hole in front of them. A [`Gap`] in front of them does not change it.
    pub timestamp: Timestamp,
}

impl<'a> Chunk<'a> {
    /// Bytes at an offset and time zero, for what takes chunks and is used alone.
    #[must_use]
    #[inline]
    pub const fn new(offset: u64, bytes: &'a [u8]) -> Self {
        Self { offset, bytes, timestamp: Timestamp::ZERO }
    }

    /// The same, captured at a time.
    #[must_use]
    #[inline]
    pub const fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }

    /// The offset behind them.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Why bytes of a stream will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum GapReason {
    /// The receiver acknowledged them, so that they were sent, and the grace is over: the capture lost them.
    Acknowledged,
    /// They did not come by the deadline, and no acknowledgment was seen that could tell more.
    Deadline,
    /// A cap on what waits behind them was reached.
    Overflow,
    /// They were on the wire, and a snap length cut them off.
    Cut,
    /// The stream ended.
    End,
    /// The sender goes on at numbers that are more than a window away; the length is what it seems modulo 2^32.
    Resynchronised,
}

impl GapReason {
    /// All of them, in the order of [`ReassemblerStats::gap_counts`](super::ReassemblerStats::gap_counts).
    pub const ALL: [Self; 6] =
        [Self::Acknowledged, Self::Deadline, Self::Overflow, Self::Cut, Self::End, Self::Resynchronised];

    /// The name in text, as `acknowledged`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Deadline => "deadline",
            Self::Overflow => "overflow",
            Self::Cut => "cut",
            Self::End => "end",
            Self::Resynchronised => "resynchronised",
        }
    }
}

/// Bytes of a stream that will not come. What comes of them later is [`StreamEvent::Repeated`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Gap {
    /// Where they begin.
    pub offset: u64,
    /// How many, at least one.
    pub len: u64,
    /// Why.
    pub reason: GapReason,
    /// Time at which it was due, which does not depend on when that was noticed: the end of the grace or the deadline. For
    /// the other reasons, the time of the segment that was truncated, exceeded a cap or lies far away, or of the stream's end.
    pub timestamp: Timestamp,
}

impl Gap {
    /// A gap at time zero, for what takes gaps and is used alone.
    #[must_use]
    pub const fn new(offset: u64, len: u64, reason: GapReason) -> Self {
        Self { offset, len, reason, timestamp: Timestamp::ZERO }
    }

    /// The same, due at a time.
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

/// Where bytes of a [`Conflict`] came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Place {
    /// Stream offset of the segment's first octet.
    pub offset: u64,
    /// Octets of the segment. Of bytes that were delivered, those that were compared.
    pub len: u64,
    /// When the segment was captured; of bytes that were delivered, when the latest were.
    pub timestamp: Timestamp,
}

/// The same octets of a stream, sent twice with different content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Conflict {
    /// The first octet that differs.
    pub offset: u64,
    /// Octets from there to the last one that differs.
    pub len: u64,
    /// The bytes that were held or delivered before.
    pub old: Place,
    /// The segment that differs.
    pub new: Place,
    /// Whether the new bytes count. Never, if the old ones were delivered.
    pub is_new_kept: bool,
}

/// What happens to one direction of a TCP connection, in the order of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent<'a> {
    /// The next bytes.
    Chunk(Chunk<'a>),
    /// Bytes that will not come.
    Gap(Gap),
    /// Bytes differ from what was sent before at the same place.
    Conflict(Conflict),
    /// Octets came again, or late: they were delivered, held or given up before. Keep-alives are none.
    Repeated {
        /// The first of them.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Octets behind the FIN, which no receiver reads (RFC 9293 section 3.10.7.4). They are not delivered.
    AfterFin {
        /// The first of them.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// The FIN was reached: the stream is complete up to here.
    Fin {
        /// Octets of the stream.
        offset: u64,
        /// Capture time of the last packet that was needed: the FIN's own, or one that filled a hole in front of it.
        timestamp: Timestamp,
    },
    /// [`OverflowPolicy::Poison`](super::OverflowPolicy::Poison): this is the last event of the stream.
    Poisoned {
        /// Octets that were delivered or given up; what was held is lost.
        offset: u64,
    },
}
