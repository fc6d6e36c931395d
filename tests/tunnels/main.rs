//! Flows in tunnels: the links between inner and outer flows, and the encapsulation in their records.

mod frames;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use flowgauge::base::{
    Budget, Encapsulation, FlowKey, Frame, FrameBatch, Limits, LinkType, Resources, Side, Timestamp,
};
use flowgauge::decode::link::Decapsulation;
use flowgauge::pipeline::{Builder, Pipeline, PipelineStats, Records};
use flowgauge::record::{EncapsulationRecord, FlowRecord, OuterFlow};
use flowgauge::tracker::TrackerConfig;
use proptest::prelude::*;

use frames::{Level, Tunnel, datagram, ethernet, fragments, wrap};

fn config(decapsulation: Decapsulation) -> TrackerConfig {
    let mut config = TrackerConfig::default();
    config.key_policy.decapsulation = decapsulation;
    config
}

/// Returns a builder of pipelines that record the encapsulation of flows.
fn builder(config: TrackerConfig, resources: Resources) -> Builder {
    Pipeline::builder().tracker(config).resources(resources.with_seeds([1, 2, 3, 4])).encapsulation(true)
}

fn with_default_limits(config: TrackerConfig) -> Builder {
    builder(config, Resources::default())
}

/// Returns the records and statistics of frames with capture times one millisecond apart.
fn run_with(frames: &[Vec<u8>], builder: &Builder, in_batches: bool) -> (Vec<FlowRecord>, PipelineStats) {
    let mut records = Vec::new();
    let mut pipeline = builder.build(Records::new(|record| records.push(record))).unwrap();
    let budget = pipeline.budget().clone();
    let mut batch = FrameBatch::new();
    for (millis, data) in (1..).zip(frames) {
        let frame = Frame {
            link_type: LinkType::ETHERNET,
            ..Frame::ethernet(Timestamp::from_nanos(millis * 1_000_000), data)
        };
        if in_batches {
            batch.push(&frame);
        } else {
            pipeline.frame(&frame);
        }
    }
    assert!(pipeline.batch(&batch).is_continue());
    pipeline.check_invariants();
    pipeline.finish();
    let stats = pipeline.stats();
    let counted = stats.tracker.packet_count + stats.skipped.total() + stats.orphan_fragment_count;
    assert_eq!(counted, stats.frame_count + stats.outer_packet_count, "a frame counts once per level");
    drop(pipeline);
    assert_eq!(budget.held(), 0, "all memory must be released");
    (records, stats)
}

fn run(frames: &[Vec<u8>], decapsulation: Decapsulation) -> Vec<FlowRecord> {
    run_with(frames, &with_default_limits(config(decapsulation)), false).0
}

fn of<'r>(records: &'r [FlowRecord], level: &Level) -> &'r FlowRecord {
    let key = level.key().0;
    let mut found = records.iter().filter(|record| record.key == key);
    let record = found.next().unwrap_or_else(|| panic!("no flow {key}"));
    assert!(found.next().is_none(), "several flows {key}");
    record
}

fn part(record: &FlowRecord) -> &EncapsulationRecord {
    record.encapsulation.as_deref().expect("an encapsulation")
}

/// Returns the encapsulation, the number of later changes, and the outer flow as text.
fn description(
    encapsulation: &Encapsulation,
    changed_count: u32,
    outer_flow: Option<OuterFlow>,
) -> (String, u32, String) {
    (encapsulation.to_string(), changed_count, outer_flow.map(|flow| flow.to_string()).unwrap_or_default())
}

fn forward(record: &FlowRecord) -> (String, u32, String) {
    let part = part(record);
    description(&part.encapsulation, part.encapsulation_changed_count, part.outer_flow)
}

fn reverse(record: &FlowRecord) -> (String, u32, String) {
    let part = part(record);
    description(
        &part.reverse_encapsulation,
        part.reverse_encapsulation_changed_count,
        part.reverse_outer_flow,
    )
}

fn carried(record: &FlowRecord) -> (u32, u64, u64) {
    let part = part(record);
    (part.inner_flow_count, part.carried_packet_count, part.carried_octet_count)
}

const CLIENT: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const SERVER: [Ipv4Addr; 2] = [CLIENT[1], CLIENT[0]];
const LEFT: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
const RIGHT: [Ipv4Addr; 2] = [LEFT[1], LEFT[0]];
const CORE: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(203, 0, 113, 2)];

#[test]
fn each_direction_of_a_flow_names_its_outer_flow() {
    let (request, inner) = datagram(CLIENT, [5000, 53], 20);
    let (response, _) = datagram(SERVER, [53, 5000], 80);
    let (request, request_tunnel, _) = wrap(&request, Tunnel::Vxlan(42, 50_001), LEFT);
    let (response, response_tunnel, _) = wrap(&response, Tunnel::Vxlan(42, 50_002), RIGHT);
    let frames = [request, response].map(|packet| ethernet(&packet));
    let records = run(&frames, Decapsulation::Both);
    assert_eq!(records.len(), 3);
    let flow = of(&records, &inner);
    assert_eq!(
        forward(flow),
        (
            "IP 192.0.2.1>192.0.2.2 / VXLAN 42 / Ethernet".to_owned(),
            0,
            "udp 192.0.2.1:50001>192.0.2.2:4789".to_owned()
        )
    );
    assert_eq!(
        reverse(flow),
        (
            "IP 192.0.2.2>192.0.2.1 / VXLAN 42 / Ethernet".to_owned(),
            0,
            "udp 192.0.2.2:50002>192.0.2.1:4789".to_owned()
        )
    );
    assert_eq!(carried(flow), (0, 0, 0));
    let outer_flows = [part(flow).outer_flow, part(flow).reverse_outer_flow];
    for ((level, frame), outer_flow) in
        [(request_tunnel, &frames[0]), (response_tunnel, &frames[1])].into_iter().zip(outer_flows)
    {
        let tunnel = of(&records, &level);
        assert_eq!(carried(tunnel), (1, 1, frame.len() as u64));
        assert_eq!(outer_flow.unwrap().community_id(), tunnel.community_id());
        assert!(part(tunnel).encapsulation.is_empty() && part(tunnel).outer_flow.is_none());
        assert_eq!((tunnel.packet_count(), tunnel.octet_count()), (1, frame.len() as u64));
    }
}

#[test]
fn each_level_of_nested_tunnels_names_its_outer_flow() {
    let (packet, inner) = datagram(CLIENT, [5000, 53], 20);
    let (packet, middle, middle_stack) = wrap(&packet, Tunnel::Gre, LEFT);
    let (packet, outer, outer_stack) = wrap(&packet, Tunnel::GtpU(7), CORE);
    let frame = ethernet(&packet);
    let octets = frame.len() as u64;
    let records = run(&[frame.clone(), frame], Decapsulation::Both);
    assert_eq!(records.len(), 3);
    let middle_name = "gre 192.0.2.1>192.0.2.2".to_owned();
    let outer_name = "udp 203.0.113.1:2152>203.0.113.2:2152".to_owned();
    let [inner, middle, outer] = [inner, middle, outer].map(|level| of(&records, &level));
    assert_eq!(forward(inner), (format!("{outer_stack} / {middle_stack}"), 0, middle_name));
    assert_eq!(forward(middle), (outer_stack, 0, outer_name));
    assert_eq!(forward(outer), (String::new(), 0, String::new()));
    assert_eq!(
        (carried(inner), carried(middle), carried(outer)),
        ((0, 0, 0), (1, 2, 2 * octets), (1, 2, 2 * octets))
    );
}

#[test]
fn changed_outer_headers_are_counted_and_the_first_ones_are_kept() {
    let (packet, inner) = datagram(CLIENT, [5000, 53], 20);
    let tunnels = [
        Tunnel::Vxlan(42, 50_001),
        Tunnel::Vxlan(42, 50_002),
        Tunnel::Vxlan(43, 50_001),
        Tunnel::Vxlan(42, 50_001),
    ];
    let mut frames: Vec<_> = tunnels.iter().map(|tunnel| ethernet(&wrap(&packet, *tunnel, LEFT).0)).collect();
    // A packet without encapsulation does not count as a change.
    frames.insert(2, ethernet(&packet));
    let changed = |decapsulation| {
        let records = run(&frames, decapsulation);
        let part = part(of(&records, &inner));
        assert_eq!(part.encapsulation.to_string(), "IP 192.0.2.1>192.0.2.2 / VXLAN 42 / Ethernet");
        assert_eq!(of(&records, &inner).packet_count(), 5);
        part.encapsulation_changed_count
    };
    // Only the link to the outer flow shows a change of the outer ports.
    assert_eq!((changed(Decapsulation::Both), changed(Decapsulation::Innermost)), (2, 1));
}

#[test]
fn flows_that_share_a_tunnel_are_counted_once_each() {
    let mut frames = Vec::new();
    let mut tunnel = None;
    for port in [1000, 1001, 1002, 1000] {
        for (ends, ports, outer_ends) in [(CLIENT, [port, 53], LEFT), (SERVER, [53, port], RIGHT)] {
            let (packet, level, _) = wrap(&datagram(ends, ports, 5).0, Tunnel::Gre, outer_ends);
            tunnel = Some(level);
            frames.push(ethernet(&packet));
        }
    }
    let records = run(&frames, Decapsulation::Both);
    let octets = frames.iter().map(|frame| frame.len() as u64).sum();
    assert_eq!(carried(of(&records, &tunnel.unwrap())), (3, 8, octets));
}

#[test]
fn fragments_count_at_each_level_and_have_its_header_stack() {
    let (packet, inner) = datagram(CLIENT, [5000, 53], 1000);
    // Only the outer packet is fragmented, only the inner packet, and both.
    let (wrapped, outer, stack) = wrap(&packet, Tunnel::Vxlan(42, 50_001), LEFT);
    let outside: Vec<_> = fragments(&wrapped, 1, 400).iter().map(|part| ethernet(part)).collect();
    let in_tunnel = |part: &Vec<u8>| wrap(part, Tunnel::Vxlan(42, 50_001), LEFT).0;
    let inside: Vec<_> = fragments(&packet, 2, 400).iter().map(|part| ethernet(&in_tunnel(part))).collect();
    let both: Vec<_> = fragments(&packet, 3, 400)
        .iter()
        .zip(10..)
        .flat_map(|(part, id)| fragments(&in_tunnel(part), id, 200))
        .map(|part| ethernet(&part))
        .collect();
    for frames in [outside, inside, both] {
        let octets: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
        let records = run(&frames, Decapsulation::Both);
        assert_eq!(records.len(), 2);
        let (flow, tunnel) = (of(&records, &inner), of(&records, &outer));
        let count = frames.len() as u64;
        for record in [flow, tunnel] {
            assert_eq!((record.packet_count(), record.octet_count()), (count, octets));
        }
        assert_eq!(forward(flow), (stack.clone(), 0, "udp 192.0.2.1:50001>192.0.2.2:4789".to_owned()));
        assert_eq!(carried(tunnel), (1, count, octets));
        assert_eq!(flow.forward.counters.payload_octet_count, 1000);
    }
}

#[test]
fn mpls_labels_are_on_the_header_stack_and_vlan_tags_alone_are_not() {
    let (packet, level) = datagram(CLIENT, [5000, 53], 4);
    let labels = [&[0, 1, 0, 64][..], &[0, 2, 1, 64], &packet].concat();
    let plain = ethernet(&packet);
    let with = |ether_type: [u8; 2], rest: &[u8]| [&plain[..12], &ether_type, rest].concat();
    let behind_tag = |id: u8, ether_type: [u8; 2], rest: &[u8]| {
        with([0x81, 0], &[&[0, id], &ether_type[..], rest].concat())
    };
    for (frame, stack) in [
        (plain.clone(), None),
        (behind_tag(9, [8, 0], &packet), None),
        (with([0x88, 0x47], &labels), Some("MPLS 16 / MPLS 32")),
        (behind_tag(9, [0x88, 0x47], &labels), Some("VLAN 9 / MPLS 16 / MPLS 32")),
    ] {
        for decapsulation in [Decapsulation::Innermost, Decapsulation::Outermost, Decapsulation::Both] {
            let records = run(std::slice::from_ref(&frame), decapsulation);
            let found =
                of(&records, &level).encapsulation.as_deref().map(|part| part.encapsulation.to_string());
            assert_eq!(found.as_deref(), stack);
        }
    }
}

#[test]
fn an_active_timeout_restarts_the_counts_and_keeps_the_encapsulation() {
    let (packet, _) = datagram(CLIENT, [5000, 53], 4);
    let (wrapped, outer, stack) = wrap(&packet, Tunnel::GtpU(9), LEFT);
    let (other, _, _) = wrap(&packet, Tunnel::GtpU(10), LEFT);
    let mut config = config(Decapsulation::Both);
    config.active_timeout = Some(Duration::from_millis(3));
    let frames: Vec<_> = [&wrapped, &other, &other, &other, &wrapped].map(|packet| ethernet(packet)).into();
    let (records, _) = run_with(&frames, &with_default_limits(config), false);
    let key = outer.key().0;
    let (of_outer, of_inner): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.key == key);
    let counts: Vec<_> = of_outer.iter().map(|record| carried(record).0).collect();
    assert_eq!(counts, [1, 0], "the inner flow must count in the first record only");
    assert_eq!(of_outer.iter().map(|record| carried(record).1).sum::<u64>(), 5);
    let sides: Vec<_> = of_inner.iter().map(|record| forward(record)).collect();
    assert!(sides.len() == 2 && sides.iter().all(|(text, ..)| *text == stack));
    assert_eq!(sides.iter().map(|(_, changed_count, _)| changed_count).sum::<u32>(), 3);
}

#[test]
fn packets_are_counted_without_memory_for_encapsulations() {
    let frames: Vec<_> = (0..20)
        .map(|port| ethernet(&wrap(&datagram(CLIENT, [1000 + port, 53], 4).0, Tunnel::Gre, LEFT).0))
        .collect();
    let unlimited = run(&frames, Decapsulation::Both);
    let (mut few, mut none) = (Limits::DEFAULT, Limits::DEFAULT);
    few.encapsulation_count_max = 5;
    // The budget suffices for the flow table, the pool, the first segment of the separate state and a few
    // encapsulations.
    let needed = with_default_limits(config(Decapsulation::Both)).build(()).unwrap().budget().held();
    let small_budget = Resources::default().with_budget(Budget::new(needed + 1024 * 160 + 1000));
    none.tcp_extra_count_max = 0;
    for (resources, kept_count) in [(Resources::new(few), 5), (small_budget, 4), (Resources::new(none), 0)] {
        let (records, stats) = run_with(&frames, &builder(config(Decapsulation::Both), resources), false);
        assert_eq!(records.iter().filter(|record| record.encapsulation.is_some()).count(), kept_count);
        assert!(stats.tracker.encapsulation_refused_count > 0);
        let counters = |records: &[FlowRecord]| {
            records.iter().map(|record| (record.key, record.forward.counters)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(counters(&records), counters(&unlimited));
    }
}

/// A packet of one of a few flows, in up to three tunnels. Hosts of different levels never have the same addresses, so
/// the key of a flow determines its level.
#[derive(Clone, Debug)]
struct Sent {
    flow: u8,
    is_reverse: bool,
    len: usize,
    tunnels: Vec<(Tunnel, bool)>,
    /// Maximum payload of the fragments of the innermost and of the outermost packet, or zero without fragmentation.
    fragment_len: [usize; 2],
}

fn host(level: usize, is_second: bool) -> Ipv4Addr {
    Ipv4Addr::new(10, level as u8, 0, 1 + u8::from(is_second))
}

fn ends(level: usize, is_reverse: bool) -> [Ipv4Addr; 2] {
    [host(level, is_reverse), host(level, !is_reverse)]
}

impl Sent {
    /// Returns the frames, their levels with the outermost first, and the header stack as text.
    fn frames(&self, id: u16) -> Framed {
        let depth = self.tunnels.len();
        let ports = if self.is_reverse {
            [53, 1000 + u16::from(self.flow)]
        } else {
            [1000 + u16::from(self.flow), 53]
        };
        // Packets without a tunnel have separate hosts.
        let own = if depth == 0 { 100 } else { 50 };
        let (packet, level) = datagram(ends(own, self.is_reverse), ports, self.len);
        let (mut packets, mut levels, mut stack) = (vec![packet], vec![level], String::new());
        let fragmented = |packets: Vec<Vec<u8>>, len: usize, id: u16| -> Vec<Vec<u8>> {
            let fragment = |(packet, position): (&Vec<u8>, u16)| fragments(packet, id + position, len);
            if len == 0 { packets } else { packets.iter().zip(0..).flat_map(fragment).collect() }
        };
        packets = fragmented(packets, self.fragment_len[0], id);
        for (position, (tunnel, is_reverse)) in self.tunnels.iter().enumerate() {
            // The outermost tunnel has level zero.
            let ends = ends(depth - 1 - position, *is_reverse);
            let wrapped: Vec<_> = packets.iter().map(|packet| wrap(packet, *tunnel, ends)).collect();
            levels.insert(0, wrapped[0].1);
            let separator = if stack.is_empty() { "" } else { " / " };
            stack = format!("{}{separator}{stack}", wrapped[0].2);
            packets = wrapped.into_iter().map(|wrapped| wrapped.0).collect();
        }
        if depth > 0 {
            packets = fragmented(packets, self.fragment_len[1], id + 100);
        }
        (packets.iter().map(|packet| ethernet(packet)).collect(), levels, stack)
    }
}

fn tunnel() -> impl Strategy<Value = (Tunnel, bool)> {
    let tunnel = prop_oneof![
        Just(Tunnel::IpInIp),
        Just(Tunnel::Gre),
        (0..2_u32, 50_000..50_003_u16).prop_map(|(vni, port)| Tunnel::Vxlan(vni, port)),
        (0..3_u32).prop_map(Tunnel::GtpU),
    ];
    (tunnel, any::<bool>())
}

fn sent() -> impl Strategy<Value = Sent> {
    let fragment_len = prop_oneof![3 => Just(0), 1 => Just(64), 1 => Just(200)];
    (
        0..3_u8,
        any::<bool>(),
        0..500_usize,
        prop::collection::vec(tunnel(), 0..4),
        [fragment_len.clone(), fragment_len],
    )
        .prop_map(|(flow, is_reverse, len, tunnels, fragment_len)| Sent {
            flow,
            is_reverse,
            len,
            tunnels,
            fragment_len,
        })
}

/// Frames, their levels, and the header stack of the innermost level.
type Framed = (Vec<Vec<u8>>, Vec<Level>, String);

/// The state of a flow that a simple model expects.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    packets: [u64; 2],
    octets: [u64; 2],
    stacks: [Option<String>; 2],
    outer: [Option<FlowKey>; 2],
    inner_flows: u32,
    carried: (u64, u64),
}

/// Returns the expected flows. Each frame counts at each of its levels; the first packet of a side determines the
/// encapsulation of the side.
fn expected(all: &[Framed]) -> BTreeMap<FlowKey, Expected> {
    let mut flows = BTreeMap::<FlowKey, Expected>::new();
    for (frames, levels, stack) in all {
        let (count, octets) =
            (frames.len() as u64, frames.iter().map(|frame| frame.len() as u64).sum::<u64>());
        for (position, level) in levels.iter().enumerate() {
            let (key, side) = level.key();
            let outer_key = (position > 0).then(|| levels[position - 1].key().0);
            let flow = flows.entry(key).or_default();
            flow.packets[side.index()] += count;
            flow.octets[side.index()] += octets;
            if position + 1 < levels.len() {
                flow.carried = (flow.carried.0 + count, flow.carried.1 + octets);
            }
            if outer_key.is_some() && flow.stacks[side.index()].is_none() {
                // The stack of all levels up to the header of this level.
                let own = format!("IP {}>{}", level.ends[0], level.ends[1]);
                let stack = stack.split(&own).next().unwrap_or_default().trim_end_matches(" / ");
                flow.stacks[side.index()] = Some(stack.to_owned());
                flow.outer[side.index()] = outer_key;
                let is_new = flow.outer[side.other().index()] != outer_key;
                if let Some(outer) = outer_key.filter(|_| is_new) {
                    flows.entry(outer).or_default().inner_flows += 1;
                }
            }
        }
    }
    flows
}

fn found(records: &[FlowRecord]) -> BTreeMap<FlowKey, Expected> {
    let mut flows = BTreeMap::new();
    for record in records {
        let mut flow = Expected::default();
        let none = EncapsulationRecord::default();
        let part = record.encapsulation.as_deref().unwrap_or(&none);
        let sides = [
            (record.initiator, &record.forward, &part.encapsulation, part.outer_flow),
            (record.initiator.other(), &record.reverse, &part.reverse_encapsulation, part.reverse_outer_flow),
        ];
        for (side, of_side, encapsulation, outer_flow) in sides {
            let position = Side::index(side);
            flow.packets[position] = of_side.counters.packet_count;
            flow.octets[position] = of_side.counters.octet_count;
            flow.stacks[position] = (!encapsulation.is_empty()).then(|| encapsulation.to_string());
            flow.outer[position] = outer_flow.map(|outer| outer.key);
            assert!(outer_flow.is_none_or(
                |outer| outer.key.address(outer.sender) != outer.key.address(outer.sender.other())
            ));
        }
        flow.inner_flows = part.inner_flow_count;
        flow.carried = (part.carried_packet_count, part.carried_octet_count);
        assert!(flows.insert(record.key, flow).is_none(), "one record per flow");
    }
    flows
}

/// Returns a record without its encapsulation.
fn without_encapsulation(record: &FlowRecord) -> FlowRecord {
    let mut record = record.clone();
    record.encapsulation = None;
    record
}

/// Returns the level of a flow, which is the second octet of the hosts' addresses.
fn network(record: &FlowRecord) -> u8 {
    match record.source_address() {
        std::net::IpAddr::V4(address) => address.octets()[1],
        std::net::IpAddr::V6(_) => panic!("unexpected IPv6 address"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn both_levels_match_a_model_and_the_runs_of_a_single_level(packets in prop::collection::vec(sent(), 1..30)) {
        let all: Vec<_> = packets.iter().zip(0..).map(|(sent, number)| sent.frames(number * 300)).collect();
        let frames: Vec<_> = all.iter().flat_map(|(frames, _, _)| frames.clone()).collect();
        let (both, stats) = run_with(&frames, &with_default_limits(config(Decapsulation::Both)), false);
        prop_assert_eq!(found(&both), expected(&all));

        // A run in batches must give the same records.
        let (batched, _) = run_with(&frames, &with_default_limits(config(Decapsulation::Both)), true);
        prop_assert_eq!(&both, &batched);

        // Apart from the links, inner flows equal those of a run with `Innermost`, outer flows those of a run with
        // `Outermost`.
        let of_networks = |records: &[FlowRecord], is_wanted: fn(u8) -> bool| -> Vec<FlowRecord> {
            records.iter().filter(|record| is_wanted(network(record))).map(without_encapsulation).collect()
        };
        let is_inner: fn(u8) -> bool = |network| network >= 50;
        let is_outer: fn(u8) -> bool = |network| network == 0 || network == 100;
        let innermost = run(&frames, Decapsulation::Innermost);
        prop_assert_eq!(of_networks(&both, is_inner), of_networks(&innermost, |_| true));
        let outermost = run(&frames, Decapsulation::Outermost);
        prop_assert_eq!(of_networks(&both, is_outer), of_networks(&outermost, |_| true));

        // The statistics state how many packets are counted more than once.
        let packet_count: u64 = both.iter().map(FlowRecord::packet_count).sum();
        let carried_count: u64 = found(&both).values().map(|flow| flow.carried.0).sum();
        prop_assert_eq!(packet_count - carried_count, frames.len() as u64);
        prop_assert_eq!(carried_count, stats.outer_packet_count);
    }
}
