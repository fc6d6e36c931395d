//! Batches of frames through all layers.

use std::net::Ipv4Addr;

use flowgauge::base::{Frame, FrameBatch, Timestamp};
use flowgauge::pipeline::{Pipeline, Records};
use flowgauge::tracker::TrackerConfig;
use gungraun::prelude::*;

use crate::SEEDS;
use crate::support::{CLIENT, SERVER, TCP_FLAGS, TCP_SEQ, in_ipv6, set_seq, tcp, udp};

const FLOW_COUNT: u16 = 100;

/// A pipeline, and batches about to come.
struct Running {
    pipeline: Pipeline<()>,
    batches: Vec<FrameBatch>,
    frame_count: u64,
    flow_count: u64,
}

/// The kinds of a frame in turn: TCP, UDP, IPv6, with a VLAN tag, in VXLAN.
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

fn pipeline() -> Pipeline<()> {
    let mut config = TrackerConfig::default();
    config.seeds = Some(SEEDS);
    Pipeline::new(config).expect("a valid configuration")
}

fn mixed_batches() -> Running {
    let round = |number: u32| batch((0..FLOW_COUNT).map(|flow| mixed(flow, 1000 + 100 * number)), 100);
    let mut pipeline = pipeline();
    (0..2).for_each(|number| pipeline.batch(&round(number), &mut ()));
    let batches: Vec<_> = (2..12).map(round).collect();
    let frame_count = 12 * u64::from(FLOW_COUNT);
    Running { pipeline, batches, frame_count, flow_count: FLOW_COUNT.into() }
}

/// From the client or not, control bits, payload length, and numbers that fit.
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

/// Whole connections, all open at once, after as many that have ended.
fn connections() -> Running {
    let all = |second: u64| {
        (0..DIALOGUE.len())
            .map(move |step| batch((0..FLOW_COUNT).map(|flow| dialogue_frame(flow, step)), second))
    };
    let mut pipeline = pipeline();
    all(100).for_each(|batch| pipeline.batch(&batch, &mut ()));
    pipeline.finish(&mut ());
    let frame_count = 2 * u64::from(FLOW_COUNT) * DIALOGUE.len() as u64;
    Running { pipeline, batches: all(200).collect(), frame_count, flow_count: FLOW_COUNT.into() }
}

fn all_tracked(mut running: Running) {
    assert_eq!(running.pipeline.tracker().len() as u64, running.flow_count);
    running.pipeline.finish(&mut ());
    let stats = running.pipeline.stats();
    assert_eq!((stats.frame_count, stats.tracker.packet_count), (running.frame_count, running.frame_count));
}

fn all_recorded((running, record_count, packet_count): (Running, u64, u64)) {
    assert!(running.pipeline.tracker().is_empty());
    assert_eq!((record_count, 2 * packet_count), (running.flow_count, running.frame_count));
}

#[library_benchmark]
#[bench::mixed_frames(args = (), setup = mixed_batches, teardown = all_tracked)]
fn batches(mut running: Running) -> Running {
    for batch in &running.batches {
        running.pipeline.batch(batch, &mut ());
    }
    running
}

#[library_benchmark]
#[bench::of_connections(args = (), setup = connections, teardown = all_recorded)]
fn records(mut running: Running) -> (Running, u64, u64) {
    let (mut record_count, mut packet_count) = (0, 0);
    let mut sink = Records::new(|record| {
        record_count += 1;
        packet_count += record.packet_count();
    });
    for batch in &running.batches {
        running.pipeline.batch(batch, &mut sink);
    }
    running.pipeline.finish(&mut sink);
    (running, record_count, packet_count)
}

library_benchmark_group!(name = pipeline_group, benchmarks = [batches, records]);
