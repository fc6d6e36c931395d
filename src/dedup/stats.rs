//! Counters of a window.

/// Counters since the window was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DedupStats {
    /// Frames that were checked.
    pub frame_count: u64,
    /// Duplicates among them.
    pub duplicate_count: u64,
    /// Octets of the duplicates on the wire.
    pub duplicate_octet_count: u64,
    /// Frames that were kept although an equal one was seen within the time, because it came from the same interface.
    pub same_interface_count: u64,
    /// Frames that were kept because the octets of the frame with the same hash are no longer in the store.
    pub unverified_count: u64,
    /// Frames that were kept because their octets differ from those of the frame with the same hash.
    pub mismatch_count: u64,
    /// Number of times that the budget refused a larger ring or store: the window then holds fewer frames or octets
    /// than its limit.
    pub refused_count: u64,
}
