//! Counts of the pool.

use super::input::Malformed;
use super::outcome::{Cap, Discard, EndReason};

/// Counts since the pool was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FragmentStats {
    /// Fragments pushed. Each of them is included in one of the counts down to `refused_by_budget_count`.
    pub fragment_count: u64,
    /// Whole datagrams in one fragment (RFC 6946).
    pub atomic_count: u64,
    /// Fragments that are waiting or have waited.
    pub held_count: u64,
    /// Fragments that were already held.
    pub duplicate_count: u64,
    /// Fragments that completed a datagram.
    pub completed_count: u64,
    /// Fragments that were the last to arrive of a datagram that a snap length truncated.
    pub completed_truncated_count: u64,
    /// Fragments that ended their datagram because of an overlap.
    pub overlap_discarded_count: u64,
    /// Fragments that ended their datagram because they implied a different end or lay beyond the known end.
    pub end_conflict_count: u64,
    /// Fragments that ended their datagram because it had too many fragments.
    pub too_many_fragments_count: u64,
    /// Fragments of datagrams that had been discarded.
    pub already_discarded_count: u64,
    /// Fragments without payload.
    pub empty_count: u64,
    /// Fragments whose length is not a multiple of eight octets although more follow, and that were not
    /// rounded down; or whose offset is not a multiple of eight.
    pub unaligned_count: u64,
    /// Fragments of packets beyond 65,535 octets (ping of death).
    pub beyond_maximum_count: u64,
    /// Fragments that were refused because of the cap on datagrams.
    pub refused_by_datagrams_count: u64,
    /// Fragments that were refused because of the cap on bytes.
    pub refused_by_bytes_count: u64,
    /// Fragments that were refused because of the budget.
    pub refused_by_budget_count: u64,

    /// Fragments, held or completing, with an overlap that the policy resolved.
    pub overlap_resolved_count: u64,
    /// Fragments whose length was rounded down to a multiple of eight octets, regardless of their outcome.
    pub rounded_count: u64,
    /// Fragments that were truncated by the capture.
    pub truncated_count: u64,
    /// Fragments with a timestamp before that of an earlier one.
    pub late_count: u64,

    /// Datagrams started.
    pub datagram_count: u64,
    /// Highest number of datagrams, including tombstones, that were present at once.
    pub datagram_count_max: u64,
    /// Datagrams whose deadline passed.
    pub expired_count: u64,
    /// Expired datagrams whose first fragment never arrived.
    pub expired_without_first_count: u64,
    /// Datagrams that were evicted because of the cap on datagrams.
    pub evicted_by_datagrams_count: u64,
    /// Datagrams that were evicted because of the cap on bytes.
    pub evicted_by_bytes_count: u64,
    /// Datagrams that were evicted because of the budget.
    pub evicted_by_budget_count: u64,
    /// Datagrams that the caller ended.
    pub finished_count: u64,
    /// Tombstones of discarded datagrams that were evicted.
    pub tombstone_evicted_count: u64,
}

impl FragmentStats {
    pub(super) const fn count_malformed(&mut self, malformed: Malformed) {
        match malformed {
            Malformed::Empty => self.empty_count += 1,
            Malformed::Unaligned => self.unaligned_count += 1,
            Malformed::BeyondMaximum => self.beyond_maximum_count += 1,
        }
    }

    pub(super) const fn count_discard(&mut self, discard: Discard) {
        match discard {
            Discard::Overlap => self.overlap_discarded_count += 1,
            Discard::EndConflict => self.end_conflict_count += 1,
            Discard::TooManyFragments => self.too_many_fragments_count += 1,
        }
    }

    pub(super) const fn count_refusal(&mut self, cap: Cap) {
        match cap {
            Cap::Datagrams => self.refused_by_datagrams_count += 1,
            Cap::Bytes => self.refused_by_bytes_count += 1,
            Cap::Budget => self.refused_by_budget_count += 1,
        }
    }

    pub(super) const fn count_end(&mut self, reason: EndReason, has_first: bool) {
        match reason {
            EndReason::Expired => {
                self.expired_count += 1;
                if !has_first {
                    self.expired_without_first_count += 1;
                }
            }
            EndReason::Evicted(Cap::Datagrams) => self.evicted_by_datagrams_count += 1,
            EndReason::Evicted(Cap::Bytes) => self.evicted_by_bytes_count += 1,
            EndReason::Evicted(Cap::Budget) => self.evicted_by_budget_count += 1,
            // The fragment that caused it counts it.
            EndReason::Discarded(_) => {}
            EndReason::Finished => self.finished_count += 1,
        }
    }

    /// Returns the number of datagrams that were not completed: expired, evicted, discarded, or open at the
    /// end.
    #[must_use]
    pub const fn abandoned_count(&self) -> u64 {
        self.expired_count
            + self.evicted_by_datagrams_count
            + self.evicted_by_bytes_count
            + self.evicted_by_budget_count
            + self.overlap_discarded_count
            + self.end_conflict_count
            + self.too_many_fragments_count
            + self.finished_count
    }

    /// Returns the sum of fragments over all outcomes, which always equals `fragment_count`.
    #[doc(hidden)]
    #[must_use]
    pub const fn outcome_count(&self) -> u64 {
        self.atomic_count
            + self.held_count
            + self.duplicate_count
            + self.completed_count
            + self.completed_truncated_count
            + self.overlap_discarded_count
            + self.end_conflict_count
            + self.too_many_fragments_count
            + self.already_discarded_count
            + self.empty_count
            + self.unaligned_count
            + self.beyond_maximum_count
            + self.refused_by_datagrams_count
            + self.refused_by_bytes_count
            + self.refused_by_budget_count
    }
}
