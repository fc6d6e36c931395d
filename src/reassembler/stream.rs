//! State of one direction of a connection: its offset and flags, and a handle to its held octets in the reassembler.

use crate::base::SeqNum;

/// State of one direction of a TCP connection: 32 octets, which the caller stores with the flow.
///
/// Octets after a hole are in the [`Reassembler`](super::Reassembler). Pass every stream to
/// [`finish`](super::Reassembler::finish) at its end to release them.
#[derive(Debug)]
pub struct Stream {
    /// Number of octets of the stream that were delivered or skipped.
    pub(super) offset: u64,
    /// Sequence number of the next octet, which has the stream offset `offset`.
    pub(super) next: SeqNum,
    /// Sequence number of the FIN, if [`FIN_KNOWN`](Self::FIN_KNOWN) is set; of the end of the dropped octets, if
    /// [`DROPPED`](Self::DROPPED) is set.
    pub(super) fin: SeqNum,
    /// Sequence number that continues the latest sequence of stray segments. For a stream that is
    /// [`CONTESTED`](Self::CONTESTED), the other sequence number at which it may begin.
    pub(super) stray_next: SeqNum,
    pub(super) stray_count: u8,
    pub(super) flags: u8,
    pub(super) marks: u8,
    /// Number of zeros behind `offset` that may be padding, if [`DOUBTED`](Self::DOUBTED) is set.
    pub(super) padding_len: u8,
    pub(super) hold: Handle,
}

/// Maximum distance in octets from the end of the known octets of a stream to a plausible acknowledgment number.
pub(super) const ACK_AHEAD_MAX: u64 = 16 << 20;

/// How far the opposite direction of a stream was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Nothing waits for it.
    Unknown,
    /// Nothing was captured of it, but the first octets of the stream wait for it.
    Awaited,
    /// Up to this sequence number.
    At(SeqNum),
}

impl Peer {
    pub(super) const fn is_known(self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Returns the number of octets of the opposite direction that a segment with the acknowledgment number `ack` was
    /// sent after, and that were not delivered yet. A single one is most likely a FIN that was not captured.
    pub(super) fn missing_len(self, ack: SeqNum) -> Option<u64> {
        let Self::At(next) = self else { return None };
        let len = u64::try_from(ack.distance_from(next)).ok()?;
        (2..=ACK_AHEAD_MAX).contains(&len).then_some(len)
    }

    /// Returns whether a segment with the acknowledgment number `ack` was sent after octets of the opposite direction
    /// that were not delivered yet, or may have been.
    pub(super) fn is_before(self, ack: SeqNum) -> bool {
        matches!(self, Self::Awaited) || self.missing_len(ack).is_some()
    }
}

/// Identifies the held state of a stream in the reassembler; stale after that state was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl Handle {
    pub(super) const NONE: Self = Self { slot: u32::MAX, generation: 0 };
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            offset: 0,
            next: SeqNum(0),
            fin: SeqNum(0),
            stray_next: SeqNum(0),
            stray_count: 0,
            flags: 0,
            marks: 0,
            padding_len: 0,
            hold: Handle::NONE,
        }
    }
}

impl Stream {
    /// In `flags`: the beginning of the stream is known, so `next` is valid.
    pub(super) const ANCHORED: u8 = 1;
    /// In `flags`: `next` was taken from a segment that may be a keep-alive, and may still change.
    pub(super) const SOFT: u8 = 1 << 1;
    /// In `flags`: `hold` refers to held state in the reassembler, which may have been evicted.
    pub(super) const HELD: u8 = 1 << 2;
    pub(super) const FIN_KNOWN: u8 = 1 << 3;
    /// In `flags`: the FIN was reached.
    pub(super) const ENDED: u8 = 1 << 4;
    /// In `flags`: the stream was poisoned or stopped by the caller, and produces no further events.
    pub(super) const STOPPED: u8 = 1 << 5;
    /// In `flags`: octets that may be padding are withheld.
    pub(super) const DOUBTED: u8 = 1 << 6;
    /// In `flags`: delivered octets are kept for comparison, which excludes segments in order from the fast path.
    pub(super) const COMPARED: u8 = 1 << 7;

    /// In `marks`: the receiver of the stream has sent an acknowledgment.
    pub(super) const ACKED: u8 = 1;
    /// In `marks`: a segment after a hole was dropped; the FIN is not known, and `fin` is the end of the dropped
    /// octets.
    pub(super) const DROPPED: u8 = 1 << 1;
    /// In `marks`: there are several candidates for the first sequence number of the stream. Ignored after the first
    /// octet was delivered or skipped.
    pub(super) const CONTESTED: u8 = 1 << 2;
    /// In `marks`: the candidate for the first sequence number in `stray_next` was taken from an acknowledgment, and
    /// not from a SYN.
    pub(super) const HINTED: u8 = 1 << 3;
    /// In `marks`: the stream was stopped because a memory limit was reached.
    pub(super) const POISONED: u8 = 1 << 4;
    /// In `marks`: nothing of the stream was captured, and the first octets of the opposite direction wait for it. Ignored
    /// after its beginning is known.
    pub(super) const AWAITED: u8 = 1 << 5;

    #[inline(always)]
    pub(super) const fn is_acked(&self) -> bool {
        self.marks & Self::ACKED != 0
    }

    /// Returns whether acknowledgments up to the next expected octet need no processing.
    #[inline(always)]
    pub(super) const fn has_plain_acks(&self) -> bool {
        self.marks & (Self::ACKED | Self::CONTESTED) == Self::ACKED
    }

    /// Returns the second candidate for the sequence number at which the stream begins, if there is one and no octets
    /// were delivered or skipped.
    pub(super) const fn other_start(&self) -> Option<SeqNum> {
        let is_open = self.offset == 0 && !self.has(Self::ENDED);
        if is_open && self.marks & Self::CONTESTED != 0 { Some(self.stray_next) } else { None }
    }

    /// Records a second candidate for the sequence number at which the stream begins. `is_hint` is true if it was taken
    /// from an acknowledgment.
    pub(super) const fn contest(&mut self, seq: SeqNum, is_hint: bool) {
        self.stray_next = seq;
        self.stray_count = 0;
        self.marks = self.marks & !Self::HINTED | Self::CONTESTED | if is_hint { Self::HINTED } else { 0 };
    }

    /// Records that octets up to the sequence number `end` were dropped, unless the FIN is known.
    #[inline(always)]
    pub(super) const fn note_dropped(&mut self, end: SeqNum) {
        let is_noted = self.marks & Self::DROPPED != 0 && !end.is_after(self.fin);
        if !is_noted && !self.has(Self::FIN_KNOWN) {
            self.fin = end;
            self.marks |= Self::DROPPED;
        }
    }

    /// Returns the stream offset after the last dropped octet, if it is beyond the current offset.
    pub(super) const fn dropped_end(&self) -> Option<u64> {
        let ahead = self.fin.distance_from(self.next);
        if self.marks & Self::DROPPED == 0 || self.has(Self::FIN_KNOWN) || ahead <= 0 {
            return None;
        }
        Some(self.offset + ahead as u64)
    }

    #[inline(always)]
    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the number of octets of the stream that were delivered or skipped, which is the offset of the next
    /// chunk.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns whether the beginning of the stream is known.
    #[must_use]
    pub(crate) const fn is_anchored(&self) -> bool {
        self.has(Self::ANCHORED)
    }

    /// Returns whether the FIN of the stream was reached.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has(Self::ENDED)
    }

    /// Returns whether the stream was stopped because a memory limit was reached.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        self.marks & Self::POISONED != 0
    }

    /// Returns whether the stream produces no further events, because it was poisoned or stopped by the caller.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.has(Self::STOPPED)
    }

    /// Returns whether the reassembler has state for this stream: octets after a hole, octets for comparison, or
    /// acknowledgments.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.has(Self::HELD)
    }

    /// Returns how far the stream was delivered, for the opposite direction. Unknown if the stream has not begun and is not
    /// awaited, or ended, so that acknowledgments say nothing more.
    pub(super) const fn as_peer(&self) -> Peer {
        match self.flags & (Self::ANCHORED | Self::STOPPED | Self::ENDED) {
            Self::ANCHORED => Peer::At(self.next),
            0 if self.marks & Self::AWAITED != 0 => Peer::Awaited,
            _ => Peer::Unknown,
        }
    }

    /// Returns whether the beginning of the stream is known and cannot change: by a SYN, or by octets.
    #[inline(always)]
    pub(super) const fn has_begun(&self) -> bool {
        self.flags & (Self::ANCHORED | Self::SOFT) == Self::ANCHORED
    }

    /// Returns the next expected sequence number; `None` if the beginning of the stream is not known.
    #[must_use]
    pub const fn next_seq(&self) -> Option<SeqNum> {
        if self.is_anchored() { Some(self.next) } else { None }
    }

    pub(super) const fn anchor(&mut self, seq: SeqNum, flags: u8) {
        self.next = seq;
        self.flags = self.flags & !Self::SOFT | Self::ANCHORED | flags;
    }

    /// Advances the stream to a higher offset.
    #[inline(always)]
    pub(super) const fn advance_to(&mut self, offset: u64) {
        self.next = self.next.add((offset - self.offset) as u32);
        self.offset = offset;
    }

    /// Returns the stream offset up to which octets are delivered: the offset of the FIN, or `u64::MAX` if it is not
    /// known.
    pub(super) fn drain_limit(&self) -> u64 {
        self.fin_offset().unwrap_or(u64::MAX)
    }

    /// Returns the stream offset of the FIN, if it is known.
    pub(super) const fn fin_offset(&self) -> Option<u64> {
        if !self.has(Self::FIN_KNOWN) {
            return None;
        }
        let ahead = self.fin.distance_from(self.next);
        self.offset.checked_add_signed(ahead as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_streams_occupy_one_cache_line() {
        assert_eq!(size_of::<Stream>(), 32);
    }
}
