//! Datagram under reassembly: classification of a fragment, and placement of its bytes.

use super::input::Extent;
use super::pages::{Pages, UNIT_LEN};
use super::policy::OverlapPolicy;
use crate::base::{IpProtocol, Timestamp};

/// Classification of a fragment with respect to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The fragment is to be added to the datagram; `overlaps` is true if it overlaps held fragments and the
    /// policy resolves the overlap.
    Insert { overlaps: bool },
    /// The fragment is a duplicate of a held fragment.
    Duplicate,
    /// The fragment overlaps held fragments, and the policy discards datagrams with overlaps.
    Overlap,
    /// The fragment implies a different end of the datagram than held fragments, or lies beyond the known
    /// end.
    EndConflict,
}

#[derive(Debug)]
pub(super) struct Body<T> {
    pub(super) pages: Pages,
    /// Tags that the caller passed with the fragments and that were not returned to the caller yet.
    pub(super) tags: Vec<T>,
    pub(super) first_time: Timestamp,
    pub(super) last_time: Timestamp,
    pub(super) fragment_count: u32,
    /// Protocol of the payload according to the fragment with offset zero; zero before that fragment arrives.
    pub(super) protocol: IpProtocol,
    /// Length of the datagram's payload in octets; known once the last fragment has arrived.
    total_len: Option<u32>,
    /// Highest end of a fragment so far, as an offset in the datagram's payload, in octets.
    highest_end: u32,
    /// Offset of the first octet in the datagram's payload that arrived but was not captured; `u32::MAX` if
    /// there is none.
    truncated_at: u32,
    filled_units: u32,
}

impl<T> Body<T> {
    pub(super) fn new() -> Self {
        Self {
            pages: Pages::new(),
            tags: Vec::new(),
            first_time: Timestamp::ZERO,
            last_time: Timestamp::ZERO,
            fragment_count: 0,
            protocol: IpProtocol(0),
            total_len: None,
            highest_end: 0,
            truncated_at: u32::MAX,
            filled_units: 0,
        }
    }

    /// Resets the body for another datagram. The pages and tags of the previous datagram must have been
    /// removed.
    pub(super) fn reset(&mut self, now: Timestamp) {
        debug_assert!(self.pages.page_count() == 0 && self.tags.is_empty());
        (self.first_time, self.last_time) = (now, now);
        (self.fragment_count, self.protocol) = (0, IpProtocol(0));
        (self.total_len, self.highest_end) = (None, 0);
        (self.truncated_at, self.filled_units) = (u32::MAX, 0);
    }

    /// Returns whether every octet of the datagram has arrived, whether captured or not.
    pub(super) fn is_complete(&self) -> bool {
        self.total_len.is_some_and(|len| self.filled_units == len.div_ceil(UNIT_LEN as u32))
    }

    /// Returns whether some octets of the datagram's payload were not captured.
    pub(super) const fn is_truncated(&self) -> bool {
        self.truncated_at != u32::MAX
    }

    /// Returns the number of octets of a complete datagram's payload before the first octet that was not
    /// captured.
    pub(super) fn captured_len(&self) -> u32 {
        self.total_len.unwrap_or(0).min(self.truncated_at)
    }

    /// Returns the length of the datagram's payload in octets, once the last fragment has arrived.
    pub(super) const fn total_len(&self) -> Option<u32> {
        self.total_len
    }

    /// Returns the number of octets of the datagram's payload that have arrived, including octets that were
    /// not captured.
    pub(super) fn held_len(&self) -> u32 {
        let len = self.filled_units * UNIT_LEN as u32;
        match self.total_len {
            // The last unit may be short.
            Some(total) if self.pages.is_filled(total.saturating_sub(1) / UNIT_LEN as u32) => {
                len - (total.next_multiple_of(UNIT_LEN as u32) - total)
            }
            _ => len,
        }
    }

    /// Returns the first octets of the datagram's payload, if the fragment with offset zero has arrived.
    pub(super) fn head(&self) -> Option<&[u8]> {
        if !self.pages.is_filled(0) {
            return None;
        }
        let head = self.pages.head();
        let len = self.truncated_at.min(self.total_len.unwrap_or(u32::MAX));
        Some(head.get(..head.len().min(len as usize)).unwrap_or_default())
    }

    fn is_end_conflict(&self, new: &Extent<'_>) -> bool {
        if new.is_last {
            new.end < self.highest_end || self.total_len.is_some_and(|len| len != new.end)
        } else {
            self.total_len.is_some_and(|len| new.end > len)
        }
    }

    fn note_end(&mut self, new: &Extent<'_>) {
        self.highest_end = self.highest_end.max(new.end);
        if new.is_last {
            self.total_len = Some(new.end);
        }
    }

    /// Classifies a fragment with respect to the held fragments of the datagram, without changing the
    /// datagram.
    pub(super) fn judge(&self, new: &Extent<'_>, policy: OverlapPolicy) -> Verdict {
        let (from, to) = new.units();
        let overlap = self.pages.next_filled(from, to);
        if overlap == to {
            return if self.is_end_conflict(new) {
                Verdict::EndConflict
            } else {
                Verdict::Insert { overlaps: false }
            };
        }
        if policy == OverlapPolicy::Linux {
            return match () {
                () if self.is_end_conflict(new) => Verdict::EndConflict,
                // The kernel compares runs, not bytes.
                () if overlap == from && self.pages.piece_end(from) >= to => Verdict::Duplicate,
                () => Verdict::Overlap,
            };
        }
        match () {
            () if self.is_duplicate(new, overlap) => Verdict::Duplicate,
            () if self.is_end_conflict(new) => Verdict::EndConflict,
            () if policy.discards() => Verdict::Overlap,
            () => Verdict::Insert { overlaps: true },
        }
    }

    /// Returns whether a fragment with the same offset, the same end and the same bytes is held in one piece.
    /// `overlap` is the index of the first unit that the fragment overlaps.
    fn is_duplicate(&self, new: &Extent<'_>, overlap: u32) -> bool {
        let (from, to) = new.units();
        let is_end = self.total_len == Some(new.end);
        // Pieces are stored in units of eight octets; the last one may end within its unit.
        let piece_end = self.total_len.map_or(to * 8, |len| len.min(to * 8));
        overlap == from
            && new.is_last == is_end
            && new.end == piece_end
            && self.pages.piece_start(from) == from
            && self.pages.piece_end(from) == to
            // If the capture truncated the datagram, not all bytes can be compared, so none are.
            && (self.is_truncated() || self.pages.holds(new.start, new.bytes))
    }

    /// Records a duplicate fragment, which changes no bytes of the datagram.
    pub(super) fn note_duplicate(&mut self, new: &Extent<'_>, policy: OverlapPolicy) {
        // The kernel accepts the end from a duplicate, but does not check whether the datagram is then
        // complete.
        if policy == OverlapPolicy::Linux {
            self.note_end(new);
        }
    }

    /// Writes the bytes of a fragment, which [`judge`](Self::judge) classified as new, to the pages of the
    /// datagram. The pages must have been allocated.
    pub(super) fn insert(&mut self, new: &Extent<'_>, overlaps: bool, policy: OverlapPolicy) {
        let (from, to) = new.units();
        let continues = policy == OverlapPolicy::Linux && new.start == self.highest_end && from > 0;
        if overlaps {
            self.insert_over(new, policy);
        } else {
            self.take(new, from, to);
            if continues {
                self.pages.clear_start(from);
            }
        }
        self.note_end(new);
    }

    /// Marks the units of eight octets from `from` to `to` (exclusive) as filled by a fragment, and writes
    /// the fragment's bytes there.
    fn take(&mut self, new: &Extent<'_>, from: u32, to: u32) {
        self.filled_units += self.pages.fill(from, to);
        let start = from * UNIT_LEN as u32;
        let end = (to * UNIT_LEN as u32).min(new.end);
        let captured_end = new.start + new.bytes.len() as u32;
        if captured_end < end {
            self.truncated_at = self.truncated_at.min(captured_end.max(start));
        }
        let (begin, end) =
            ((start - new.start) as usize, (end.min(captured_end).max(start) - new.start) as usize);
        self.pages.write(start, new.bytes.get(begin..end).unwrap_or_default());
    }

    /// Writes the bytes of a fragment to the holes that it covers, and to those held pieces that it replaces
    /// according to the policy.
    fn insert_over(&mut self, new: &Extent<'_>, policy: OverlapPolicy) {
        let (from, to) = new.units();
        // Range of adjacent units that the fragment has won but that are not assigned to it yet.
        let mut won: Option<u32> = None;
        let mut at = from;
        while at < to {
            let (end, wins) = if self.pages.is_filled(at) {
                let start = self.pages.piece_start(at);
                let end = self.pages.piece_end(at);
                (end, policy.new_wins((start, end), (from, to)))
            } else {
                (self.pages.next_filled(at, to), true)
            };
            if wins {
                won.get_or_insert(at);
            } else if let Some(start) = won.take() {
                self.take(new, start, at);
            }
            if end > to && wins {
                // Remainder of the piece behind the fragment.
                self.pages.set_start(to);
            }
            at = end;
        }
        if let Some(start) = won {
            self.take(new, start, to);
        }
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.pages.check_invariants(), self.filled_units);
        assert!(self.tags.len() <= self.fragment_count as usize);
        assert!(self.total_len.is_none_or(|len| len == self.highest_end), "nothing lies beyond the end");
    }
}
