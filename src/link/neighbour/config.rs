//! What a neighbour table is told, and what it counts.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::fmt;
use std::time::Duration;

use crate::base::{Limits, VlanIds};

/// How a [`NeighbourTable`](super::NeighbourTable) behaves.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NeighbourConfig {
    /// The hardware address of this end; unicast and not zero.
    pub hardware_address: [u8; 6],
    /// The VLAN of this end: frames with other tags are not for it, and its own frames carry these.
    pub vlan_ids: VlanIds,
    /// Whether advertisements say that this end is a router. Default false.
    pub is_router: bool,
    /// How long an answer is believed, but not less than `request_interval`. Default 60 s. A request that refreshes it goes out in its last quarter.
    pub lifetime: Duration,
    /// The least time between two requests for an address, and how long each waits for its answer: what comes later
    /// answers nothing. Default 1 s (RFC 1122 section 2.3.2.1; RETRANS_TIMER of RFC 4861 section 10).
    pub request_interval: Duration,
    /// `neighbour_count_max` and `neighbour_request_count_max` count here.
    pub limits: Limits,
}

impl NeighbourConfig {
    /// The defaults, for an end with this hardware address on an untagged link.
    #[must_use]
    pub const fn new(hardware_address: [u8; 6]) -> Self {
        Self {
            hardware_address,
            vlan_ids: VlanIds::NONE,
            is_router: false,
            lifetime: Duration::from_secs(60),
            request_interval: Duration::from_secs(1),
            limits: Limits::DEFAULT,
        }
    }
}

/// A configuration that cannot work, or an address that cannot be one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeighbourError {
    /// The hardware address is a group's, or zero.
    HardwareAddress,
    /// `neighbour_count_max` or `neighbour_request_count_max` is zero.
    NoRoom,
    /// A local address is multicast, broadcast, loopback or unspecified.
    LocalAddress,
}

impl fmt::Display for NeighbourError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HardwareAddress => "the hardware address must be one of a single station",
            Self::NoRoom => "a neighbour table needs room for one neighbour and one request",
            Self::LocalAddress => "a local address must be one of a single host",
        })
    }
}

impl std::error::Error for NeighbourError {}

/// What a neighbour table did and saw. Every frame that [`hear`](super::NeighbourTable::hear) took for ARP or NDP is
/// counted in one of the fields up to `other_vlan_count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NeighbourStats {
    /// Requests for a local address that were answered.
    pub answered_count: u64,
    /// Replies to an outstanding request, which were believed.
    pub learned_count: u64,
    /// Announcements that nobody asked for: ARP with sender and target alike, unsolicited advertisements. They change
    /// nothing.
    pub gratuitous_count: u64,
    /// Replies that answer no outstanding request of ours, or name another hardware address than their frame's source,
    /// or one of a group. They change nothing.
    pub spoofed_count: u64,
    /// Somebody else speaks as one of the local addresses. It changes nothing.
    pub conflict_count: u64,
    /// Requests for, and replies to, others; frames of our own that came back.
    pub not_for_us_count: u64,
    /// Cut, or against the rules of RFC 826 or RFC 4861.
    pub malformed_count: u64,
    /// On another VLAN than ours.
    pub other_vlan_count: u64,
    /// Requests made.
    pub request_count: u64,
    /// Replies among `learned_count` that named another hardware address than was known before.
    pub changed_count: u64,
    /// Neighbours that made room for another at `neighbour_count_max`.
    pub evicted_count: u64,
    /// Outstanding requests that made room for another at `neighbour_request_count_max`; their replies come too late.
    pub request_evicted_count: u64,
    /// Neighbours whose lifetime ended.
    pub expired_count: u64,
}
