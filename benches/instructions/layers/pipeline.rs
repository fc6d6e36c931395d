//! Batches of frames through all layers.

use std::net::Ipv4Addr;

use flowgauge::base::{EndReason, Frame, FrameBatch, Limits, Resources, Timestamp};
use flowgauge::features::{FeatureSet, FlowFeatures};
use flowgauge::tracker::{Flow, Interest};
use flowgauge::{Flows, Packet, Pipeline, Sink};
use gungraun::prelude::*;

use crate::SEEDS;
use crate::cases::sinks::Octets;
use crate::cases::traffic::real_mix;
use crate::cases::{CLIENT, SERVER, TCP_FLAGS, TCP_SEQ, in_ipv6, set_seq, tcp, udp};

const FLOW_COUNT: u16 = 100;

/// Makes a record of each flow and counts them and their packets.
#[derive(Default)]
struct Count {
    record_count: u64,
    packet_count: u64,
}

impl Sink for Count {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let record = flow.view.record(reason);
        self.record_count += 1;
        self.packet_count += record.packet_count();
    }
}

/// A pipeline, and batches to be processed.
struct Running<K: Sink> {
    pipeline: Pipeline<K>,
    batches: Vec<FrameBatch>,
    frame_count: u64,
    flow_count: u64,
}

/// Creates frames of different kinds in turn: TCP, UDP, IPv6, with a VLAN tag, in VXLAN.
fn mixed(number: u16, seq: u32) -> Vec<u8> {
    let client = (CLIENT, 10_000 + number);
    let mut segment = tcp(client, (SERVER, 443), &[7; 100]);
    set_seq(&mut segment, seq);
    match number % 5 {
        0 => segment,
        1 => udp(client, (SERVER, 53), &[7; 50]),
        2 => in_ipv6(&segment),
        3 => [&segment[..12], &[0x81, 0, 0, 42], &segment[12..]].concat(),
        _ => udp((SERVER, 50_000), (CLIENT, 4789), &[&[8, 0, 0, 0, 0, 0, 1, 0], &segment[..]].concat()),
    }
}

fn batch(frames: impl Iterator<Item = Vec<u8>>, second: u64) -> FrameBatch {
    let mut batch = FrameBatch::new();
    for (data, nanos) in frames.zip(0..) {
        batch.push(&Frame::ethernet(Timestamp::from_parts(second, nanos), &data));
    }
    batch
}

impl<K: Sink> Running<K> {
    fn run(&mut self) {
        for batch in &self.batches {
            let _ = self.pipeline.batch(batch);
        }
    }
}

fn pipeline<K: Sink>(sink: K) -> Pipeline<K> {
    let resources = Resources::new(Limits::DEFAULT).with_seeds(SEEDS);
    Pipeline::builder().resources(resources).build(sink).expect("a valid configuration")
}

fn mixed_batches() -> Running<()> {
    let round = |number: u32| batch((0..FLOW_COUNT).map(|flow| mixed(flow, 1000 + 100 * number)), 100);
    let mut pipeline = pipeline(());
    for number in 0..2 {
        assert!(pipeline.batch(&round(number)).is_continue());
    }
    let batches: Vec<_> = (2..12).map(round).collect();
    let frame_count = 12 * u64::from(FLOW_COUNT);
    Running { pipeline, batches, frame_count, flow_count: FLOW_COUNT.into() }
}

/// Frames with the kinds and flow lengths of captures, after as many frames of the same flows.
fn real_batches() -> Running<()> {
    let mix = real_mix(20_000);
    let mut pipeline = pipeline(());
    for batch in &mix.batches {
        assert!(pipeline.batch(batch).is_continue());
    }
    pipeline.finish();
    let stats = pipeline.stats().tracker;
    assert_eq!((stats.started_count, stats.packet_count), (mix.flow_count, mix.packet_count));
    Running { pipeline, batches: mix.batches, frame_count: 2 * mix.packet_count, flow_count: mix.flow_count }
}

/// Segments of one connection: whether the client sends it, control bits, payload length, and relative sequence and
/// acknowledgment numbers.
const DIALOGUE: [(bool, u8, usize, u32, u32); 8] = [
    (true, 0x02, 0, 0, 0),
    (false, 0x12, 0, 0, 1),
    (true, 0x10, 0, 1, 1),
    (true, 0x18, 300, 1, 1),
    (false, 0x18, 1400, 1, 301),
    (true, 0x11, 0, 301, 1401),
    (false, 0x11, 0, 1401, 302),
    (true, 0x10, 0, 302, 1402),
];

fn dialogue_frame(flow: u16, step: usize) -> Vec<u8> {
    let (is_client, flags, payload_len, seq, ack) = DIALOGUE[step];
    let client: (Ipv4Addr, u16) = (CLIENT, 10_000 + flow);
    let (source, destination) = if is_client { (client, (SERVER, 443)) } else { ((SERVER, 443), client) };
    let mut frame = tcp(source, destination, &vec![0; payload_len]);
    set_seq(&mut frame, seq);
    frame[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&ack.to_be_bytes());
    frame[TCP_FLAGS] = flags;
    frame
}

/// Complete connections that are open at the same time, after as many connections have ended.
fn connections() -> Running<Count> {
    let all = |second: u64| {
        (0..DIALOGUE.len())
            .map(move |step| batch((0..FLOW_COUNT).map(|flow| dialogue_frame(flow, step)), second))
    };
    let mut pipeline = pipeline(Count::default());
    for batch in all(100) {
        assert!(pipeline.batch(&batch).is_continue());
    }
    pipeline.finish();
    *pipeline.sink_mut() = Count::default();
    let frame_count = 2 * u64::from(FLOW_COUNT) * DIALOGUE.len() as u64;
    Running { pipeline, batches: all(200).collect(), frame_count, flow_count: FLOW_COUNT.into() }
}

/// Payload length of a segment.
const SEGMENT_LEN: u32 = 1400;

/// Number of batches of segments of established connections.
const STREAM_ROUND_COUNT: u32 = 10;

/// Established connections, and a batch of segments for each round. If `is_exchanged`, each two rounds are exchanged.
fn established_streams(is_exchanged: bool) -> Running<Octets> {
    let mut pipeline = pipeline(Octets::default());
    for step in 0..3 {
        let frames = (0..FLOW_COUNT).map(|flow| dialogue_frame(flow, step));
        assert!(pipeline.batch(&batch(frames, 100)).is_continue());
    }
    let round = |number: u32| {
        let number = number ^ u32::from(is_exchanged);
        let segment = |flow| {
            let client = (CLIENT, 10_000 + flow);
            let mut frame = tcp(client, (SERVER, 443), &[7; SEGMENT_LEN as usize]);
            set_seq(&mut frame, 1 + SEGMENT_LEN * number);
            frame[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&1_u32.to_be_bytes());
            frame
        };
        batch((0..FLOW_COUNT).map(segment), 100)
    };
    // Two rounds in advance, so that one-time allocations are not counted.
    for number in 0..2 {
        assert!(pipeline.batch(&round(number)).is_continue());
    }
    let batches = (2..2 + STREAM_ROUND_COUNT).map(round).collect();
    let frame_count = u64::from(FLOW_COUNT) * u64::from(5 + STREAM_ROUND_COUNT);
    Running { pipeline, batches, frame_count, flow_count: FLOW_COUNT.into() }
}

fn all_delivered(running: Running<Octets>) {
    let segment_count = running.flow_count * u64::from(2 + STREAM_ROUND_COUNT);
    assert_eq!(running.pipeline.sink().0, segment_count * u64::from(SEGMENT_LEN));
    let stats = running.pipeline.stats();
    assert_eq!((stats.frame_count, stats.tracker.packet_count), (running.frame_count, running.frame_count));
}

fn all_tracked(mut running: Running<()>) {
    assert_eq!(running.pipeline.flow_count() as u64, running.flow_count);
    running.pipeline.finish();
    let stats = running.pipeline.stats();
    assert_eq!((stats.frame_count, stats.tracker.packet_count), (running.frame_count, running.frame_count));
}

fn all_counted(running: Running<()>) {
    let stats = running.pipeline.stats().tracker;
    assert_eq!((stats.started_count, stats.packet_count), (2 * running.flow_count, running.frame_count));
}

fn all_recorded(running: Running<Count>) {
    assert_eq!(running.pipeline.flow_count(), 0);
    let Count { record_count, packet_count } = *running.pipeline.sink();
    assert_eq!((record_count, 2 * packet_count), (running.flow_count, running.frame_count));
}

#[library_benchmark]
#[bench::mixed_frames(args = (), setup = mixed_batches, teardown = all_tracked)]
fn batches(mut running: Running<()>) -> Running<()> {
    running.run();
    running
}

/// Counts the vector of CICFlowMeter, the columns of NFStream and features of TCP.
struct Vectors(FeatureSet);

impl Sink for Vectors {
    type State = FlowFeatures;
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, FlowFeatures>, packet: &Packet<'_>) {
        flow.state.count(&self.0, packet);
    }
}

fn mixed_vectors() -> Running<Vectors> {
    let set = "cic,nfstream,tcp".parse().expect("features");
    let Running { batches, frame_count, flow_count, .. } = mixed_batches();
    let mut pipeline = pipeline(Vectors(set));
    for _ in 0..2 {
        assert!(batches.first().is_some_and(|batch| pipeline.batch(batch).is_continue()));
    }
    Running { pipeline, batches, frame_count, flow_count }
}

fn all_in_vectors(running: Running<Vectors>) {
    assert_eq!(running.pipeline.flow_count() as u64, running.flow_count);
    assert_eq!(running.pipeline.stats().frame_count, running.frame_count);
}

#[library_benchmark]
#[bench::mixed_frames(args = (), setup = mixed_vectors, teardown = all_in_vectors)]
fn features(mut running: Running<Vectors>) -> Running<Vectors> {
    running.run();
    running
}

#[library_benchmark]
#[bench::of_20000_frames(args = (), setup = real_batches, teardown = all_counted)]
fn real_mix_to_end(mut running: Running<()>) -> Running<()> {
    running.run();
    running.pipeline.finish();
    running
}

#[library_benchmark]
#[bench::of_connections(args = (), setup = connections, teardown = all_recorded)]
fn records(mut running: Running<Count>) -> Running<Count> {
    running.run();
    running.pipeline.finish();
    running
}

#[library_benchmark(setup = established_streams, teardown = all_delivered)]
#[bench::in_order_100_flows(false)]
#[bench::exchanged_100_flows(true)]
fn streams(mut running: Running<Octets>) -> Running<Octets> {
    running.run();
    running
}

library_benchmark_group!(
    name = pipeline_group,
    benchmarks = [batches, features, real_mix_to_end, records, streams]
);
