//! Memory of open flows, and its charge to the budget.
//!
//! This is a separate binary, because its allocator counts the memory that is held. It prints figures; `--nocapture`
//! shows them.

#[path = "support/heap.rs"]
mod heap;

use std::time::Duration;

use flowgauge::base::{Budget, FlowKey, Frame, IpProtocol, LinkType, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::decode::extractor::{KeyPolicy, Packet, Transport};
use flowgauge::decode::link::Decapsulation;
use flowgauge::pipeline::Pipeline;
use flowgauge::tracker::{Tracker, TrackerConfig};

use heap::held;

/// Upper bound for other memory: cache, the first table of the index, lists of segments.
const FIXED: usize = 200_000;

fn segment(flow: u32, seq: u32) -> Packet<'static> {
    let [_, a, b, c] = flow.to_be_bytes();
    let (key, side) =
        FlowKey::new(IpProtocol::TCP, ([10, a, b, c].into(), 40_000), ([192, 0, 2, 1].into(), 443));
    let mut packet = Packet::new(key, side, Timestamp::from_nanos(flow.into()), &[]);
    packet.transport = Transport::Tcp;
    (packet.tcp.seq, packet.tcp.flags, packet.tcp.window) = (SeqNum(seq), TcpFlags::ACK, 100);
    packet.payload_len = 10;
    packet
}

/// Returns the memory held by a number of open flows, and the memory charged to the budget.
fn memory_of_flows(flow_count: u32, active: Option<Duration>, with_extras: bool) -> (usize, usize) {
    let mut config = TrackerConfig::default();
    config.active_timeout = active;
    let resources = Resources::default().with_budget(Budget::new(1 << 32));
    let before = held();
    let mut tracker: Tracker<()> = Tracker::new(config, &resources).expect("a valid configuration");
    for flow in 0..flow_count {
        tracker.track(&segment(flow, 0), &mut ());
        if with_extras {
            tracker.track(&segment(flow, 0), &mut ());
        }
    }
    assert_eq!(tracker.len(), flow_count as usize);
    let held_len = held().saturating_sub(before);
    let accounted = tracker.budget().held() as usize;
    drop(tracker);
    // The test harness allocates a little memory in the meantime.
    assert!(held() < before + 20_000, "all memory is released");
    (held_len, accounted)
}

/// Returns the memory held by a number of open flows, each in its own tunnel, and the memory charged to the budget.
fn memory_of_tunnels(flow_count: u32) -> (usize, usize) {
    let mut policy = KeyPolicy::DEFAULT;
    policy.decapsulation = Decapsulation::Both;
    let builder = Pipeline::builder().memory(1 << 32).key_policy(policy).encapsulation(true);
    let before = held();
    let mut pipeline = builder.build(()).expect("a valid configuration");
    for flow in 0..flow_count {
        let [_, a, b, c] = flow.to_be_bytes();
        let ipv4 = |network: u8, protocol: u8, payload: &[u8]| -> Vec<u8> {
            let len = 20 + payload.len() as u8;
            let header =
                [0x45, 0, 0, len, 0, 1, 0, 0, 64, protocol, 0, 0, network, a, b, c, network, 0, 0, 0];
            [&header, payload].concat()
        };
        let data = ipv4(100, 4, &ipv4(10, 17, &[0, 1, 0, 2, 0, 8, 0, 0]));
        let frame =
            Frame { link_type: LinkType::RAW, ..Frame::ethernet(Timestamp::from_nanos(flow.into()), &data) };
        pipeline.frame(&frame);
    }
    assert_eq!(pipeline.flow_count(), 2 * flow_count as usize);
    let held_len = held().saturating_sub(before);
    let accounted = pipeline.budget().held() as usize;
    drop(pipeline);
    assert!(held() < before + 20_000, "all memory is released");
    (held_len, accounted)
}

#[test]
fn the_budget_accounts_for_a_million_flows() {
    let count = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let active = Some(Duration::from_secs(1800));
    for (what, active, with_extras, per_flow_max) in [
        ("flows", None, false, 266),
        ("flows with an active timeout", active, false, 286),
        ("flows with a retransmission each", None, true, 266 + 170),
    ] {
        let (held, accounted) = memory_of_flows(count, active, with_extras);
        println!("{count} {what}: {held} bytes, {accounted} accounted");
        assert!(held <= accounted + FIXED, "{what}: {held} held, {accounted} accounted");
        assert!(held <= count as usize * per_flow_max + FIXED, "{what}: {held} bytes");
    }
    let count = count / 2;
    let (held, accounted) = memory_of_tunnels(count);
    println!("{count} tunnels with a flow in each: {held} bytes, {accounted} accounted");
    assert!(held <= accounted + FIXED, "{held} held, {accounted} accounted");
    // Two flows, each with an extra and an encapsulation, and one header for the inner one.
    let per_tunnel_max = 2 * (266 + 170 + 176) + 16 + 40;
    assert!(held <= count as usize * per_tunnel_max + FIXED, "{held} bytes");
}
