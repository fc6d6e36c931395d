//! Fragments in the whole pipeline: each is counted for the flow of its datagram, also in tunnels, and none is lost.

mod frames;

use flowgauge::base::{FlowKey, Frame, IpProtocol, Limits, Ports};
use flowgauge::decode::extractor::{Packet, PacketMarks};
use flowgauge::decode::fragment::{OverlapPolicy, PoolConfig};
use flowgauge::pipeline::{Flows, FragmentHandling, Pipeline, PipelineStats, Records, Sink};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::Flow;
use proptest::prelude::*;

use frames::{HOSTS, ethernet, fragment, fragments, frame, payload, tcp, udp, vxlan};

/// A pipeline with the default settings.
fn pipeline<K: Sink>(sink: K) -> Pipeline<K> {
    Pipeline::builder().build(sink).unwrap()
}

/// Returns the records and counters of frames one millisecond apart.
fn run_with(
    frames: &[Vec<u8>],
    handling: FragmentHandling,
    pool: PoolConfig,
) -> (Vec<FlowRecord>, PipelineStats) {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    let mut pipeline = Pipeline::builder().fragments(handling).fragment_pool(pool).build(sink).unwrap();
    for (millis, data) in frames.iter().enumerate() {
        pipeline.frame(&frame(data, millis as u64));
    }
    pipeline.finish();
    let stats = pipeline.stats();
    drop(pipeline);
    assert_eq!(
        stats.frame_count,
        stats.tracker.packet_count + stats.skipped.total() + stats.orphan_fragment_count,
        "each frame is counted once"
    );
    (records, stats)
}

fn run(frames: &[Vec<u8>]) -> (Vec<FlowRecord>, PipelineStats) {
    run_with(frames, FragmentHandling::default(), PoolConfig::default())
}

/// Returns packets, octets on the wire, octets of IP, and octets of payload.
fn sums(record: &FlowRecord) -> [u64; 4] {
    let counters = &record.forward.counters;
    [counters.packet_count, counters.octet_count, counters.ip_octet_count, counters.payload_octet_count]
}

fn wire_len(frames: &[Vec<u8>]) -> u64 {
    frames.iter().map(|frame| frame.len() as u64).sum()
}

/// The payloads that a sink receives.
#[derive(Default)]
struct Payloads(Vec<(FlowKey, Vec<u8>)>);

impl Sink for Payloads {
    type State = ();
    type Stage = Flows;

    fn packet(&mut self, flow: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        assert_eq!(flow.view.key(), &packet.key);
        assert_eq!(packet.mac_addresses.source(packet.frame), Some([2, 0, 0, 0, 0, 1]));
        let is_complete = packet.marks.contains(PacketMarks::REASSEMBLED);
        let is_incomplete = packet.marks.contains(PacketMarks::FRAGMENT) && !is_complete;
        assert!(!is_incomplete || packet.payload().is_empty());
        if is_complete {
            self.0.push((packet.key, packet.payload().to_vec()));
        }
    }
}

fn tunnel_kind() -> impl Strategy<Value = u8> {
    0u8..4
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// For any fragmentation, at any level, in any order: the flow, its octets, and its payload are those of the whole
    /// datagram.
    #[test]
    fn fragments_are_counted_for_the_flow_of_their_datagram(
        kind in 0u8..3,
        tunnel in tunnel_kind(),
        len in 40usize..3000,
        splits in prop::collection::vec(1usize..400, 1..8),
        outer_splits in prop::collection::vec(1usize..400, 1..5),
        order in any::<prop::sample::Index>(),
        is_reversed in any::<bool>(),
    ) {
        let packet = match kind {
            0 => udp(false, len),
            1 => udp(true, len),
            _ => tcp(len),
        };
        // Fragments inside a tunnel, of the tunnel, or on both levels.
        let mut packets = match tunnel {
            0 => fragments(&packet, 9, &splits),
            1 => fragments(&packet, 9, &splits).iter().map(|part| vxlan(77, part)).collect(),
            2 => fragments(&vxlan(77, &packet), 9, &outer_splits),
            _ => fragments(&packet, 9, &splits)
                .iter()
                .enumerate()
                .flat_map(|(id, part)| fragments(&vxlan(77, part), id as u32, &outer_splits))
                .collect(),
        };
        let shift = order.index(packets.len());
        packets.rotate_left(shift);
        if is_reversed {
            packets.reverse();
        }
        let frames: Vec<_> = packets.iter().map(|packet| ethernet(packet)).collect();
        let (records, stats) = run(&frames);
        let (whole, _) = run(&[ethernet(&packet)]);
        prop_assert_eq!(records.len(), 1, "{:?}", stats);
        prop_assert_eq!(records[0].key, whole[0].key);
        prop_assert_eq!(records[0].initiator, whole[0].initiator);
        let [packet_count, octets, ip_octets, payload_octets] = sums(&records[0]);
        prop_assert_eq!(packet_count, frames.len() as u64);
        prop_assert_eq!(octets, wire_len(&frames));
        prop_assert_eq!(payload_octets, sums(&whole[0])[3]);
        prop_assert_eq!(records[0].forward.tcp_flags, whole[0].forward.tcp_flags);
        prop_assert_eq!(records[0].start, frame(&[], 0).timestamp);
        prop_assert_eq!(records[0].end, frame(&[], frames.len() as u64 - 1).timestamp);
        // Octets of IP are those of the innermost packets, which are fragments or the whole packet.
        let inner = if tunnel == 2 { vec![packet.clone()] } else { fragments(&packet, 9, &splits) };
        prop_assert_eq!(ip_octets, wire_len(&inner));
        prop_assert_eq!(stats.orphan_fragment_count, 0);

        let mut pipeline = pipeline(Payloads::default());
        for (millis, data) in frames.iter().enumerate() {
            pipeline.frame(&frame(data, millis as u64));
        }
        if frames.len() > 1 && tunnel < 2 {
            prop_assert_eq!(pipeline.into_sink().0, vec![(whole[0].key, payload(len))]);
        }
    }

    /// For any fragment headers with any octets, each frame is counted once.
    #[test]
    fn every_frame_is_counted_once(
        parts in prop::collection::vec((any::<bool>(), 0u32..3, 0usize..40, any::<bool>(), 0usize..64), 1..40),
        handling in prop::sample::select(vec![
            FragmentHandling::Reassemble,
            FragmentHandling::ReassembleOrPair,
            FragmentHandling::AsTheyCome,
        ]),
        policy in prop::sample::select(OverlapPolicy::ALL.to_vec()),
    ) {
        let frames: Vec<_> = parts
            .into_iter()
            .map(|(is_ipv6, id, offset, more, len)| {
                let packet = udp(is_ipv6, 100);
                let header_len = if is_ipv6 { 40 } else { 20 };
                ethernet(&fragment(&packet[..header_len], id, offset * 8, more, &packet[header_len..][..len]))
            })
            .collect();
        let mut pool = PoolConfig::default();
        pool.policy = policy;
        let (records, stats) = run_with(&frames, handling, pool);
        let octets: u64 = records.iter().map(|record| record.octet_count()).sum();
        prop_assert_eq!(octets + stats.orphan_fragment_octet_count, wire_len(&frames));
        if handling != FragmentHandling::Reassemble {
            prop_assert_eq!(stats.orphan_fragment_count, 0);
        }
    }
}

#[test]
fn fragments_without_a_first_one_belong_to_no_flow_by_default() {
    let parts = fragments(&udp(false, 3000), 5, &[100, 200]);
    let frames: Vec<_> = parts[1..].iter().map(|part| ethernet(part)).collect();
    let (records, stats) = run(&frames);
    assert_eq!((records.len(), stats.orphan_fragment_count), (0, 2));
    assert_eq!(stats.orphan_fragment_octet_count, wire_len(&frames));

    let (records, stats) = run_with(&frames, FragmentHandling::ReassembleOrPair, PoolConfig::default());
    assert_eq!((records.len(), stats.orphan_fragment_count), (1, 0));
    assert_eq!((records[0].key.ports(), records[0].protocol()), (Ports::None, IpProtocol::UDP));
    assert_eq!(records[0].source_address(), std::net::IpAddr::from(HOSTS[0]));
    assert_eq!(stats.tracker.without_ports_count, 2);
}

#[test]
fn an_incomplete_datagram_is_counted_for_the_flow_of_its_first_fragment() {
    let mut frames: Vec<_> =
        fragments(&udp(true, 3000), 5, &[100, 200]).iter().map(|part| ethernet(part)).collect();
    frames.pop();
    frames.reverse();
    let (records, stats) = run(&frames);
    assert_eq!((records.len(), stats.fragments.abandoned_count()), (1, 1));
    let [packets, octets, _, payload] = sums(&records[0]);
    // Octets that no host received are not payload.
    assert_eq!((packets, octets, payload), (2, wire_len(&frames), 0));
    assert_eq!(records[0].source_port(), Some(5000));
}

#[test]
fn deadlines_follow_packet_time() {
    let parts = fragments(&udp(false, 3000), 5, &[100]);
    let (first, last) = (ethernet(&parts[0]), ethernet(&parts[1]));
    for (wait_millis, is_complete) in [(29_999, true), (30_000, false)] {
        let mut pipeline = pipeline(());
        pipeline.frame(&frame(&first, 0));
        pipeline.frame(&frame(&last, wait_millis));
        pipeline.finish();
        let stats = pipeline.stats();
        assert_eq!(stats.fragments.completed_count, u64::from(is_complete));
        assert_eq!(stats.orphan_fragment_count, u64::from(!is_complete));
        assert_eq!(stats.tracker.late_packet_count, 0, "a held packet is not late");
    }
    // Without packets, the caller's clock ends the wait.
    let mut pipeline = pipeline(());
    pipeline.frame(&frame(&first, 0));
    pipeline.advance(frame(&[], 30_000).timestamp);
    assert_eq!((pipeline.stats().fragments.expired_count, pipeline.stats().tracker.packet_count), (1, 1));
}

#[test]
fn overlapping_fragments_are_counted_without_payload() {
    let packet = udp(false, 200);
    let (header, body) = packet.split_at(20);
    let frames = [
        ethernet(&fragment(header, 1, 0, true, &body[..64])),
        ethernet(&fragment(header, 1, 32, true, &body[64..128])),
        ethernet(&fragment(header, 1, 96, false, &body[96..])),
    ];
    let (records, stats) = run(&frames);
    // The overlapping fragment ends the datagram, and is counted for its flow; later fragments match a tombstone.
    assert_eq!((records.len(), sums(&records[0])[0], sums(&records[0])[3]), (1, 2, 0));
    assert_eq!((stats.fragments.overlap_discarded_count, stats.fragments.already_discarded_count), (1, 1));
    assert_eq!(stats.orphan_fragment_count, 1);
    let mut pool = PoolConfig::default();
    pool.policy = OverlapPolicy::First;
    let (records, _) = run_with(&frames, FragmentHandling::Reassemble, pool);
    assert_eq!((records.len(), sums(&records[0])[0], sums(&records[0])[3]), (1, 3, 200));
}

#[test]
fn tenants_with_the_same_addresses_are_distinct() {
    let parts = fragments(&udp(false, 1000), 5, &[50]);
    let frames: Vec<_> = [(1, 0), (2, 1), (2, 0), (1, 1)]
        .map(|(vni, part): (u32, usize)| ethernet(&vxlan(vni, &parts[part])))
        .to_vec();
    let (_, stats) = run(&frames);
    assert_eq!((stats.fragments.completed_count, stats.fragments.overlap_discarded_count), (2, 0));
    let (_, stats) = run(&frames[..2]);
    assert_eq!((stats.fragments.completed_count, stats.fragments.finished_count), (0, 2));
}

/// A fragmented SYN opens the connection once.
#[test]
fn a_fragmented_segment_updates_the_tcp_state_once() {
    let syn = etherparse::PacketBuilder::ipv4(HOSTS[0], HOSTS[1], 64).tcp(5000, 80, 1000, 4096).syn();
    let mut packet = Vec::new();
    syn.write(&mut packet, &payload(40)).unwrap();
    let frames: Vec<_> = fragments(&packet, 3, &[1, 3]).iter().map(|part| ethernet(part)).collect();
    let (records, _) = run(&frames);
    assert_eq!((records.len(), records[0].history.to_string().as_str()), (1, "S"));
    assert_eq!(sums(&records[0])[3], 40);
}

#[test]
fn truncated_fragments_complete_a_datagram_with_the_captured_octets() {
    let parts = fragments(&udp(false, 2000), 5, &[100]);
    let whole: Vec<_> = parts.iter().map(|part| ethernet(part)).collect();
    let mut records = Vec::new();
    let mut pipeline = pipeline(Records::new(|record| records.push(record)));
    for data in &whole {
        let truncated = Frame { data: &data[..60], wire_len: data.len() as u32, ..frame(&[], 0) };
        pipeline.frame(&truncated);
    }
    pipeline.finish();
    assert_eq!(pipeline.stats().fragments.completed_truncated_count, 1);
    drop(pipeline);
    assert_eq!(sums(&records[0]), [2, wire_len(&whole), 2008 + 40, 2000]);
}

/// Ping of death, and a flood of first fragments: each is counted, and memory stays below the limit.
#[test]
fn a_flood_of_first_fragments_stays_within_the_memory_limit() {
    const COUNT: u32 = 300_000;
    let packet = udp(false, 1400);
    let mut limits = Limits::DEFAULT;
    limits.fragment_bytes_max = 4 << 20;
    let mut pipeline = Pipeline::builder().limits(limits).build(()).unwrap();
    for id in 0..COUNT {
        // Each fragment is of a new datagram, from 65,536 senders with a few identifications each.
        let mut header = packet[..20].to_vec();
        header[12..16].copy_from_slice(&(0x0a00_0000 + id % 65_536).to_be_bytes());
        let data = ethernet(&fragment(&header, id / 65_536, 0, true, &packet[20..][..1400]));
        pipeline.frame(&frame(&data, 0));
    }
    let stats = pipeline.stats();
    assert!(stats.fragments.evicted_by_bytes_count > 0);
    assert!(pipeline.budget().held_by(flowgauge::base::Account::Fragments) <= 4 << 20);
    pipeline.finish();
    assert_eq!(pipeline.stats().tracker.packet_count, u64::from(COUNT));

    let header = &packet[..20];
    let (_, stats) = run(&[
        ethernet(&fragment(header, 1, 0, true, &packet[20..][..1400])),
        ethernet(&fragment(header, 1, 65_528, false, &packet[20..][..800])),
    ]);
    assert_eq!((stats.fragments.beyond_maximum_count, stats.orphan_fragment_count), (1, 1));
}

/// The length of the first fragment is not a multiple of eight, and the second one is within it (teardrop), behind it,
/// or beyond a hole: both are counted for the flow with the ports of the first one, with all their octets.
#[test]
fn a_fragment_after_one_of_unaligned_length_is_counted_for_its_flow() {
    let packet = udp(false, 60);
    let (header, rest) = packet.split_at(20);
    for (offset, len) in [(24, 4), (32, 20), (40, 20)] {
        let first = fragment(header, 9, 0, true, &rest[..36]);
        let second = fragment(header, 9, offset, false, &rest[offset..offset + len]);
        let frames = [ethernet(&first), ethernet(&second)];
        let (records, stats) = run(&frames);
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!((record.source_port(), record.destination_port()), (Some(5000), Some(6000)));
        assert_eq!(sums(record)[..2], [2, wire_len(&frames)], "{stats:?}");
        assert_eq!((stats.fragments.rounded_count, stats.orphan_fragment_count), (1, 0));
        assert_eq!(stats.fragments.completed_count, u64::from(offset == 32));
        // If hosts drop the first one, the ports of the second one are unknown.
        let mut pool = PoolConfig::default();
        pool.policy = OverlapPolicy::Bsd;
        let (records, stats) = run_with(&frames, FragmentHandling::default(), pool);
        assert_eq!((records.len(), stats.orphan_fragment_count), (1, 1));
    }
}
