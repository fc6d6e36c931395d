//! What a window counts.

/// Counts since the window was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DedupStats {
    /// Frames looked at.
    pub frame_count: u64,
    /// Of those, duplicates.
    pub duplicate_count: u64,
    /// Octets of the duplicates on the wire.
    pub duplicate_octet_count: u64,
    /// Frames that were kept although an equal one was there in time, because it came from the same interface.
    pub same_interface_count: u64,
    /// Frames that were kept because the octets of the frame with the same hash were gone from the store.
    pub unverified_count: u64,
    /// Frames that were kept because their octets are others than those of the frame with the same hash.
    pub mismatch_count: u64,
    /// Times that the budget refused a larger ring or store: the window then holds fewer frames or octets than its cap.
    pub refused_count: u64,
}
