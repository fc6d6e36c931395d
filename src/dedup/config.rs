//! Configuration of a deduplication window.

use std::time::Duration;

/// The parts of two frames that must be equal so that the second frame is a duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// All captured octets and their count, the length on the wire, and the link type.
    #[default]
    Exact,
    /// The parts that neither a mirror port nor a router changes.
    ///
    /// For IPv4 and IPv6 on Ethernet, Linux cooked capture, BSD loopback, PPP and raw IP: the packet up to its own
    /// length, without traffic class, TTL or hop limit, and header checksum; MAC addresses, VLAN tags, padding and
    /// check sequences are therefore ignored. For other protocols on Ethernet or cooked capture: the EtherType after
    /// the tags and the data that follows it; for ARP, without padding. For all other frames, the same as
    /// [`Self::Exact`]. The content of tunnels, and checksums of TCP and UDP, are compared unchanged.
    IgnoreMirrorChanges,
}

crate::base::configuration! {
    /// Configuration of a [`Window`](super::Window) that detects duplicate frames.
    ///
    /// Of the limits in its [`Resources`](crate::base::Resources), the window uses `dedup_frame_count_max`, and
    /// `dedup_bytes_max` if it compares octets.
    #[derive(Clone, Copy, Debug)]
    pub struct DedupConfig {
        /// Maximum difference between the timestamps of two frames that are duplicates, inclusive. Default 1 ms.
        pub window: Duration,
        /// The parts of two frames that must be equal so that the second frame is a duplicate.
        pub mode: Mode,
        /// True if a frame is a duplicate only of a frame that another interface captured. Packets that a host sends
        /// repeatedly are then counted as often as they were sent. Default false.
        pub only_between_interfaces: bool,
        /// True if octets are compared in addition to hashes; a frame is kept if the octets to compare are no longer
        /// stored. Default false: two different frames have the same hash of 64 bits once in some 10^15 frames, unless an
        /// attacker knows the seeds.
        pub verifies: bool,
    }
}

impl Default for DedupConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(1),
            mode: Mode::default(),
            only_between_interfaces: false,
            verifies: false,
        }
    }
}
