//! Packets that exporters sample: sections of packets in IPFIX (RFC 5477), sFlow, and the intervals of samplers.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use flowgauge::decode::extractor::Scope;
use flowgauge::ipfix::collector::{Collected, Collector, CollectorConfig, ObservationPoint};
use flowgauge::{
    Decapsulation, FileSource, FlowRecord, Frame, FrameBatch, KeyPolicy, LinkType, Next, Pipeline, Records,
    Source, Timestamp,
};

use super::captures::root;
use super::{collect, exporter_address};

/// Number of octets of each frame that the exporters send.
const SECTION_LEN: usize = 100;

fn key_policy() -> KeyPolicy {
    let mut policy = KeyPolicy::DEFAULT;
    policy.scope = Scope::Interface;
    policy.decapsulation = Decapsulation::Innermost;
    policy
}

fn frames(name: &str) -> FrameBatch {
    let mut source = FileSource::open(root().join("examples/data").join(name)).unwrap();
    let mut all = FrameBatch::new();
    let mut batch = FrameBatch::new();
    while source.next_batch(&mut batch).unwrap() == Next::Frames {
        batch.iter().for_each(|frame| all.push(&frame));
    }
    all
}

/// Returns the records of frames, with packets and octets only, in a common order.
fn flows<'a>(frames: impl IntoIterator<Item = Frame<'a>>) -> Vec<String> {
    let mut records: Vec<FlowRecord> = Vec::new();
    let mut pipeline = Pipeline::builder()
        .key_policy(key_policy())
        .build(Records::new(|record| records.push(record)))
        .unwrap();
    frames.into_iter().for_each(|frame| pipeline.frame(&frame));
    pipeline.finish();
    drop(pipeline);
    let mut lines: Vec<_> = records
        .iter()
        .map(|record| {
            let counts = [&record.forward, &record.reverse].map(|side| side.counters);
            format!(
                "{} {} {counts:?} {} {}",
                record.key.with_scope(0),
                record.start,
                record.history,
                record.conn_state
            )
        })
        .collect();
    lines.sort();
    lines
}

fn set(id: u16, body: &[u8]) -> Vec<u8> {
    [&id.to_be_bytes(), &(4 + body.len() as u16).to_be_bytes(), body].concat()
}

fn template(set_id: u16, id: u16, scope_count: Option<u16>, elements: &[[u16; 2]]) -> Vec<u8> {
    let mut body = [id, elements.len() as u16].map(u16::to_be_bytes).concat();
    body.extend(scope_count.map(u16::to_be_bytes).into_iter().flatten());
    body.extend(elements.iter().flatten().flat_map(|word| word.to_be_bytes()));
    set(set_id, &body)
}

fn ipfix(sequence_number: u32, sets: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 10];
    message.extend((16 + sets.len() as u16).to_be_bytes());
    message.extend([1_700_000_000_u32, sequence_number, 7].into_iter().flat_map(u32::to_be_bytes));
    message.extend(sets);
    message
}

/// Returns the frames that a collector emits, and where they were sampled.
fn packets(messages: &[Vec<u8>]) -> (Vec<(Frame<'static>, ObservationPoint)>, Collector) {
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut packets = Vec::new();
    for message in messages {
        let now = Timestamp::from_parts(1_700_000_000, 0);
        collector.message(exporter_address(), message, now, |collected| {
            if let Collected::Packet(packet) = collected {
                let data: &'static [u8] = packet.frame.data.to_vec().leak();
                packets.push((Frame { data, ..packet.frame }, packet.point));
            }
        });
    }
    assert_eq!(collector.stats().malformed_message_count, 0);
    assert_eq!(collector.stats().packet_count, packets.len() as u64);
    (packets, collector)
}

fn ntp(timestamp: Timestamp) -> [u8; 8] {
    let (seconds, nanos) = (timestamp.as_nanos() / 1_000_000_000, timestamp.as_nanos() % 1_000_000_000);
    // Rounded up, so that the collector reads the same number of nanoseconds.
    (((seconds + 2_208_988_800) << 32) | (nanos << 32).div_ceil(1_000_000_000)).to_be_bytes()
}

#[test]
fn sections_of_frames_give_the_flows_of_the_frames() {
    for name in ["web.pcap", "vlan.pcapng"] {
        let frames = frames(name);
        // ingressInterface, observationTimeNanoseconds, dataLinkFrameSize, dataLinkFrameSection.
        let template = template(2, 256, None, &[[10, 4], [325, 8], [312, 2], [315, 65_535]]);
        let messages: Vec<_> = (0..)
            .zip(frames.iter())
            .map(|(number, frame)| {
                let section = &frame.data[..frame.data.len().min(SECTION_LEN)];
                let mut data = frame.interface.to_be_bytes().to_vec();
                data.extend(ntp(frame.timestamp));
                data.extend((frame.wire_len as u16).to_be_bytes());
                data.push(section.len() as u8);
                data.extend(section);
                let templates = if number == 0 { &template[..] } else { &[] };
                ipfix(number, &[templates, &set(256, &data)].concat())
            })
            .collect();
        let (packets, collector) = packets(&messages);
        assert_eq!(packets.len(), frames.len());
        assert_eq!((collector.stats().lost_count, collector.stats().unkeyed_record_count), (0, 0));
        let truncated = frames
            .iter()
            .map(|frame| Frame { data: &frame.data[..frame.data.len().min(SECTION_LEN)], ..frame });
        // Each interface is an observation point with a number of its own.
        assert_eq!(flows(packets.iter().map(|(frame, _)| *frame)), flows(truncated), "{name}");
        let interfaces = packets.iter().map(|(_, point)| point.interface);
        assert!(interfaces.eq(frames.iter().map(|frame| frame.interface)));
        assert!(packets.iter().all(|(_, point)| point.domain == 7));
    }
}

#[test]
fn sections_of_ip_packets_give_the_same_flows() {
    let frames = frames("web.pcap");
    // ipHeaderPacketSection of a fixed length, observationTimeMicroseconds.
    let template = template(2, 300, None, &[[313, 60], [324, 8]]);
    let mut messages = vec![ipfix(0, &template)];
    let mut raw = Vec::new();
    for frame in frames.iter() {
        // ARP has no IP header; shorter packets would be padded.
        let is_ip = matches!(frame.data[12..14], [8, 0] | [0x86, 0xdd]) && frame.data.len() >= 14 + 60;
        if is_ip {
            let data: &'static [u8] = frame.data[14..14 + 60].to_vec().leak();
            let timestamp = Timestamp::from_nanos(frame.timestamp.as_nanos() / 1000 * 1000);
            let body = [data, &ntp(timestamp)].concat();
            messages.push(ipfix(messages.len() as u32 - 1, &set(300, &body)));
            let wire_len = frame.data.len() as u32 - 14;
            raw.push(Frame { timestamp, link_type: LinkType::RAW, data, wire_len, interface: 0 });
        }
    }
    assert!(raw.len() > 600);
    let (packets, _) = packets(&messages);
    assert_eq!(flows(packets.iter().map(|(frame, _)| *frame)), flows(raw));
}

#[test]
fn sections_that_do_not_begin_with_a_header_are_counted() {
    // sectionOffset, dataLinkFrameType, dataLinkFrameSection.
    let template = template(2, 256, None, &[[409, 2], [408, 2], [315, 4]]);
    let data = [[0, 0, 0, 1, 1, 2, 3, 4], [0, 9, 0, 1, 1, 2, 3, 4], [0, 0, 0, 77, 1, 2, 3, 4]].concat();
    let (packets, collector) = packets(&[ipfix(0, &[template, set(256, &data)].concat())]);
    assert_eq!((packets.len(), collector.stats().unsupported_packet_count), (1, 2));
}

/// One in `interval` packets, from an options record of a selector (RFC 5477 section 6.2).
#[test]
fn intervals_of_options_records_apply_to_the_records_of_their_selectors() {
    // selectorId as the scope; selectorAlgorithm, samplingPacketInterval, samplingPacketSpace.
    let options = template(3, 400, Some(1), &[[302, 8], [304, 2], [305, 4], [306, 4]]);
    let selector = |id: u64, space: u32| {
        let mut body = id.to_be_bytes().to_vec();
        body.extend([0, 1]);
        body.extend(1_u32.to_be_bytes());
        body.extend(space.to_be_bytes());
        set(400, &body)
    };
    // Addresses, packetDeltaCount, selectorId.
    let flow_template = template(2, 401, None, &[[8, 4], [12, 4], [2, 4], [302, 8]]);
    let flow = |selector: u64| {
        let mut body = vec![192, 0, 2, 1, 192, 0, 2, 2];
        body.extend(5_u32.to_be_bytes());
        body.extend(selector.to_be_bytes());
        set(401, &body)
    };
    let sets =
        [options, selector(1, 99), selector(2, 999), flow_template, flow(1), flow(2), flow(3)].concat();
    let (mut records, stats) = collect([&ipfix(0, &sets)[..]]);
    let intervals: Vec<_> = records.iter().map(|record| record.sampling_interval).collect();
    assert_eq!(intervals, [Some(100), Some(1000), None]);
    assert_eq!(stats.options_record_count, 2);
    records[0].scale();
    records[0].scale();
    assert_eq!((records[0].packet_count(), records[0].counter_scale), (500, Some(100)));
    records[2].scale();
    assert_eq!((records[2].packet_count(), records[2].counter_scale), (5, None));
}

/// Packet reports name a sequence of selectors, which another options record states (RFC 5476 sections 6.4 and 6.5.1).
#[test]
fn intervals_of_selectors_apply_to_their_sequences() {
    // selectorId as the scope; selectorAlgorithm, samplingPacketInterval, samplingPacketSpace.
    let selector_template = template(3, 400, Some(1), &[[302, 8], [304, 2], [305, 4], [306, 4]]);
    let selector = |id: u64, algorithm: u8, space: u32| {
        let head = [&id.to_be_bytes()[..], &[0, algorithm]].concat();
        set(400, &[&head[..], &words(&[1, space])].concat())
    };
    // selectionSequenceId as the scope; ingressInterface, two and five selectorIds.
    let two = template(3, 402, Some(1), &[[301, 8], [10, 4], [302, 8], [302, 8]]);
    let five = template(3, 403, Some(1), &[[301, 8], [302, 8], [302, 8], [302, 8], [302, 8], [302, 8]]);
    let numbers =
        |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let sequence =
        |id: u64, selectors: [u64; 2]| set(402, &[numbers(&[id]), words(&[3]), numbers(&selectors)].concat());
    // Addresses, packetDeltaCount, selectionSequenceId.
    let flow_template = template(2, 401, None, &[[8, 4], [12, 4], [2, 4], [301, 8]]);
    let flow = |id: u64| {
        let body = [&[192, 0, 2, 1, 192, 0, 2, 2][..], &words(&[5]), &numbers(&[id])].concat();
        set(401, &body)
    };
    const FILTER: u8 = 5;
    let sets = [
        vec![selector_template, two, five, flow_template],
        // The order of both kinds of records is free.
        vec![sequence(70, [1, 9]), selector(1, 1, 99), selector(2, 1, 9), selector(9, FILTER, 6)],
        vec![sequence(71, [1, 2]), sequence(72, [9, 8]), set(403, &numbers(&[73, 1, 1, 1, 1, 1]))],
        [70, 71, 72, 73, 74].map(flow).to_vec(),
        // Another definition replaces the first.
        vec![sequence(70, [9, 2]), flow(70)],
    ];
    let (records, stats) = collect([&ipfix(0, &sets.concat().concat())[..]]);
    let intervals: Vec<_> = records.iter().map(|record| record.sampling_interval).collect();
    assert_eq!(intervals, [Some(100), Some(1000), None, None, None, Some(10)]);
    assert_eq!((stats.options_record_count, stats.malformed_message_count), (8, 0));
}

/// NetFlow version 5 has the interval in the header, version 9 in an options record.
#[test]
fn intervals_of_netflow_apply_to_its_records() {
    let mut version5 = vec![0, 5, 0, 1];
    version5.extend([100_000_u32, 1_700_000_000, 0, 0].into_iter().flat_map(u32::to_be_bytes));
    version5.extend([0, 0, 0x40, 64]);
    version5.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    version5.extend([0; 40]);
    let (records, _) = collect([&version5[..]]);
    assert_eq!(records[0].sampling_interval, Some(64));

    // An options template with the scope System; samplingInterval, samplingAlgorithm (RFC 3954 section 6.1).
    let mut options = [256_u16, 4, 8, 1, 0, 34, 4, 35, 1].map(u16::to_be_bytes).concat();
    options.extend([0, 0]);
    let flow_template = template(0, 257, None, &[[8, 4], [12, 4], [4, 1]]);
    let sets = [
        set(1, &options),
        flow_template,
        set(256, &[0, 0, 3, 0xe8, 2]),
        set(257, &[192, 0, 2, 1, 192, 0, 2, 2, 17]),
    ];
    let mut message = vec![0, 9, 0, 4];
    message.extend([100_000_u32, 1_700_000_000, 1, 9].into_iter().flat_map(u32::to_be_bytes));
    message.extend(sets.concat());
    let (records, stats) = collect([&message[..]]);
    assert_eq!((records.len(), stats.malformed_message_count), (1, 0));
    assert_eq!(records[0].sampling_interval, Some(1000));
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Returns a datagram of sFlow with samples, each with its format.
fn sflow(sequence_number: u32, samples: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut datagram = words(&[5, 1, 0xc000_0201, 3, sequence_number, 1000, samples.len() as u32]);
    for (format, body) in samples {
        datagram.extend(words(&[*format, body.len() as u32]));
        datagram.extend(body);
    }
    datagram
}

/// Returns a flow sample with the header of a frame; an expanded one if `is_expanded`.
fn header_sample(frame: &Frame<'_>, is_expanded: bool) -> (u32, Vec<u8>) {
    let mut header = frame.data[..frame.data.len().min(SECTION_LEN)].to_vec();
    let len = header.len() as u32;
    header.resize(header.len().next_multiple_of(4), 0);
    // Sequence number, source, rate, pool, drops, input, output, number of records.
    let mut body = if is_expanded {
        words(&[1, 0, 5, 128, 1000, 0, 0, 5, 0, 6, 1])
    } else {
        words(&[1, 5, 128, 1000, 0, 5, 6, 1])
    };
    // Raw packet header: Ethernet, length with the frame check sequence, stripped octets.
    body.extend(words(&[1, 16 + header.len() as u32, 1, frame.wire_len + 4, 4, len]));
    body.extend(header);
    (if is_expanded { 3 } else { 1 }, body)
}

#[test]
fn samples_of_sflow_give_the_flows_of_the_frames() {
    let frames = frames("web.pcap");
    let now = Timestamp::from_parts(1_700_000_000, 0);
    let list: Vec<_> = frames.iter().collect();
    let datagrams: Vec<_> = (0..)
        .zip(list.chunks(7))
        .map(|(number, frames)| {
            let samples: Vec<_> =
                (0..7).zip(frames).map(|(i, frame)| header_sample(frame, i % 2 == 1)).collect();
            // Counters of an interface between packets.
            sflow(number, &[&samples[..], &[(2, words(&[1, 5, 0]))]].concat())
        })
        .collect();
    let (packets, collector) = packets(&datagrams);
    let stats = collector.stats();
    assert_eq!((packets.len(), stats.lost_count), (frames.len(), 0));
    assert_eq!(stats.counter_sample_count, datagrams.len() as u64);
    let point = ObservationPoint {
        exporter: IpAddr::from([192, 0, 2, 1]),
        domain: 3,
        interface: 5,
        sampling_interval: Some(128),
        vlan_id: None,
    };
    assert_eq!(exporter_address().ip(), point.exporter);
    assert!(packets.iter().all(|(_, found)| *found == point));
    let truncated = list.iter().map(|frame| Frame {
        timestamp: now,
        data: &frame.data[..frame.data.len().min(SECTION_LEN)],
        interface: 0,
        ..*frame
    });
    assert_eq!(flows(packets.iter().map(|(frame, _)| *frame)), flows(truncated));
}

#[test]
fn addresses_that_an_agent_sends_instead_of_a_header_are_records() {
    let ipv4 = [
        words(&[1, 5, 10, 0, 0, 9, 0, 1, 3, 32, 1500, 6]),
        vec![192, 0, 2, 1, 192, 0, 2, 2],
        words(&[40_000, 80, 0x12, 0xb8]),
    ];
    let mut datagram = sflow(0, &[(1, ipv4.concat())]);
    // A relay sends the datagram of an agent with another address.
    datagram[11] = 77;
    let (records, stats) = collect([&datagram[..]]);
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!((stats.record_count, stats.packet_count), (1, 0));
    assert_eq!((record.source_port(), record.destination_port()), (Some(40_000), Some(80)));
    assert_eq!((record.packet_count(), record.forward.counters.ip_octet_count), (1, 1500));
    assert_eq!((record.sampling_interval, record.interface), (Some(10), 9));
    assert_eq!((record.forward.tcp_flags.0, record.forward.dscp), (0x12, Some(46)));
    let exported = record.exported.as_deref().expect("an exporter");
    assert_eq!((exported.egress_interface, exported.observation_domain), (None, Some(3)));
    assert_eq!(exported.exporter_address, Some([192, 0, 2, 77].into()));
}

/// Extended switch data (format 1001) has the VLAN of the packet in the switch, which a frame from an access port does not
/// have. An output interface with the format 1 is the reason for which the packet was discarded.
#[test]
fn the_switch_data_of_a_sample_belongs_to_its_packet() {
    let frames = frames("web.pcap");
    let (format, mut body) = header_sample(&frames.get(5).unwrap(), false);
    body[7 * 4 + 3] = 2;
    body.extend(words(&[1001, 16, 7, 0, 8, 0]));
    let mut discarding = body.clone();
    discarding[6 * 4..7 * 4].copy_from_slice(&0x4000_0102_u32.to_be_bytes());
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut found = Vec::new();
    for sample in [(format, body), (format, discarding)] {
        collector.message(exporter_address(), &sflow(0, &[sample]), Timestamp::ZERO, |collected| {
            let Collected::Packet(packet) = collected else { panic!("a packet") };
            found.push((packet.point.vlan_id, packet.egress_interface));
        });
    }
    assert_eq!(found, [(Some(7), Some(6)), (Some(7), None)]);
    // The same of an agent that sends addresses; the switch data come first.
    let ipv4 = [
        words(&[1, 5, 10, 0, 0, 9, 0, 2, 1001, 16, 7, 0, 8, 0, 3, 32, 1500, 6]),
        vec![192, 0, 2, 1, 192, 0, 2, 2],
        words(&[40_000, 80, 0x12, 0xb8]),
    ];
    let (records, _) = collect([&sflow(0, &[(1, ipv4.concat())])[..]]);
    assert_eq!(records[0].forward.vlan_ids.iter().collect::<Vec<_>>(), [7]);
}

/// Extended gateway data (format 1003): next hop, systems of the router, of the source and of its peer, the path to the
/// destination as segments of a type and systems, communities, preference.
#[test]
fn the_gateway_data_of_a_sample_state_its_systems() {
    let sequence: &[u32] = &[1, 2, 3, 64_500, 64_501, 64_502];
    type Case<'c> = (&'c [u32], u32, &'c [u32], [Option<u32>; 2]);
    let cases: [Case<'_>; 6] = [
        (&[1, 0x0a00_0001], 64_496, sequence, [Some(64_496), Some(64_502)]),
        (&[2, 1, 2, 3, 4], 4_200_000_001, sequence, [Some(4_200_000_001), Some(64_502)]),
        (&[0], 0, &[0], [None, None]),
        // A sequence, and a set of an aggregated route.
        (&[0], 64_496, &[2, 2, 1, 64_500, 1, 2, 64_501, 64_502], [Some(64_496), None]),
        (&[0], 64_496, &[2, 2, 1, 64_500, 1, 1, 64_501], [Some(64_496), Some(64_501)]),
        (&[0], 64_496, &[1, 2, 0], [Some(64_496), None]),
    ];
    let frames = frames("web.pcap");
    for (next_hop, source, path, expected) in cases {
        let data = [next_hop, &[64_499, source, 64_498], path, &[2, 0xfde8_0001, 0xfde8_0002, 100]].concat();
        let data = words(&[&[1003, 4 * data.len() as u32][..], &data].concat());
        // Data of a router, which are skipped, come before.
        let router = words(&[1002, 16, 1, 0x0a00_0001, 24, 24]);
        let (format, mut body) = header_sample(&frames.get(5).unwrap(), false);
        body[7 * 4 + 3] = 3;
        body.extend([&router[..], &data].concat());
        let mut collector = Collector::new(CollectorConfig::default()).unwrap();
        let mut found = None;
        collector.message(exporter_address(), &sflow(0, &[(format, body)]), Timestamp::ZERO, |collected| {
            let Collected::Packet(packet) = collected else { panic!("a packet") };
            found = Some([packet.source_as, packet.destination_as]);
        });
        assert_eq!((found, collector.stats().skipped_data_count), (Some(expected), 1));
        let addresses = [
            words(&[1, 5, 10, 0, 0, 9, 0, 2]),
            data.clone(),
            words(&[3, 32, 1500, 6]),
            vec![192, 0, 2, 1, 192, 0, 2, 2],
            words(&[40_000, 80, 0x12, 0xb8]),
        ];
        let (records, stats) = collect([&sflow(0, &[(1, addresses.concat())])[..]]);
        let exported = records[0].exported.as_ref().unwrap();
        assert_eq!([exported.source_as, exported.destination_as], expected);
        assert_eq!(stats.malformed_message_count, 0);
    }
    // A path that is longer than its data.
    let long = words(&[1, 5, 10, 0, 0, 9, 0, 1, 1003, 28, 0, 1, 2, 3, 1, 2, 200]);
    let (records, stats) = collect([&sflow(0, &[(1, long)])[..]]);
    assert_eq!((records.len(), stats.malformed_message_count), (0, 1));
}

#[test]
fn notifications_of_discarded_packets_and_unknown_samples_are_counted() {
    // Sequence number, source, drops, interfaces, reason, and no data (sFlow Dropped Packet Notification Structures).
    let discarded = words(&[1, 0, 5, 2, 5, 0, 258, 0]);
    let vendor = (0x0010_9001, words(&[1, 2]));
    let (records, stats) = collect([&sflow(0, &[(5, discarded.clone()), vendor, (5, discarded)])[..]]);
    assert_eq!((records.len(), stats.discarded_packet_count, stats.skipped_sample_count), (0, 2, 1));
    assert_eq!((stats.malformed_message_count, stats.packet_count), (0, 0));
}

#[test]
fn lengths_of_sflow_that_exceed_the_datagram_are_malformed() {
    let frames = frames("web.pcap");
    let good = sflow(0, &[header_sample(&frames.get(5).unwrap(), false)]);
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    for len in 0..good.len() {
        collector.message(exporter_address(), &good[..len], Timestamp::ZERO, |_| panic!("{len} octets"));
    }
    assert_eq!(collector.stats().malformed_message_count, good.len() as u64);
    collector.message(exporter_address(), &good, Timestamp::ZERO, |_| ());
    assert_eq!(
        (collector.stats().packet_count, collector.stats().malformed_message_count),
        (1, good.len() as u64)
    );
}

/// tshark finds the same samples and headers.
#[test]
fn tshark_decodes_the_samples_of_the_tests() {
    let frames = frames("web.pcap");
    let datagram = sflow(
        0,
        &[header_sample(&frames.get(8).unwrap(), false), header_sample(&frames.get(9).unwrap(), true)],
    );
    let mut file = Vec::new();
    let (source, destination) =
        (SocketAddr::from(([192, 0, 2, 1], 6343)), SocketAddr::from(([192, 0, 2, 9], 6343)));
    let (IpAddr::V4(from), IpAddr::V4(to)) = (source.ip(), destination.ip()) else { unreachable!() };
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(from.octets(), to.octets(), 64)
        .udp(source.port(), destination.port())
        .write(&mut frame, &datagram)
        .unwrap();
    let mut writer = flowgauge::source::PcapngWriter::new(&mut file).unwrap();
    writer.write(&Frame::ethernet(Timestamp::from_parts(1_700_000_000, 0), &frame), &[]).unwrap();
    let path = std::env::temp_dir().join(format!("flowgauge-sflow-{}.pcapng", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let fields = ["sflow.flow_sample.sampling_rate", "sflow.flow_sample.input_interface", "tcp.seq_raw"];
    let output = Command::new("tshark")
        .args(["-n", "-r", path.to_str().unwrap(), "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output();
    let _ = std::fs::remove_file(&path);
    let Ok(output) = output else { return eprintln!("tshark is not installed: the test is skipped") };
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{text}");
    assert!(text.starts_with("128,128\t5"), "{text}");
}
