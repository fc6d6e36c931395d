//! Counters of a forwarder.

use crate::source::SourceStats;

/// Counts of the packets that a forwarder received from one of its devices. A super-packet is one packet here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ForwardStats {
    /// Packets that were read from the device.
    pub received: SourceStats,
    /// Number of packets that were written to the other device; each segment that was split off counts.
    pub sent_count: u64,
    /// Number of packets that the handler dropped, or whose rewritten form was empty.
    pub dropped_count: u64,
    /// Number of packets that were dropped because the channel between reading and writing was full.
    pub overflow_count: u64,
    /// Number of packets that the other device did not accept: its interface is down, or a header is inconsistent.
    pub rejected_count: u64,
    /// Number of super-packets that were split, for a rewrite or for a device without offload.
    pub split_count: u64,
    /// Number of ARP and IPv6 neighbor messages that the neighbor table of a TAP device processed.
    pub neighbor_count: u64,
    /// Number of packets without an IP packet for the other device: other protocols, and frames for other hosts. Only
    /// between a TAP and a TUN device.
    pub untranslated_count: u64,
    /// Number of packets that were dropped because the hardware address of their destination was not known.
    pub unresolved_count: u64,
}

impl std::ops::AddAssign for ForwardStats {
    /// Adds the counts of another queue to this one.
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.sent_count += other.sent_count;
        self.dropped_count += other.dropped_count;
        self.overflow_count += other.overflow_count;
        self.rejected_count += other.rejected_count;
        self.split_count += other.split_count;
        self.neighbor_count += other.neighbor_count;
        self.untranslated_count += other.untranslated_count;
        self.unresolved_count += other.unresolved_count;
    }
}
