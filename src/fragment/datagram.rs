//! One datagram that is being put together: what a fragment means to it, and where the fragment's bytes go.

use super::input::Extent;
use super::pages::{Pages, UNIT_LEN};
use super::policy::OverlapPolicy;
use crate::base::{IpProtocol, Timestamp};

/// What a fragment is to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its bytes belong here; whether they overlap others.
    Place { overlaps: bool },
    /// It was here before.
    Duplicate,
    /// It overlaps others where that is not allowed.
    Overlap,
    /// It says that the datagram ends elsewhere than others say, or lies beyond its end.
    EndConflict,
}

#[derive(Debug)]
pub(super) struct Body<T> {
    pub(super) pages: Pages,
    /// What the caller gave with each fragment and has not taken back.
    pub(super) tags: Vec<T>,
    pub(super) first_time: Timestamp,
    pub(super) last_time: Timestamp,
    pub(super) fragment_count: u32,
    /// As the fragment with offset zero tells it.
    pub(super) protocol: IpProtocol,
    /// Octets, once the last fragment has come.
    total_len: Option<u32>,
    /// The furthest octet position that a fragment reached.
    highest_end: u32,
    /// The first octet that was not captured.
    cut_at: u32,
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
            cut_at: u32::MAX,
            filled_units: 0,
        }
    }

    /// Makes it ready for another datagram; its pages and tags must be gone.
    pub(super) fn reset(&mut self, now: Timestamp) {
        debug_assert!(self.pages.page_count() == 0 && self.tags.is_empty());
        (self.first_time, self.last_time) = (now, now);
        (self.fragment_count, self.protocol) = (0, IpProtocol(0));
        (self.total_len, self.highest_end) = (None, 0);
        (self.cut_at, self.filled_units) = (u32::MAX, 0);
    }

    /// Whether every octet of the datagram is there; captured or not.
    pub(super) fn is_complete(&self) -> bool {
        self.total_len.is_some_and(|len| self.filled_units == len.div_ceil(UNIT_LEN as u32))
    }

    /// Whether octets were not captured.
    pub(super) const fn is_cut(&self) -> bool {
        self.cut_at != u32::MAX
    }

    /// Octets that the datagram has, if it is complete, as far as they were captured without a hole.
    pub(super) fn captured_len(&self) -> u32 {
        self.total_len.unwrap_or(0).min(self.cut_at)
    }

    /// Octets of the datagram, once its last fragment has come.
    pub(super) const fn total_len(&self) -> Option<u32> {
        self.total_len
    }

    /// Octets that are there now, those counted whole that are not captured.
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

    /// The datagram's first octets, if the fragment with offset zero has come.
    pub(super) fn head(&self) -> Option<&[u8]> {
        if !self.pages.is_filled(0) {
            return None;
        }
        let head = self.pages.head();
        let len = self.cut_at.min(self.total_len.unwrap_or(u32::MAX));
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

    /// What a fragment is here. Changes nothing.
    pub(super) fn judge(&self, new: &Extent<'_>, policy: OverlapPolicy) -> Verdict {
        let (from, to) = new.units();
        let overlap = self.pages.next_filled(from, to);
        if overlap == to {
            return if self.is_end_conflict(new) {
                Verdict::EndConflict
            } else {
                Verdict::Place { overlaps: false }
            };
        }
        if policy == OverlapPolicy::Linux {
            return match () {
                () if self.is_end_conflict(new) => Verdict::EndConflict,
                // The kernel looks at runs, not at bytes.
                () if overlap == from && self.pages.piece_end(from) >= to => Verdict::Duplicate,
                () => Verdict::Overlap,
            };
        }
        match () {
            () if self.is_duplicate(new, overlap) => Verdict::Duplicate,
            () if self.is_end_conflict(new) => Verdict::EndConflict,
            () if policy.discards() => Verdict::Overlap,
            () => Verdict::Place { overlaps: true },
        }
    }

    /// Whether the same fragment is held in one piece: same place, same end, same bytes.
    fn is_duplicate(&self, new: &Extent<'_>, overlap: u32) -> bool {
        let (from, to) = new.units();
        let is_end = self.total_len == Some(new.end);
        // Pieces are kept by units of eight octets; the last one may end within its unit.
        let piece_end = self.total_len.map_or(to * 8, |len| len.min(to * 8));
        overlap == from
            && new.is_last == is_end
            && new.end == piece_end
            && self.pages.piece_start(from) == from
            && self.pages.piece_end(from) == to
            // Of a datagram that the capture cut, not all bytes can be compared, and none are.
            && (self.is_cut() || self.pages.holds(new.start, new.bytes))
    }

    /// Notes a fragment that changes no bytes.
    pub(super) fn note_duplicate(&mut self, new: &Extent<'_>, policy: OverlapPolicy) {
        // The kernel believes a duplicate's end, but does not look whether the datagram is complete with it.
        if policy == OverlapPolicy::Linux {
            self.note_end(new);
        }
    }

    /// Puts the bytes of a fragment where [`judge`](Self::judge) said that they belong. The pages must be there.
    pub(super) fn place(&mut self, new: &Extent<'_>, overlaps: bool, policy: OverlapPolicy) {
        let (from, to) = new.units();
        let continues = policy == OverlapPolicy::Linux && new.start == self.highest_end && from > 0;
        if overlaps {
            self.place_over(new, policy);
        } else {
            self.take(new, from, to);
            if continues {
                self.pages.clear_start(from);
            }
        }
        self.note_end(new);
    }

    /// Gives the units of a range to a fragment.
    fn take(&mut self, new: &Extent<'_>, from: u32, to: u32) {
        self.filled_units += self.pages.fill(from, to);
        let start = from * UNIT_LEN as u32;
        let end = (to * UNIT_LEN as u32).min(new.end);
        let captured_end = new.start + new.bytes.len() as u32;
        if captured_end < end {
            self.cut_at = self.cut_at.min(captured_end.max(start));
        }
        let (begin, end) =
            ((start - new.start) as usize, (end.min(captured_end).max(start) - new.start) as usize);
        self.pages.write(start, new.bytes.get(begin..end).unwrap_or_default());
    }

    /// Goes through the holes and pieces that a fragment covers, and gives it those that it wins.
    fn place_over(&mut self, new: &Extent<'_>, policy: OverlapPolicy) {
        let (from, to) = new.units();
        // The range of adjoining units that the fragment has won and not been given yet.
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
                // What is left of the piece behind the fragment.
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
