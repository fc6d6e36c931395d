//! Counts of traffic and of attempts.

use std::net::IpAddr;

use flowgauge::FlowRecord;
use serde::{Deserialize, Serialize};

use crate::bounded::Weight;
use crate::few::Few;

/// Packets and octets of both directions, and flows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Number of flow records.
    pub flow_count: u64,
    /// Number of packets.
    pub packet_count: u64,
    /// Octets that the first end sent: the initiator, or the host itself.
    pub sent: u64,
    /// Octets that the first end received.
    pub received: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, record: &FlowRecord) {
        self.flow_count += 1;
        self.packet_count += record.packet_count();
        self.sent += record.forward.counters.octet_count;
        self.received += record.reverse.counters.octet_count;
    }

    pub(crate) fn add_reversed(&mut self, record: &FlowRecord) {
        self.add(record);
        let (sent, received) = (record.forward.counters.octet_count, record.reverse.counters.octet_count);
        self.sent = self.sent - sent + received;
        self.received = self.received - received + sent;
    }

    /// Returns the number of octets in both directions.
    #[must_use]
    pub const fn octet_count(&self) -> u64 {
        self.sent + self.received
    }
}

impl Weight for Traffic {
    fn weight(&self) -> u64 {
        self.octet_count()
    }
}

/// Flows of a source without an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attempts {
    pub(crate) flow_count: u64,
    /// Those that were refused.
    pub(crate) refused_count: u64,
    /// Those that were answered, and reset at once.
    pub(crate) probe_count: u64,
    pub(crate) ports: Few<u16>,
    pub(crate) hosts: Few<IpAddr>,
}

impl Weight for Attempts {
    fn weight(&self) -> u64 {
        self.flow_count
    }

    fn heap_bytes(&self) -> usize {
        self.ports.heap_bytes() + self.hosts.heap_bytes()
    }
}

/// Returns whether an address is that of a group, or of all hosts of a link.
pub(crate) fn is_group(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    }
}
