//! Events of type `stats`.

use super::time::{Time, age};
use crate::base::{EndReason, IpProtocol, Timestamp};
use crate::record::FlowRecord;
use crate::row::{Group, Name};

/// Counters of the flows that were written so far, in an event.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    now: Timestamp,
    counters: Counters,
}

/// The object `stats`.
#[derive(Clone, Copy, Debug)]
struct Counters {
    uptime: u64,
    packets: Packets,
    flows: Flows,
}

/// The object `stats.decoder`.
#[derive(Clone, Copy, Debug)]
struct Packets {
    packet_count: u64,
    octet_count: u64,
}

/// The object `stats.flow`.
#[derive(Clone, Copy, Debug)]
struct Flows {
    total_count: u64,
    tcp_count: u64,
    udp_count: u64,
    icmp_count: u64,
    icmpv6_count: u64,
}

impl Stats {
    /// Counters before the first flow.
    pub(super) const NONE: Self = Self {
        now: Timestamp::ZERO,
        counters: Counters {
            uptime: 0,
            packets: Packets { packet_count: 0, octet_count: 0 },
            flows: Flows { total_count: 0, tcp_count: 0, udp_count: 0, icmp_count: 0, icmpv6_count: 0 },
        },
    };

    /// Adds a record of a flow.
    pub(super) fn add(&mut self, record: &FlowRecord) {
        let Counters { packets, flows, .. } = &mut self.counters;
        packets.packet_count += record.packet_count();
        packets.octet_count += record.octet_count();
        if record.flow_end_reason == EndReason::ActiveTimeout {
            return;
        }
        flows.total_count += 1;
        match record.protocol() {
            IpProtocol::TCP => flows.tcp_count += 1,
            IpProtocol::UDP => flows.udp_count += 1,
            IpProtocol::ICMP => flows.icmp_count += 1,
            IpProtocol::ICMPV6 => flows.icmpv6_count += 1,
            _ => {}
        }
    }

    /// Returns the event at a time. `start` is the first time of all events.
    pub(super) const fn at(self, start: Timestamp, now: Timestamp) -> Self {
        let Self { counters, .. } = self;
        Self { now, counters: Counters { uptime: age(start, now), ..counters } }
    }
}

crate::table! {
    /// Counters: an event at the end of the run, on request.
    impl "eve.stats" for Stats as row {
        /// Latest time of all events.
        "timestamp": Time = Time(row.now);
        /// Always `stats`.
        "event_type": Name = Name("stats");
        /// Counters of the flows that were written; other frames are not counted.
        "stats": Group<Counters> = Group(row.counters);
    }
}

crate::table! {
    /// Counters of flows.
    impl "eve.stats.stats" for Counters as row {
        /// Seconds from the first time of all events to the latest, on the clock of the capture.
        "uptime": u64 = row.uptime;
        /// Packets of the flows.
        "decoder": Group<Packets> = Group(row.packets);
        /// Numbers of flows.
        "flow": Group<Flows> = Group(row.flows);
    }
}

crate::table! {
    /// Packets of flows.
    impl "eve.stats.stats.decoder" for Packets as row {
        /// Packets of the flows; each fragment counts.
        "pkts": u64 = row.packet_count;
        /// Octets of their frames on the wire.
        "bytes": u64 = row.octet_count;
    }
}

crate::table! {
    /// Numbers of flows.
    impl "eve.stats.stats.flow" for Flows as row {
        /// Flows that ended.
        "total": u64 = row.total_count;
        /// Flows of TCP.
        "tcp": u64 = row.tcp_count;
        /// Flows of UDP.
        "udp": u64 = row.udp_count;
        /// Flows of ICMP.
        "icmpv4": u64 = row.icmp_count;
        /// Flows of ICMPv6.
        "icmpv6": u64 = row.icmpv6_count;
    }
}
