//! Counters of a deduplication window.

/// Counters of a deduplication window since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DedupStats {
    /// Number of frames that were checked.
    pub frame_count: u64,
    /// Number of duplicates among the frames that were checked.
    pub duplicate_count: u64,
    /// Number of octets that the duplicates had on the wire.
    pub duplicate_octet_count: u64,
    /// Number of frames that were kept although an equal frame was seen within the window, because both frames came
    /// from the same interface.
    pub same_interface_count: u64,
    /// Number of frames that were kept because the octets of the earlier frame with the same hash are no longer
    /// stored.
    pub unverified_count: u64,
    /// Number of frames that were kept because their octets differ from those of the earlier frame with the same
    /// hash.
    pub mismatch_count: u64,
    /// Number of times that the memory budget refused a larger ring or store. The window then holds fewer frames or
    /// octets than its limit.
    pub refused_count: u64,
}
