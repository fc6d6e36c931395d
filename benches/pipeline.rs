//! Processing of a capture file into flow records on one core: reading, extraction, tracking, and records.

mod cases;
#[path = "cases/per_item.rs"]
mod per_item;

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use cases::session::Count;
use cases::sinks::Octets;
use cases::traffic::{DIALOGUE, interleave, real_mix, segment};
use cases::{CLIENT, SERVER, tcp, udp};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Frame, FrameBatch, Timestamp};
use flowgauge::decode::link::Decapsulation;
use flowgauge::{FileSource, KeyPolicy, Pipeline, Records, RunOptions, Sink};
use per_item::PerItem as _;

/// A capture file and the numbers of its flows, frames and octets.
struct Capture {
    path: PathBuf,
    flow_count: usize,
    frame_count: u64,
    octet_count: u64,
}

/// A classic pcap file of complete connections in random order. `open_count` connections are open at a time.
fn capture(flow_count: usize, open_count: usize, server_port: u16) -> Capture {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
        bytes.extend(word.to_le_bytes());
    }
    let (mut frame_count, mut octet_count) = (0, 0);
    interleave(
        flow_count,
        open_count,
        |_| DIALOGUE.len(),
        |flow, step| {
            let frame = segment(flow, DIALOGUE[step], server_port);
            let micros = frame_count * 3;
            for word in [1_700_000_000 + (micros / 1_000_000) as u32, (micros % 1_000_000) as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend((frame.len() as u32).to_le_bytes());
            bytes.extend((frame.len() as u32).to_le_bytes());
            frame_count += 1;
            octet_count += frame.len() as u64;
            bytes.extend(frame);
        },
    );
    let path = env::temp_dir()
        .join(format!("flowgauge-bench-{}-{server_port}-{flow_count}-{open_count}.pcap", std::process::id()));
    fs::write(&path, bytes).expect("the temporary folder can be written");
    Capture { path, flow_count, frame_count, octet_count }
}

/// Numbers of records, packets and octets of a capture.
fn run(capture: &Capture) -> (usize, u64, u64) {
    let mut source = FileSource::open(&capture.path).expect("the capture can be read");
    let (mut record_count, mut packet_count, mut octet_count) = (0, 0, 0);
    let sink = Records::new(|record| {
        record_count += 1;
        packet_count += record.packet_count();
        octet_count += record.octet_count();
    });
    let mut pipeline = Pipeline::builder().build(sink).expect("a valid configuration");
    pipeline.run(&mut source, &RunOptions::default()).expect("the capture can be read");
    drop(pipeline);
    (record_count, packet_count, octet_count)
}

fn file_to_records(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pipeline");
    group.sample_size(20);
    for (id, flow_count, open_count) in
        [("file_to_records/100_open", 20_000, 100), ("file_to_records/20000_open", 20_000, 20_000)]
    {
        let capture = capture(flow_count, open_count, 443);
        assert_eq!(run(&capture), (capture.flow_count, capture.frame_count, capture.octet_count));
        group.throughput(Throughput::Elements(1));
        group.bench_function(id, |bencher| bencher.iter_items(capture.frame_count, || run(&capture)));
        fs::remove_file(&capture.path).expect("the capture can be removed");
    }
    group.finish();
}

/// Reads a capture through all layers and returns the sink.
fn read<K: Sink>(capture: &Capture, sink: K) -> K {
    let mut source = FileSource::open(&capture.path).expect("the capture can be read");
    let mut pipeline = Pipeline::builder().build(sink).expect("a valid configuration");
    pipeline.run(&mut source, &RunOptions::default()).expect("the capture can be read");
    pipeline.into_sink()
}

/// Processing of a capture file into streams, and with a parser without state.
fn stages(criterion: &mut Criterion) {
    const FLOW_COUNT: usize = 20_000;
    let payload_len: usize = DIALOGUE.iter().map(|(_, _, payload_len, ..)| payload_len).sum();
    let octet_count = (FLOW_COUNT * payload_len) as u64;
    for open_count in [100, FLOW_COUNT] {
        let capture = capture(FLOW_COUNT, open_count, 80);
        assert_eq!(read(&capture, Octets::default()).0, octet_count);
        assert_eq!(read(&capture, Count::default()).octet_count(), octet_count);
        let mut group = criterion.benchmark_group("pipeline");
        group.sample_size(20).throughput(Throughput::Elements(1));
        group.bench_function(format!("streams/{open_count}_open"), |bencher| {
            bencher.iter_items(capture.frame_count, || read(&capture, Octets::default()));
        });
        group.bench_function(format!("sessions/{open_count}_open"), |bencher| {
            bencher.iter_items(capture.frame_count, || read(&capture, Count::default()));
        });
        group.finish();
        fs::remove_file(&capture.path).expect("the capture can be removed");
    }
}

/// Segments of a hundred known flows in VXLAN: alone, with their outer headers recorded, and with flows of both levels.
fn tunnels(criterion: &mut Criterion) {
    let mut batch = FrameBatch::new();
    for port in 10_000..10_100 {
        let inner = tcp((Ipv4Addr::new(10, 1, 1, 1), port), (SERVER, 443), &[0; 100]);
        let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
        let data = udp((CLIENT, port), (SERVER, 4789), &payload);
        batch.push(&Frame::ethernet(Timestamp::from_parts(1_700_000_000, 0), &data));
    }
    let mut group = criterion.benchmark_group("pipeline/vxlan");
    let frame_count = batch.iter().len() as u64;
    group.throughput(Throughput::Elements(1));
    for (id, decapsulation, records_encapsulation) in [
        ("innermost", Decapsulation::Innermost, false),
        ("outermost", Decapsulation::Outermost, false),
        ("innermost_noted", Decapsulation::Innermost, true),
        ("both", Decapsulation::Both, false),
        ("both_noted", Decapsulation::Both, true),
    ] {
        let mut policy = KeyPolicy::DEFAULT;
        policy.decapsulation = decapsulation;
        let builder = Pipeline::builder().key_policy(policy).encapsulation(records_encapsulation);
        let mut pipeline = builder.build(()).expect("a valid configuration");
        assert!(pipeline.batch(&batch).is_continue());
        let level_count = if decapsulation == Decapsulation::Both { 2 } else { 1 };
        assert_eq!(pipeline.flow_count(), 100 * level_count);
        group.bench_function(id, |bencher| bencher.iter_items(frame_count, || pipeline.batch(&batch)));
    }
    group.finish();
}

/// Frames of all kinds that captures contain, in their shares and in flows of all lengths, without reading a file.
fn mix(criterion: &mut Criterion) {
    let mix = real_mix(200_000);
    let run = |mut pipeline: Pipeline<()>| {
        for batch in &mix.batches {
            assert!(pipeline.batch(batch).is_continue());
        }
        pipeline.finish();
        pipeline
    };
    let build = || Pipeline::builder().build(()).expect("a valid configuration");
    let stats = run(build()).stats();
    assert_eq!(stats.frame_count, mix.frame_count);
    assert_eq!((stats.tracker.packet_count, stats.tracker.started_count), (mix.packet_count, mix.flow_count));
    let mut group = criterion.benchmark_group("pipeline");
    group.sample_size(20).throughput(Throughput::Elements(1));
    group.bench_function("real_mix", |bencher| bencher.iter_items_with(mix.frame_count, build, run));
    group.finish();
}

criterion_group!(benches, file_to_records, stages, tunnels, mix);
criterion_main!(benches);
