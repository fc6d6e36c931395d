//! Configuration and counters of a neighbor table.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::fmt;
use std::time::Duration;

use crate::base::{Limits, VlanIds};

crate::base::configuration! {
    /// Configuration of a [`NeighborTable`](super::NeighborTable).
    #[derive(Clone, Copy, Debug)]
    pub struct NeighborConfig {
        /// Hardware address of the local interface; must be a unicast address and not zero.
        pub hardware_address: [u8; 6],
        /// VLAN ids of the local interface: frames with other tags are ignored, and frames that the neighbor table
        /// creates carry these tags.
        pub vlan_ids: VlanIds,
        /// True if advertisements identify the local interface as a router. Default false.
        pub is_router: bool,
        /// Lifetime of a learned hardware address, but not less than `request_interval`. Default 60 s. A request that
        /// refreshes the address is sent in the last quarter of the lifetime.
        pub lifetime: Duration,
        /// Minimum time between two requests for an address, and maximum time from a request to its reply: a
        /// later reply is ignored. Default 1 s (RFC 1122 section 2.3.2.1; RETRANS_TIMER of RFC 4861 section 10).
        pub request_interval: Duration,
        /// Limits, of which the neighbor table uses `neighbor_count_max` and `neighbor_request_count_max`.
        pub limits: Limits,
    }
}

impl NeighborConfig {
    /// Creates the default configuration of a neighbor table for a local interface with this hardware address on an
    /// untagged link.
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

/// Error for an invalid configuration of a neighbor table, or for an invalid local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeighborError {
    /// The hardware address is a group address or zero.
    HardwareAddress,
    /// `neighbor_count_max` or `neighbor_request_count_max` is zero.
    CapacityTooSmall,
    /// A local address is multicast, broadcast, loopback or unspecified.
    LocalAddress,
}

impl fmt::Display for NeighborError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HardwareAddress => "the hardware address must be a unicast address",
            Self::CapacityTooSmall => "neighbor_count_max and neighbor_request_count_max must be at least 1",
            Self::LocalAddress => "a local address must be a unicast address, and not a loopback address",
        })
    }
}

impl std::error::Error for NeighborError {}

/// Counters of a neighbor table. Every frame that [`process`](super::NeighborTable::process) identified as ARP or
/// NDP is counted in one of the fields up to `other_vlan_count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct NeighborStats {
    /// Number of requests for a local address that were answered.
    pub answered_count: u64,
    /// Number of replies to an outstanding request, from which the hardware address was learned.
    pub learned_count: u64,
    /// Number of announcements without a request: ARP with equal sender and target, unsolicited advertisements. They
    /// do not change the table.
    pub gratuitous_count: u64,
    /// Number of replies that answer no outstanding request of the table, or whose hardware address differs from the
    /// source of their frame or is a group address. They do not change the table.
    pub spoofed_count: u64,
    /// Number of frames in which another host uses one of the local addresses. They do not change the table.
    pub conflict_count: u64,
    /// Number of requests for other hosts, of replies to other hosts, and of own frames that were received again.
    pub not_for_us_count: u64,
    /// Number of ARP or NDP messages that are truncated or violate the rules of RFC 826 or RFC 4861.
    pub malformed_count: u64,
    /// Number of frames on a VLAN other than the VLAN of the local interface.
    pub other_vlan_count: u64,
    /// Number of requests that the neighbor table created.
    pub request_count: u64,
    /// Number of replies among `learned_count` with a hardware address that differs from the address known before.
    pub changed_count: u64,
    /// Number of neighbors that were evicted because of `neighbor_count_max`.
    pub evicted_count: u64,
    /// Number of outstanding requests that were evicted because of `neighbor_request_count_max`; replies to them will
    /// be ignored.
    pub request_evicted_count: u64,
    /// Number of neighbors whose lifetime expired.
    pub expired_count: u64,
}
