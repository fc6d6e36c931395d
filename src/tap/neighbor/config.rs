//! Configuration and counters of a neighbor table.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::fmt;
use std::time::Duration;

use crate::base::{Limits, VlanIds};

/// Configuration of a [`NeighborTable`](super::NeighborTable).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NeighborConfig {
    /// Hardware address of the local interface; unicast and not zero.
    pub hardware_address: [u8; 6],
    /// VLAN of the local interface: frames with other tags are ignored, and the table's own frames carry
    /// these tags.
    pub vlan_ids: VlanIds,
    /// True if advertisements identify the local interface as a router. Default false.
    pub is_router: bool,
    /// Lifetime of a learned address, but not less than `request_interval`. Default 60 s. A request that
    /// refreshes the address is sent in the last quarter of the lifetime.
    pub lifetime: Duration,
    /// Minimum time between two requests for an address, and maximum time from a request to its reply: a
    /// later reply is ignored. Default 1 s (RFC 1122 section 2.3.2.1; RETRANS_TIMER of RFC 4861 section 10).
    pub request_interval: Duration,
    /// Limits; `neighbor_count_max` and `neighbor_request_count_max` apply here.
    pub limits: Limits,
}

impl NeighborConfig {
    /// Creates the default configuration for a local interface with this hardware address on an untagged
    /// link.
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

/// Error for an invalid configuration, or for an invalid local address.
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
    /// Requests for a local address that were answered.
    pub answered_count: u64,
    /// Replies to an outstanding request, which were learned.
    pub learned_count: u64,
    /// Announcements without a request: ARP with equal sender and target, unsolicited advertisements. They
    /// change nothing.
    pub gratuitous_count: u64,
    /// Replies that answer no outstanding request of the table, or whose hardware address differs from the
    /// source of their frame or is a group address. They change nothing.
    pub spoofed_count: u64,
    /// Frames in which another host uses one of the local addresses. They change nothing.
    pub conflict_count: u64,
    /// Requests for, and replies to, other hosts; own frames that were received again.
    pub not_for_us_count: u64,
    /// Truncated messages, or messages that violate the rules of RFC 826 or RFC 4861.
    pub malformed_count: u64,
    /// Frames on a VLAN other than that of the local interface.
    pub other_vlan_count: u64,
    /// Requests created.
    pub request_count: u64,
    /// Replies among `learned_count` with a hardware address that differs from the one known before.
    pub changed_count: u64,
    /// Neighbors that were evicted because of `neighbor_count_max`.
    pub evicted_count: u64,
    /// Outstanding requests that were evicted because of `neighbor_request_count_max`; their replies will be
    /// ignored.
    pub request_evicted_count: u64,
    /// Neighbors whose lifetime expired.
    pub expired_count: u64,
}
