//! What is kept of one direction of a connection: where it stands, and a handle on what it holds.

use crate::base::SeqNum;

/// Where one direction of a TCP connection stands. 32 octets; lies in the caller's state of the flow.
///
/// What waits behind a hole lies in the [`Reassembler`](super::Reassembler), which every stream must leave through
/// [`finish`](super::Reassembler::finish).
#[derive(Debug)]
pub struct Stream {
    /// Octets that were delivered or given up.
    pub(super) offset: u64,
    /// Sequence number of the octet at that offset.
    pub(super) next: SeqNum,
    /// Sequence number of FIN, if [`FIN_KNOWN`](Self::FIN_KNOWN); behind what was dropped, if [`DROPPED`](Self::DROPPED).
    pub(super) fin: SeqNum,
    /// Sequence number of the next segment in a row of stray ones; of a stream that is [`CONTESTED`](Self::CONTESTED), the
    /// other number at which it may begin.
    pub(super) stray_next: SeqNum,
    pub(super) stray_count: u8,
    pub(super) flags: u8,
    pub(super) marks: u8,
    pub(super) hold: Handle,
}

/// Names a hold of the reassembler; stale once that was given to another stream.
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
            hold: Handle::NONE,
        }
    }
}

impl Stream {
    /// `next` means something.
    pub(super) const ANCHORED: u8 = 1;
    /// It was taken from a segment without payload, which may be a keep-alive.
    pub(super) const SOFT: u8 = 1 << 1;
    /// There is a hold.
    pub(super) const HELD: u8 = 1 << 2;
    pub(super) const FIN_KNOWN: u8 = 1 << 3;
    /// The FIN was reached.
    pub(super) const ENDED: u8 = 1 << 4;
    /// Nothing is wanted any more.
    pub(super) const STOPPED: u8 = 1 << 5;
    /// It was stopped for want of room.
    pub(super) const POISONED: u8 = 1 << 6;
    /// What was delivered is kept for comparison: segments in order are not ordinary.
    pub(super) const COMPARED: u8 = 1 << 7;

    /// Of the marks: the other side acknowledged something.
    pub(super) const ACKED: u8 = 1;
    /// Of the marks: a segment ahead was dropped, and `fin` is not known but stands behind its last octet.
    pub(super) const DROPPED: u8 = 1 << 1;
    /// Of the marks: more than one number claims to be the stream's first. Means nothing once there is an offset.
    pub(super) const CONTESTED: u8 = 1 << 2;
    /// Of the marks: the other number is known from an acknowledgment, and not from a SYN.
    pub(super) const HINTED: u8 = 1 << 3;

    #[inline(always)]
    pub(super) const fn is_acked(&self) -> bool {
        self.marks & Self::ACKED != 0
    }

    /// Returns whether an acknowledgment is news only if it lies beyond the next octet.
    #[inline(always)]
    pub(super) const fn has_plain_acks(&self) -> bool {
        self.marks & (Self::ACKED | Self::CONTESTED) == Self::ACKED
    }

    /// Returns the other number at which the stream may begin, while nothing was delivered or given up.
    pub(super) const fn other_start(&self) -> Option<SeqNum> {
        let is_open = self.offset == 0 && !self.has(Self::ENDED);
        if is_open && self.marks & Self::CONTESTED != 0 { Some(self.stray_next) } else { None }
    }

    /// Notes another number at which the stream may begin.
    pub(super) const fn contest(&mut self, seq: SeqNum, is_hint: bool) {
        self.stray_next = seq;
        self.stray_count = 0;
        self.marks = self.marks & !Self::HINTED | Self::CONTESTED | if is_hint { Self::HINTED } else { 0 };
    }

    /// Notes that octets up to a sequence number were dropped, unless the FIN tells as much.
    #[inline(always)]
    pub(super) const fn note_dropped(&mut self, end: SeqNum) {
        let is_noted = self.marks & Self::DROPPED != 0 && !end.is_after(self.fin);
        if !is_noted && !self.has(Self::FIN_KNOWN) {
            self.fin = end;
            self.marks |= Self::DROPPED;
        }
    }

    /// Behind the last octet that was dropped, if that lies ahead.
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

    /// Octets that were delivered or given up: where the next chunk will begin.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a segment has told where the stream begins.
    #[must_use]
    pub const fn is_anchored(&self) -> bool {
        self.has(Self::ANCHORED)
    }

    /// Whether the FIN was reached.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has(Self::ENDED)
    }

    /// Whether it was stopped for want of room.
    #[must_use]
    pub const fn is_poisoned(&self) -> bool {
        self.has(Self::POISONED)
    }

    /// Whether nothing more will come of it: poisoned, or stopped by the caller.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.has(Self::STOPPED)
    }

    /// Whether it has something in the reassembler: bytes behind a hole, or bytes to compare.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.has(Self::HELD)
    }

    /// The sequence number that it expects next.
    #[must_use]
    pub const fn next_seq(&self) -> Option<SeqNum> {
        if self.is_anchored() { Some(self.next) } else { None }
    }

    pub(super) const fn anchor(&mut self, seq: SeqNum, flags: u8) {
        self.next = seq;
        self.flags = self.flags & !Self::SOFT | Self::ANCHORED | flags;
    }

    /// Goes on to an offset that lies ahead.
    #[inline(always)]
    pub(super) const fn advance_to(&mut self, offset: u64) {
        self.next = self.next.add((offset - self.offset) as u32);
        self.offset = offset;
    }

    /// Up to where octets are delivered.
    pub(super) fn drain_limit(&self) -> u64 {
        self.fin_offset().unwrap_or(u64::MAX)
    }

    /// The offset of the FIN, if it is known.
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
    fn two_streams_are_a_cache_line() {
        assert_eq!(size_of::<Stream>(), 32);
    }
}
