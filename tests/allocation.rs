//! No allocation per packet: a counting allocator checks each path that guarantees this. `tests/tun` checks the
//! forwarder, which needs devices.

#[path = "support/allocations.rs"]
mod allocations;

use std::hint::black_box;
use std::io;
use std::time::Duration;

use etherparse::PacketBuilder;
use flowgauge::base::{
    Frame, FrameBatch, Limits, NANOS_PER_SECOND, Resources, SeqNum, TcpFlags, Timestamp, VlanIds,
};
use flowgauge::codec::{Prefix, Reader, Writer};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, Packet};
use flowgauge::decode::link::Decapsulation;
use flowgauge::dedup::{DedupConfig, Mode, Window};
use flowgauge::export::{FixedRecord, Lines, RecordWriter as _, Selection, Style};
use flowgauge::ipfix::collector::{Collector, CollectorConfig};
use flowgauge::ipfix::{Exporter, ExporterConfig, MessageReader, StreamTransport, Transport};
use flowgauge::pipeline::Pipeline;
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};
use flowgauge::tap::{
    EthernetHeader, NeighborConfig, NeighborEvent, NeighborTable, Resolution, ethernet_to_ip, ip_to_ethernet,
};
use flowgauge::tracker::{Flow, Observer, Tracker, TrackerConfig};
use flowgauge::{FlowKey, FlowRecord};

fn assert_no_allocation<R>(what: &str, run: impl FnOnce() -> R) -> R {
    let before = allocations::count();
    let result = run();
    assert_eq!(allocations::count() - before, 0, "allocations: {what}");
    result
}

/// An observer with interest in everything, which counts packets.
#[derive(Default)]
struct Everything(u64);

impl Observer<u64> for Everything {
    fn packet(&mut self, flow: &mut Flow<'_, u64>, packet: &Packet<'_>) {
        *flow.state += packet.payload().len() as u64;
        self.0 += 1;
    }
}

const FLOWS: u16 = 300;
const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

fn serialized(step: etherparse::PacketBuilderStep<etherparse::TcpHeader>, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    step.write(&mut frame, payload).expect("a valid packet");
    frame
}

fn link() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
    PacketBuilder::ethernet2([2; 6], [4; 6])
}

/// Returns a segment of a flow from client or server; sequence numbers advance by ten octets per round.
fn tcp(flow: u16, is_client: bool, round: u32) -> Vec<u8> {
    let (source, target) = if is_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let (from, to) = if is_client { (flow + 1024, 80) } else { (80, flow + 1024) };
    let step = link().ipv4(source, target, 64).tcp(from, to, 1000 + 10 * round, 500);
    serialized(step.ack(1000 + 10 * if is_client { round } else { round + 1 }), b"0123456789")
}

fn udp(flow: u16, is_client: bool) -> Vec<u8> {
    let mut frame = Vec::new();
    let (source, target) = if is_client { ([1; 16], [2; 16]) } else { ([2; 16], [1; 16]) };
    let (from, to) = if is_client { (flow + 1024, 53) } else { (53, flow + 1024) };
    let step = link().ipv6(source, target, 64).udp(from, to);
    step.write(&mut frame, b"question").expect("a valid packet");
    frame
}

fn echo(is_request: bool) -> Vec<u8> {
    let mut frame = Vec::new();
    let step = if is_request {
        link().ipv4(CLIENT, SERVER, 64).icmpv4_echo_request(7, 1)
    } else {
        link().ipv4(SERVER, CLIENT, 64).icmpv4_echo_reply(7, 1)
    };
    step.write(&mut frame, b"ping").expect("a valid packet");
    frame
}

/// Returns unusual frames: retransmitted, truncated, with IP options, a fragment, an ICMP error that quotes a known
/// flow, no IP.
fn unusual_frames() -> Vec<Vec<u8>> {
    let mut with_options = tcp(1, true, 0);
    with_options.splice(34..34, [1, 1, 1, 1]);
    with_options[14] = 0x46;
    with_options[17] += 4;
    let mut fragment = tcp(2, true, 0);
    fragment[20] = 0x20;
    let quoted = tcp(3, true, 0);
    let mut error = Vec::new();
    link()
        .ipv4(SERVER, CLIENT, 64)
        .icmpv4_raw(3, 1, [0; 4])
        .write(&mut error, &quoted[14..50])
        .expect("a valid packet");
    vec![tcp(0, true, 0), tcp(0, true, 0)[..45].to_vec(), with_options, fragment, error, vec![0; 60], vec![]]
}

/// Returns the frames of one round over all flows.
fn round(number: u32) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for flow in 0..FLOWS {
        frames.extend([true, false].map(|is_client| tcp(flow, is_client, number)));
        frames.extend([true, false].map(|is_client| udp(flow, is_client)));
    }
    frames.extend([true, false].map(echo));
    frames
}

fn at(frames: &[Vec<u8>], second: u64) -> Vec<Frame<'_>> {
    let time = |position: usize| Timestamp::from_nanos(second * NANOS_PER_SECOND + position as u64);
    frames.iter().enumerate().map(|(position, data)| Frame::ethernet(time(position), data)).collect()
}

fn with_time<'a>(packet: &Packet<'a>, timestamp: Timestamp) -> Packet<'a> {
    let mut with_time = *packet;
    with_time.timestamp = timestamp;
    with_time
}

/// Translates frames to packets and back in place, and uses a neighbor table with known neighbors.
fn translation_costs_no_allocation(rounds: &[Vec<Frame<'_>>], unusual: &[Frame<'_>]) {
    let header = EthernetHeader::new([2; 6], [4; 6], VlanIds::NONE.push(7).push(8));
    let mut buffer = [0; 2048];
    let mut packet_count = 0;
    assert_no_allocation("Ethernet to IP, and IP to Ethernet", || {
        for frame in rounds.iter().flatten().chain(unusual) {
            let Ok(packet) = ethernet_to_ip(black_box(frame.data)) else { continue };
            buffer[EthernetHeader::LEN_MAX..][..packet.len()].copy_from_slice(packet);
            let made = ip_to_ethernet(&mut buffer, EthernetHeader::LEN_MAX, &header);
            packet_count += black_box(made.is_ok_and(|made| made.len() == 22 + packet.len())) as usize;
        }
    });
    assert!(packet_count > 4000);

    let table = |own: u8| {
        let mut table = NeighborTable::new(NeighborConfig::new([own << 1; 6])).expect("valid");
        table.add_local([10, 0, 0, own].into()).expect("a host");
        table
    };
    let (mut here, mut there, now) = (table(1), table(2), Timestamp::from_parts(9, 0));
    let Resolution::Request(request) = here.resolve([10, 0, 0, 2].into(), now) else {
        panic!("already known")
    };
    let NeighborEvent::Request(reply) = assert_no_allocation("a reply", || there.process(&request, now))
    else {
        panic!("no reply")
    };
    here.process(&reply, now);
    assert_no_allocation("a known neighbor, and replies that are rejected", || {
        assert!(matches!(here.resolve([10, 0, 0, 2].into(), now), Resolution::Known { .. }));
        assert_eq!(here.process(&reply, now), NeighborEvent::Spoofed);
    });
}

/// Returns a UDP datagram of 3000 octets in three fragments with an identification.
fn fragments(id: u16) -> Vec<Vec<u8>> {
    let whole = serialized_udp(&[7; 3000]);
    let (ethernet, header, payload) = (&whole[..14], &whole[14..34], &whole[34..]);
    let count = payload.len().div_ceil(1480);
    payload
        .chunks(1480)
        .enumerate()
        .map(|(position, part)| {
            let mut header = header.to_vec();
            header[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
            header[4..6].copy_from_slice(&id.to_be_bytes());
            let more = if position + 1 < count { 0x2000 } else { 0 };
            header[6..8].copy_from_slice(&((position * 1480 / 8) as u16 | more).to_be_bytes());
            [ethernet, &header, part].concat()
        })
        .collect()
}

fn serialized_udp(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let step = link().ipv4(CLIENT, SERVER, 64).udp(4000, 4001);
    step.write(&mut frame, payload).expect("a valid packet");
    frame
}

/// Sends fragmented datagrams, in order and reversed, through a pool that has held as many before.
fn fragments_cost_no_allocation() {
    let mut pipeline = Pipeline::builder().build(()).expect("a valid configuration");
    let round = |first: u16| -> Vec<Vec<u8>> {
        let in_order = (first..first + 4).flat_map(fragments);
        // Interleaved, in reverse order.
        let mut reversed: Vec<_> = (first + 4..first + 8).flat_map(fragments).collect();
        reversed.reverse();
        in_order.chain(reversed).collect()
    };
    let rounds: Vec<_> = (0..5).map(|number| round(8 * number)).collect();
    let mut frames = rounds.iter().zip(1..).map(|(frames, second)| at(frames, second));
    for frame in frames.by_ref().take(2).flatten() {
        pipeline.frame(&frame);
    }
    let rest: Vec<_> = frames.flatten().collect();
    assert_no_allocation("reassembly of fragments in a warm pool", || {
        rest.iter().for_each(|frame| pipeline.frame(frame));
    });
    let stats = pipeline.stats();
    assert_eq!((stats.fragments.completed_count, stats.tracker.packet_count), (40, 120));
}

/// Sends packets of known flows in tunnels, with links to the outer flows and with encapsulations.
fn tunnels_cost_no_allocation() {
    let mut policy = KeyPolicy::DEFAULT;
    policy.decapsulation = Decapsulation::Both;
    let builder = Pipeline::builder().key_policy(policy).encapsulation(true);
    let mut pipeline = builder.build(()).expect("a valid configuration");
    let in_vxlan = |vni: u8, frame: Vec<u8>| {
        let mut out = Vec::new();
        let step = link().ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(50_000, 4789);
        step.write(&mut out, &[&[8, 0, 0, 0, 0, 0, vni, 0], &frame[..]].concat()).expect("a valid packet");
        out
    };
    let rounds: Vec<Vec<_>> = (0..4)
        .map(|number| round(number).into_iter().map(|frame| in_vxlan(number as u8 / 2, frame)).collect())
        .collect();
    let rounds: Vec<_> = rounds.iter().zip(1..).map(|(frames, second)| at(frames, second)).collect();
    rounds[0].iter().for_each(|frame| pipeline.frame(frame));
    assert_no_allocation("packets in tunnels, in the same tunnel and in another one", || {
        rounds[1..].iter().flatten().for_each(|frame| pipeline.frame(frame));
    });
    assert_eq!(pipeline.stats().outer_packet_count, 4 * rounds[0].len() as u64);
}

fn a_codec_with_a_buffer_costs_no_allocation() {
    let mut buffer = [0; 64];
    assert_no_allocation("a message in a buffer of the caller, and errors", || {
        let mut writer = Writer::new(&mut buffer);
        // The third message does not fit.
        for number in 0..3 {
            let written = writer.section(Prefix::Ipfix, |writer| {
                writer.be(1_u64)?;
                writer.padded(12, "eth0")?;
                writer.prefixed(Prefix::U16, "text")
            });
            assert_eq!(written.is_ok(), number < 2);
        }
        let mut reader = Reader::new(writer.written());
        let mut section = reader.section(Prefix::Ipfix).expect("a section");
        assert_eq!(section.be::<u64>(), Ok(1));
        assert_eq!(section.padded_str(12), Ok("eth0"));
        assert_eq!(section.prefixed_str(Prefix::U16), Ok("text"));
        assert!(section.be::<u16>().is_err());
    });
}

/// Counts the octets of messages.
struct Octets(usize);

impl Transport for Octets {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0 += message.len();
        Ok(())
    }
}

fn exported_and_collected_records_cost_no_allocation() {
    let mut config = ExporterConfig::default();
    config.enterprise_number = Some(32_473);
    let mut exporter = Exporter::new(config, Octets(0)).expect("a configuration");
    let mut file = Vec::new();
    let mut to_file = Exporter::new(config, StreamTransport::new(&mut file)).expect("a configuration");
    let (key, initiator) = FlowKey::tcp(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 443).into());
    let mut record = FlowRecord::new(key, initiator, Timestamp::from_parts(1_700_000_000, 0));
    record.forward.counters.packet_count = 1;
    for _ in 0..1000 {
        exporter.export(&record, record.end).expect("a transport without errors");
        to_file.export(&record, record.end).expect("a transport without errors");
    }
    to_file.flush().expect("a transport without errors");
    // Templates and type records are sent again in the meantime.
    assert_no_allocation("export of records with a known layout", || {
        for _ in 0..10_000 {
            exporter.export(black_box(&record), record.end).expect("a transport without errors");
        }
    });
    assert!(exporter.transport().0 > 1_000_000);

    let mut collector = Collector::new(CollectorConfig::default()).expect("a configuration");
    let address = ([192, 0, 2, 3], 4739).into();
    let message = MessageReader::new(&file[..]).next().expect("a message").expect("a message").to_vec();
    collector.message(address, &message, Timestamp::ZERO, |_| ());
    // The first message contains the templates, which are known now.
    let count = collector.stats().record_count;
    let next =
        MessageReader::new(&file[message.len()..]).next().expect("a message").expect("a message").to_vec();
    assert_no_allocation("collection of records with a known template", || {
        collector.message(address, black_box(&next), Timestamp::ZERO, |collected| {
            black_box(collected.record());
        });
    });
    assert!(collector.stats().record_count > count + 100);
    let mut packet_count = 0;
    assert_no_allocation("a fixed record", || {
        let encoded = FixedRecord::encode(black_box(&record));
        packet_count = FixedRecord::new(&encoded).expect("a valid record").packet_count();
    });
    assert_eq!(packet_count, 1);
}

fn lines_of_records_cost_no_allocation() {
    let records: Vec<_> =
        flowgauge::records(flowgauge::FileSource::open("examples/data/web.pcap").expect("a capture"))
            .collect::<Result<_, _>>()
            .expect("an undamaged capture");
    let selection =
        Selection::of::<FlowRecord>(["octet_count", "vlan_ids", "protocol"]).expect("names of columns");
    for selection in [None, Some(selection)] {
        let style = Style::default();
        let writers =
            [Lines::ndjson(io::sink(), selection.clone(), style), Lines::csv(io::sink(), selection, style)];
        for mut lines in writers {
            records.iter().for_each(|record| lines.write(record).expect("no errors"));
            assert_no_allocation("lines of records", || {
                records.iter().for_each(|record| lines.write(record).expect("no errors"));
            });
        }
    }
}

/// Writes each message of the example captures twice.
#[cfg(feature = "protocols")]
fn lines_of_messages_cost_no_allocation() {
    let mut message_count = 0;
    for name in ["web", "dns", "mail", "ssh"] {
        let mut line = Vec::with_capacity(1 << 16);
        let sink = flowgauge::on_message::<flowgauge::Standard>(|_, _, message| {
            message_count += 1;
            assert_no_allocation("a line of a message", || {
                line.clear();
                flowgauge::export::write_message(&mut line, message, Style::default());
            });
        });
        let mut source =
            flowgauge::FileSource::open(format!("examples/data/{name}.pcap")).expect("a capture");
        let mut pipeline = Pipeline::builder().build(sink).expect("a configuration");
        pipeline.run(&mut source, &flowgauge::RunOptions::default()).expect("a capture");
    }
    assert!(message_count > 100, "{message_count}");
}

#[test]
fn known_flows_cost_no_allocation() {
    exported_and_collected_records_cost_no_allocation();
    lines_of_records_cost_no_allocation();
    #[cfg(feature = "protocols")]
    lines_of_messages_cost_no_allocation();
    let rounds: Vec<_> = (0..6).map(round).collect();
    let rounds: Vec<_> = rounds.iter().zip(100..).map(|(frames, second)| at(frames, second)).collect();
    let unusual = unusual_frames();
    let unusual = at(&unusual, 106);
    let extractor = Extractor::default();

    assert_no_allocation("extraction, fast and general", || {
        for frame in rounds.iter().flatten().chain(&unusual) {
            let _ = black_box(extractor.extract(black_box(frame)));
            let _ = black_box(extractor.extract_general(black_box(frame)));
        }
    });

    translation_costs_no_allocation(&rounds, &unusual);
    a_codec_with_a_buffer_costs_no_allocation();

    let packets: Vec<Vec<Packet<'_>>> = rounds
        .iter()
        .chain([&unusual])
        .map(|frames| frames.iter().filter_map(|frame| extractor.extract(frame).ok()).collect())
        .collect();
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_secs(3));
    config.staged_flow_count_min = 0;
    let mut tracker: Tracker<u64> =
        Tracker::new(config, &Resources::default()).expect("a valid configuration");
    let mut sink = Everything::default();
    // The first round creates the flows; unusual packets allocate the memory that they need.
    for packet in packets[0].iter().chain(&packets[6]) {
        tracker.track(&with_time(packet, packets[0][0].timestamp), &mut sink);
    }
    assert_no_allocation("packets one by one", || {
        for packet in &packets[1] {
            tracker.track(packet, &mut sink);
        }
    });
    assert_no_allocation("packets in batches", || tracker.track_batch(&packets[2], &mut sink));
    assert_no_allocation("packets through a sink that is dyn", || {
        let sink: &mut dyn Observer<u64> = &mut sink;
        tracker.track_batch(&packets[3], sink);
    });
    assert_no_allocation("an active timeout of each flow", || tracker.track_batch(&packets[4], &mut sink));
    assert!(tracker.stats().active_timeout_count >= u64::from(FLOWS));
    assert_no_allocation("expiry with no deadline reached", || {
        for _ in 0..100 {
            tracker.advance(tracker.now().saturating_add(Duration::from_micros(1)), &mut sink);
            black_box(tracker.next_deadline());
        }
    });
    let flow_count = tracker.len();
    assert_no_allocation("unusual packets of known flows", || tracker.track_batch(&packets[6], &mut sink));
    assert_no_allocation("flows that end by timeout, and new flows in their slots", || {
        let later = tracker.now().saturating_add(Duration::from_secs(1000));
        tracker.advance(later, &mut sink);
        assert!(tracker.is_empty());
        for packet in packets[0].iter().chain(&packets[6]) {
            tracker.track(&with_time(packet, later), &mut sink);
        }
    });
    assert_eq!(tracker.len(), flow_count);

    let mut pipeline = Pipeline::builder().build(()).expect("a valid configuration");
    let mut batch = FrameBatch::new();
    let fill = |batch: &mut FrameBatch, frames: &[Frame<'_>]| {
        batch.clear();
        frames.iter().for_each(|frame| batch.push(frame));
    };
    fill(&mut batch, &rounds[0]);
    let _ = pipeline.batch(&batch);
    fill(&mut batch, &unusual);
    let _ = pipeline.batch(&batch);
    assert_no_allocation("a reused batch in the pipeline", || {
        for frames in &rounds[1..4] {
            fill(&mut batch, frames);
            let _ = pipeline.batch(&batch);
        }
    });
    assert!(pipeline.stats().frame_count > 4000);

    windows_cost_no_allocation(&rounds, &unusual);
    fragments_cost_no_allocation();
    tunnels_cost_no_allocation();
    streams_cost_no_allocation();
}

/// Checks frames against a full window, in both modes, with and without comparison of octets.
fn windows_cost_no_allocation(rounds: &[Vec<Frame<'_>>], unusual: &[Frame<'_>]) {
    for (mode, verifies) in [(Mode::Exact, false), (Mode::Exact, true), (Mode::IgnoreMirrorChanges, true)] {
        let mut config = DedupConfig::default();
        (config.mode, config.verifies) = (mode, verifies);
        let mut limits = Limits::DEFAULT;
        (limits.dedup_frame_count_max, limits.dedup_bytes_max) = (1000, 70_000);
        let mut window = Window::new(config, &Resources::new(limits)).expect("a valid configuration");
        let frames = || rounds.iter().flatten().chain(unusual);
        frames().for_each(|frame| _ = window.check(frame));
        let held_bytes = window.held_bytes();
        assert_no_allocation("a full window", || {
            for frame in frames() {
                let _ = black_box((window.check(frame), window.check(frame)));
            }
        });
        assert_eq!((window.len(), window.held_bytes()), (1000, held_bytes));
        assert!(window.stats().duplicate_count > 4000);
    }
}

/// Sends segments of 1460 octets on each stream in the given order, then an acknowledgment.
fn send(reassembler: &mut Reassembler<usize>, streams: &mut [Stream], base: u32, order: &[u32]) -> u64 {
    let (mut octet_count, payload) = (0, [7; 1460]);
    for number in order {
        for (name, stream) in streams.iter_mut().enumerate() {
            let seq = SeqNum((base + number).wrapping_mul(1460));
            let segment = Segment::new(seq, TcpFlags::ACK, &payload, Timestamp::ZERO);
            reassembler.segment(stream, name, &segment, |event| {
                if let StreamEvent::Chunk(chunk) = event {
                    octet_count += chunk.bytes.len() as u64;
                }
            });
        }
    }
    let last = order.iter().max().copied().unwrap_or(0);
    let end = SeqNum((base + last + 1).wrapping_mul(1460));
    for (name, stream) in streams.iter_mut().enumerate() {
        let answer = Segment::new(SeqNum(0), TcpFlags::ACK, &[], Timestamp::ZERO).with_ack(end);
        reassembler.acknowledgment(stream, name, &answer, |_| {});
    }
    octet_count
}

/// Segments in order never allocate, not even the first segment of the first stream. Segments out of order do not
/// allocate once as many were held before, with up to five segments of common size behind a hole; a longer sequence
/// releases its list of segments when it ends, so that the next one grows it again in a few steps. Comparison with
/// delivered octets does not allocate once each stream has its ring.
fn streams_cost_no_allocation() {
    let mut reassembler: Reassembler<usize> = Reassembler::default();
    let mut streams: Vec<Stream> = (0..6).map(|_| Stream::default()).collect();
    let in_order: Vec<u32> = (0..6).collect();
    let octet_count =
        assert_no_allocation("segments in order", || send(&mut reassembler, &mut streams, 0, &in_order));
    assert_eq!((octet_count, reassembler.held_bytes()), (6 * 6 * 1460, 0));

    // One missing segment; reversed; two holes; retransmissions.
    let mixed: [&[u32]; 4] =
        [&[1, 2, 3, 4, 5, 0], &[5, 4, 3, 2, 1, 0], &[0, 2, 4, 1, 5, 3], &[3, 3, 1, 1, 2, 2, 0, 5, 5, 4, 4]];
    let round = |reassembler: &mut Reassembler<usize>, streams: &mut [Stream], number: u32| -> u64 {
        let bases = (6 + 24 * number..).step_by(6);
        mixed.iter().zip(bases).map(|(order, base)| send(reassembler, streams, base, order)).sum()
    };
    round(&mut reassembler, &mut streams, 0);
    let octet_count = assert_no_allocation("segments out of order in a warm pool", || {
        (1..20).map(|number| round(&mut reassembler, &mut streams, number)).sum::<u64>()
    });
    assert_eq!((octet_count, reassembler.held_stream_count()), (19 * 6 * 24 * 1460, 0));
    assert!(reassembler.stats().held_segment_count > 1000 && reassembler.stats().repeated_count > 0);
    assert_no_allocation("new streams in the slots of others", || {
        for _ in 0..5 {
            streams.iter_mut().for_each(|stream| reassembler.finish(stream, |event| panic!("{event:?}")));
            assert_eq!(send(&mut reassembler, &mut streams, 0, &[0]), 6 * 1460);
            assert_eq!(send(&mut reassembler, &mut streams, 1, &[4, 3, 2, 1, 0]), 6 * 5 * 1460);
        }
    });

    let reversed: Vec<u32> = (0..40).rev().collect();
    send(&mut reassembler, &mut streams[..1], 6, &reversed);
    let before = allocations::count();
    (1..11).for_each(|number| _ = send(&mut reassembler, &mut streams[..1], 6 + 40 * number, &reversed));
    let count = allocations::count() - before;
    assert!(count <= 10 * 5, "{count} allocations for ten sequences of 39 segments");

    let mut config = ReassemblerConfig::default();
    config.compared_len = 16_384;
    let mut reassembler = Reassembler::new(config, &Resources::default()).expect("a valid configuration");
    let mut streams: Vec<Stream> = (0..6).map(|_| Stream::default()).collect();
    send(&mut reassembler, &mut streams, 0, &in_order);
    (1..4).for_each(|number| _ = send(&mut reassembler, &mut streams, 6 * number, mixed[number as usize]));
    assert_no_allocation("segments that are kept for comparison, and compared", || {
        for number in 4..12 {
            send(&mut reassembler, &mut streams, 6 * number, mixed[number as usize % 4]);
            send(&mut reassembler, &mut streams, 6 * number, mixed[0]);
        }
    });
    assert!(reassembler.stats().repeated_count > 0 && reassembler.stats().conflict_count == 0);
}
