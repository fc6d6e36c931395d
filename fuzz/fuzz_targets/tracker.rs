//! Sequences of packets and calls, made from octets: nothing panics, every state comes back once, the counts add up, and
//! a batch gives what single calls give.
#![no_main]

use flowgauge::base::{EndReason, FlowKey, IpProtocol, SeqNum, TcpFlags, Timestamp};
use flowgauge::extractor::{Packet, Transport};
use flowgauge::tracker::{FlowSink, FlowView, Tracker, TrackerConfig};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

#[derive(Default)]
struct Ends(Vec<(FlowKey, u64, u64, EndReason)>);

impl FlowSink<()> for Ends {
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.0.push((*flow.key(), flow.packet_count(), flow.octet_count(), reason));
    }
}

fn packet(octets: &[u8; 8], now: &mut u64) -> Packet<'static> {
    let [who, protocol, flags, seq, ack, len, time, window] = *octets;
    let address = |last: u8| std::net::Ipv4Addr::new(10, 0, 0, last).into();
    let protocol = [IpProtocol::TCP, IpProtocol::UDP, IpProtocol::ESP][usize::from(protocol) % 3];
    let ends = ((address(who & 3), 1000 + u16::from(who >> 4)), (address(4 + (who >> 2 & 1)), 80));
    let (source, destination) = if who & 8 == 0 { ends } else { (ends.1, ends.0) };
    let (key, side) = FlowKey::new(protocol, source, destination);
    *now = now
        .wrapping_add(u64::from(time) * 300_000_000)
        .min(1 << 60)
        .saturating_sub(u64::from(time == 255) << 31);
    let mut packet = Packet::new(key, side, Timestamp::from_nanos(*now), &[]);
    packet.wire_len = 60 + u32::from(len);
    packet.payload_len = len.into();
    if protocol == IpProtocol::TCP {
        packet.transport = Transport::Tcp;
        packet.tcp.flags = TcpFlags(u16::from(flags & 0x3f));
        packet.tcp.seq = SeqNum(u32::from(seq).wrapping_mul(0x0101_0101));
        packet.tcp.ack = SeqNum(u32::from(ack).wrapping_mul(0x0101_0101));
        packet.tcp.window = u16::from(window) << 8;
    }
    packet
}

fn tracker(octets: &[u8]) -> Tracker<()> {
    let mut config = TrackerConfig::default();
    config.limits.flow_count_max = 1 + u32::from(octets.first().copied().unwrap_or(0) % 16);
    config.limits.tcp_extra_count_max = u32::from(octets.first().copied().unwrap_or(0) % 5);
    config.active_timeout = octets.first().filter(|first| **first > 127).map(|_| Duration::from_secs(20));
    config.seeds = Some([1, 2, 3, 4]);
    config.staged_flow_count_min = 0;
    Tracker::new(config).expect("a cap above zero")
}

fuzz_target!(|octets: &[u8]| {
    let mut now = 1 << 40;
    let packets: Vec<_> = octets
        .chunks_exact(8)
        .filter_map(|chunk| chunk.first_chunk())
        .map(|chunk| packet(chunk, &mut now))
        .collect();
    let (mut single, mut batched) = (tracker(octets), tracker(octets));
    let (mut ends, mut batched_ends) = (Ends::default(), Ends::default());
    for packet in &packets {
        single.track(packet, &mut ends);
        single.check_invariants();
    }
    batched.track_batch(&packets, &mut batched_ends);
    single.finish(&mut ends);
    batched.finish(&mut batched_ends);
    assert_eq!(ends.0, batched_ends.0);
    assert!(single.is_empty());
    assert_eq!(ends.0.len() as u64, single.stats().started_count);
    if single.stats().active_timeout_count == 0 {
        assert_eq!(ends.0.iter().map(|end| end.1).sum::<u64>(), packets.len() as u64);
    }
});
