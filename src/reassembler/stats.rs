//! Counters of the TCP reassembler.

use super::event::GapReason;
use super::skew::SkewStats;

/// Counters since the reassembler was created. Segments in order are not counted; the number of their octets is the sum
/// of the streams' offsets minus the octets in gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ReassemblerStats {
    /// Number of segments with octets that were held in memory because they arrived after a hole.
    pub held_segment_count: u64,
    /// Number of octets that were held in memory because they arrived after a hole.
    pub held_octet_count: u64,
    /// Number of gaps for each reason, in the order of [`GapReason::ALL`].
    pub gap_counts: [u64; GapReason::ALL.len()],
    /// Number of octets in gaps.
    pub gap_octet_count: u64,
    /// Number of segments with octets that were received before.
    pub repeated_count: u64,
    /// Number of octets in ranges that differ from bytes received earlier, each counted from the first to the last
    /// octet that differs.
    pub conflict_octet_count: u64,
    /// Number of ranges of octets that differ from bytes received earlier at the same stream offset.
    pub conflict_count: u64,
    /// Number of segments with octets after the FIN.
    pub after_fin_count: u64,
    /// Number of segments that were dropped because a memory limit was reached.
    pub refused_count: u64,
    /// Number of segments that were dropped because their sequence numbers are more than a window away from the
    /// expected one.
    pub stray_count: u64,
    /// Number of acknowledgments that were ignored because they are far beyond all known octets.
    pub implausible_ack_count: u64,
    /// Number of directions that were stopped by [`OverflowPolicy::Poison`](super::OverflowPolicy::Poison).
    pub poisoned_count: u64,
    /// Number of streams that were dropped without `finish` while the reassembler had state for them; the memory of
    /// that state was released.
    pub orphaned_count: u64,
    /// Number of octets that were delivered without being kept for comparison, because memory was refused.
    pub uncompared_octet_count: u64,
    /// Maximum memory of the reassembler at any time in bytes, as charged to the budget.
    pub held_bytes_max: u64,
    /// Skew between the directions of the capture.
    pub skew: SkewStats,
}

impl ReassemblerStats {
    /// Adds the counters of another reassembler. The sum of `held_bytes_max` is an upper bound, because each
    /// reassembler reached its maximum at a different time.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            held_segment_count,
            held_octet_count,
            gap_counts,
            gap_octet_count,
            repeated_count,
            conflict_octet_count,
            conflict_count,
            after_fin_count,
            refused_count,
            stray_count,
            implausible_ack_count,
            poisoned_count,
            orphaned_count,
            uncompared_octet_count,
            held_bytes_max,
            skew,
        } = other;
        self.held_segment_count += held_segment_count;
        self.held_octet_count += held_octet_count;
        self.gap_counts.iter_mut().zip(gap_counts).for_each(|(own, other)| *own += other);
        self.gap_octet_count += gap_octet_count;
        self.repeated_count += repeated_count;
        self.conflict_octet_count += conflict_octet_count;
        self.conflict_count += conflict_count;
        self.after_fin_count += after_fin_count;
        self.refused_count += refused_count;
        self.stray_count += stray_count;
        self.implausible_ack_count += implausible_ack_count;
        self.poisoned_count += poisoned_count;
        self.orphaned_count += orphaned_count;
        self.uncompared_octet_count += uncompared_octet_count;
        self.held_bytes_max += held_bytes_max;
        self.skew.add(skew);
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "reasons are numbered from zero, and there is a place for each"
    )]
    pub(super) const fn count_gap(&mut self, reason: GapReason, len: u64) {
        self.gap_counts[reason as usize] += 1;
        self.gap_octet_count += len;
    }

    /// Returns the number of gaps with the given reason.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "reasons are numbered from zero, and there is a place for each"
    )]
    pub const fn gap_count(&self, reason: GapReason) -> u64 {
        // The variants are numbered in the order of `ALL`.
        self.gap_counts[reason as usize]
    }
}
