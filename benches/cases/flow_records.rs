//! Flow records for the benches of binary formats.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use flowgauge::{FlowKey, FlowRecord, TcpFlags, Timestamp};

/// Number of flow records in the benches of IPFIX.
pub(crate) const RECORD_COUNT: u16 = 1000;

/// Returns records of TCP flows between IPv4 addresses with all fields that a tracker knows.
pub(crate) fn flow_records() -> Vec<FlowRecord> {
    let record = |index: u16| {
        let client = SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + u32::from(index)), 1024 + index));
        let (key, initiator) = FlowKey::tcp(client, SocketAddr::from(([192, 0, 2, 1], 443)));
        let start = Timestamp::from_parts(1_700_000_000, u64::from(index) * 1_000_003);
        let mut record = FlowRecord::new(key, initiator, start);
        record.end = start.saturating_add(Duration::from_micros(12_345));
        for (side, packet_count) in [(&mut record.forward, 10), (&mut record.reverse, 14)] {
            side.counters.packet_count = packet_count;
            side.counters.octet_count = packet_count * 700;
            side.counters.ip_octet_count = packet_count * 686;
            side.tcp_flags = TcpFlags(0x1b);
            side.hop_limits = Some((57, 64));
            side.dscp = Some(0);
            side.mac = Some([2, 0, 0, 0, 0, 1]);
        }
        record
    };
    (0..RECORD_COUNT).map(record).collect()
}
