//! What the caller decides about a window.

use std::fmt;
use std::time::Duration;

use crate::base::{Budget, Limits};

/// What of two frames must be equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// All captured octets, their count, the length on the wire and the link type.
    #[default]
    Exact,
    /// What neither a mirror port nor a router changes.
    ///
    /// Of IPv4 and IPv6 on Ethernet, Linux cooked capture, BSD loopback, PPP and raw IP: the packet as long as its own length
    /// says, without traffic class, TTL or hop limit, and header checksum; so MAC addresses, VLAN tags, padding and check
    /// sequences do not count. Of anything else on Ethernet or cooked capture: the EtherType behind the tags and what follows
    /// it, of ARP without padding. All else as [`Self::Exact`]. What a tunnel carries is compared as it is, and so are
    /// checksums of TCP and UDP.
    IgnoreMirrorChanges,
}

/// Time, mode, limits and seeds of a [`Window`](super::Window).
#[derive(Clone)]
#[non_exhaustive]
pub struct DedupConfig {
    /// How far two times may be apart, both ends included, at most. Default 1 ms.
    pub window: Duration,
    /// What must be equal.
    pub mode: Mode,
    /// Drops only what was captured by another interface than the frame that is kept. A host that repeats itself is then heard
    /// as often as it spoke. Default no.
    pub only_between_interfaces: bool,
    /// Compares octets too, and drops nothing of which they are not there any more. Default no: two different frames have
    /// the same hash of 64 bits once in some 10^15 frames, if nobody knows the seeds.
    pub verifies: bool,
    /// Caps. Of these, the window looks at `dedup_frame_count_max`, and at `dedup_bytes_max` if it verifies.
    pub limits: Limits,
    /// The account of memory; shared with other layers by cloning the handle.
    pub budget: Budget,
    /// Seeds of the keyed hash, for runs that must be repeatable; drawn at random (the default) if `None`.
    pub seeds: Option<[u64; 4]>,
}

impl Default for DedupConfig {
    fn default() -> Self {
        let limits = Limits::DEFAULT;
        Self {
            window: Duration::from_millis(1),
            mode: Mode::default(),
            only_between_interfaces: false,
            verifies: false,
            limits,
            budget: Budget::new(limits.total_bytes_max),
            seeds: None,
        }
    }
}

impl fmt::Debug for DedupConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds stay unsaid: who knows them can choose frames that are taken for duplicates of others.
        f.debug_struct("DedupConfig")
            .field("window", &self.window)
            .field("mode", &self.mode)
            .field("only_between_interfaces", &self.only_between_interfaces)
            .field("verifies", &self.verifies)
            .field("limits", &self.limits)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// A configuration that no window can be made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A cap of zero frames, or of more than 2^30.
    FrameCount,
    /// The budget does not hold what a window begins with.
    BudgetTooSmall {
        /// Bytes that it would take.
        needed_bytes: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameCount => f.write_str("dedup_frame_count_max is zero or more than 2^30"),
            Self::BudgetTooSmall { needed_bytes } => {
                write!(f, "the budget has no room for a window of frames: {needed_bytes} bytes")
            }
        }
    }
}

impl std::error::Error for ConfigError {}
