//! Events of type `netflow`.

use super::tcp::Flags;
use super::time::{Time, age};
use crate::base::{Counters, Timestamp};
use crate::record::{FlowRecord, SideRecord};
use crate::row::Group;

/// One direction of a flow in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Netflow {
    summary: Summary,
    tcp: Option<Flags>,
}

/// The object `netflow`.
#[derive(Clone, Copy, Debug)]
struct Summary {
    counters: Counters,
    start: Timestamp,
    end: Timestamp,
    hop_limits: Option<(u8, u8)>,
}

impl Netflow {
    /// Returns the event of one direction of a record.
    pub(super) fn new(record: &FlowRecord, direction: &SideRecord) -> Self {
        Self {
            summary: Summary {
                counters: direction.counters,
                start: record.start,
                end: record.end,
                hop_limits: direction.hop_limits,
            },
            tcp: Flags::of(record, direction),
        }
    }
}

crate::table! {
    /// Directions of flows: an event for the initiator, and one for the responder if it sent packets. On request.
    impl "eve.netflow" for Netflow as row {
        /// Counters and times of the direction.
        "netflow": Group<Summary> = Group(row.summary);
        /// Flags of the direction.
        "tcp": Option<Group<Flags>> = row.tcp.map(Group);
    }
}

crate::table! {
    /// Counters and times of a direction.
    impl "eve.netflow.netflow" for Summary as netflow {
        /// Packets of the direction.
        "pkts": u64 = netflow.counters.packet_count;
        /// Octets of its frames on the wire.
        "bytes": u64 = netflow.counters.octet_count;
        /// Time of the first packet of the flow.
        "start": Time = Time(netflow.start);
        /// Time of the last packet of the flow.
        "end": Time = Time(netflow.end);
        /// Seconds of the end minus seconds of the start, without their decimals.
        "age": u64 = age(netflow.start, netflow.end);
        /// Lowest TTL or hop limit.
        "min_ttl": Option<u8> = netflow.hop_limits.map(|(min, _)| min);
        /// Highest TTL or hop limit.
        "max_ttl": Option<u8> = netflow.hop_limits.map(|(_, max)| max);
    }
}
