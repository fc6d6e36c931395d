//! Counts of the pool.

use super::input::Malformed;
use super::outcome::{Cap, Discard, EndReason};

/// Counts of fragments and datagrams since the fragment pool was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FragmentStats {
    /// Number of fragments that were pushed to the pool. Each fragment is included in exactly one of the
    /// counts from `atomic_count` to `refused_by_budget_count`.
    pub fragment_count: u64,
    /// Number of fragments that contain a whole datagram: offset zero and no more fragments (RFC 6946).
    pub atomic_count: u64,
    /// Number of fragments that were added to a datagram which remained incomplete.
    pub held_count: u64,
    /// Number of fragments that were duplicates of held fragments.
    pub duplicate_count: u64,
    /// Number of fragments that completed a datagram.
    pub completed_count: u64,
    /// Number of fragments that were the last to arrive of a datagram of which a snap length truncated a
    /// part.
    pub completed_truncated_count: u64,
    /// Number of fragments that caused their datagram to be discarded because of an overlap.
    pub overlap_discarded_count: u64,
    /// Number of fragments that caused their datagram to be discarded because they implied a different end of
    /// the datagram or lay beyond its known end.
    pub end_conflict_count: u64,
    /// Number of fragments that caused their datagram to be discarded because it had too many fragments.
    pub too_many_fragments_count: u64,
    /// Number of fragments of datagrams that had already been discarded.
    pub already_discarded_count: u64,
    /// Number of fragments without payload.
    pub empty_count: u64,
    /// Number of fragments that were refused because more fragments follow although the length is not a
    /// multiple of eight octets, or because the offset is not a multiple of eight octets.
    pub unaligned_count: u64,
    /// Number of fragments of packets that would exceed 65,535 octets (ping of death).
    pub beyond_maximum_count: u64,
    /// Number of fragments that were refused because of the cap on the number of datagrams.
    pub refused_by_datagrams_count: u64,
    /// Number of fragments that were refused because of the cap on the memory of the pool.
    pub refused_by_bytes_count: u64,
    /// Number of fragments that were refused because of the memory budget that all layers share.
    pub refused_by_budget_count: u64,

    /// Number of fragments that overlapped other fragments, and whose overlap the policy resolved.
    pub overlap_resolved_count: u64,
    /// Number of fragments whose length was rounded down to a multiple of eight octets, regardless of their
    /// outcome.
    pub rounded_count: u64,
    /// Number of fragments that were truncated by the capture.
    pub truncated_count: u64,
    /// Number of fragments with a timestamp before the highest timestamp so far.
    pub late_count: u64,

    /// Number of datagrams of which at least one fragment was held.
    pub datagram_count: u64,
    /// Highest number of datagrams and tombstones of discarded datagrams that were in the pool at once.
    pub datagram_count_max: u64,
    /// Number of incomplete datagrams whose deadline passed.
    pub expired_count: u64,
    /// Number of expired datagrams whose first fragment never arrived.
    pub expired_without_first_count: u64,
    /// Number of datagrams that were evicted because of the cap on the number of datagrams.
    pub evicted_by_datagrams_count: u64,
    /// Number of datagrams that were evicted because of the cap on the memory of the pool.
    pub evicted_by_bytes_count: u64,
    /// Number of datagrams that were evicted because of the memory budget that all layers share.
    pub evicted_by_budget_count: u64,
    /// Number of incomplete datagrams that the caller ended.
    pub finished_count: u64,
    /// Number of tombstones of discarded datagrams that were evicted.
    pub tombstone_evicted_count: u64,
}

impl FragmentStats {
    /// Adds the counts of another part of the input.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            fragment_count,
            atomic_count,
            held_count,
            duplicate_count,
            completed_count,
            completed_truncated_count,
            overlap_discarded_count,
            end_conflict_count,
            too_many_fragments_count,
            already_discarded_count,
            empty_count,
            unaligned_count,
            beyond_maximum_count,
            refused_by_datagrams_count,
            refused_by_bytes_count,
            refused_by_budget_count,
            overlap_resolved_count,
            rounded_count,
            truncated_count,
            late_count,
            datagram_count,
            datagram_count_max,
            expired_count,
            expired_without_first_count,
            evicted_by_datagrams_count,
            evicted_by_bytes_count,
            evicted_by_budget_count,
            finished_count,
            tombstone_evicted_count,
        } = other;
        self.fragment_count += fragment_count;
        self.atomic_count += atomic_count;
        self.held_count += held_count;
        self.duplicate_count += duplicate_count;
        self.completed_count += completed_count;
        self.completed_truncated_count += completed_truncated_count;
        self.overlap_discarded_count += overlap_discarded_count;
        self.end_conflict_count += end_conflict_count;
        self.too_many_fragments_count += too_many_fragments_count;
        self.already_discarded_count += already_discarded_count;
        self.empty_count += empty_count;
        self.unaligned_count += unaligned_count;
        self.beyond_maximum_count += beyond_maximum_count;
        self.refused_by_datagrams_count += refused_by_datagrams_count;
        self.refused_by_bytes_count += refused_by_bytes_count;
        self.refused_by_budget_count += refused_by_budget_count;
        self.overlap_resolved_count += overlap_resolved_count;
        self.rounded_count += rounded_count;
        self.truncated_count += truncated_count;
        self.late_count += late_count;
        self.datagram_count += datagram_count;
        self.datagram_count_max = self.datagram_count_max.max(*datagram_count_max);
        self.expired_count += expired_count;
        self.expired_without_first_count += expired_without_first_count;
        self.evicted_by_datagrams_count += evicted_by_datagrams_count;
        self.evicted_by_bytes_count += evicted_by_bytes_count;
        self.evicted_by_budget_count += evicted_by_budget_count;
        self.finished_count += finished_count;
        self.tombstone_evicted_count += tombstone_evicted_count;
    }
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

    /// Returns the number of datagrams that ended incomplete: expired, evicted, discarded, or ended by the
    /// caller.
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

    /// Returns the sum of the fragment counts of all outcomes, which always equals `fragment_count`.
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
