//! A filter changes no record: the records of a run with a filter are those of a run without one that the filter
//! selects. Packets that the filter drops advance the clock, and count as errors of the flows that they quote.

#[path = "../support/captures.rs"]
mod captures;

use std::time::Duration;

use etherparse::PacketBuilder;
use flowgauge::{
    Builder, FileSource, Filter, FlowRecord, Frame, FrameBatch, Next, Pipeline, Records, Source, Timestamp,
};
use proptest::prelude::*;

/// Filters on properties that both directions of a flow share.
const FILTERS: [&str; 7] = [
    "tcp",
    "udp",
    "icmp or icmp6",
    "port 80",
    "host 10.0.0.1",
    "not tcp and not port 53",
    "tcp and net 10.0.0.2/31",
];

type Step = (u8, u8, bool, u8, u64);

/// Returns a frame of a few flows: segments of handshakes, datagrams, and errors that quote them.
fn frame((flow, kind, is_reply, _, _): Step) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, flow % 3 + 1], [10, 0, 0, 9]);
    let (from, to) = if is_reply { (server, client) } else { (client, server) };
    let ports = [40_000, if flow % 2 == 0 { 80 } else { 53 }];
    let (source, target) = if is_reply { (ports[1], ports[0]) } else { (ports[0], ports[1]) };
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from, to, 64);
    let mut bytes = Vec::new();
    match kind {
        0 => ip.tcp(source, target, 1000, 500).syn().write(&mut bytes, &[]),
        1 => ip.tcp(source, target, 1000, 500).syn().ack(1001).write(&mut bytes, &[]),
        2 | 3 => ip.tcp(source, target, 1001, 500).ack(1001).write(&mut bytes, &[]),
        4 => ip.tcp(source, target, 1001, 500).fin().ack(1001).write(&mut bytes, &[]),
        5 | 6 => ip.udp(source, target).write(&mut bytes, b"text"),
        _ => {
            let mut quoted = frame((flow, [0, 5][usize::from(kind % 2)], !is_reply, 0, 0));
            quoted.drain(..14);
            ip.icmpv4_raw(3, 1, [0; 4]).write(&mut bytes, &quoted)
        }
    }
    .expect("a frame");
    bytes
}

/// Returns the time in milliseconds to the next frame, and by how much the frame is late.
fn times((_, _, _, time, odd): Step) -> (u64, u64) {
    match time {
        0..8 => (odd % 1000, 0),
        8..10 => (odd % 20_000, 0),
        10 => (70_000, 0),
        11 => (0, odd % 4000),
        _ => (0, 4000 + odd % 90_000),
    }
}

/// Returns the records of batches of frames, sorted by flow and time.
fn records(builder: &Builder, batches: &[FrameBatch]) -> Vec<FlowRecord> {
    let mut records = Vec::new();
    let mut pipeline = builder.build(Records::new(|record| records.push(record))).expect("a pipeline");
    for batch in batches {
        let _ = pipeline.batch(batch);
    }
    pipeline.finish();
    drop(pipeline);
    records.sort_by_key(|record| (record.key, record.start, record.sequence_number));
    records
}

/// Compares the records with each filter to those without one.
fn check_filters(builder: &Builder, batches: &[FrameBatch]) -> Result<usize, TestCaseError> {
    let all = records(builder, batches);
    for expression in FILTERS {
        let filter: Filter = expression.parse().expect("a filter");
        let found = records(&builder.clone().filter(filter.clone()), batches);
        let expected: Vec<_> = all.iter().filter(|record| filter.may_match(&record.key)).cloned().collect();
        prop_assert_eq!(found.len(), expected.len(), "{}", expression);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found, expected, "{}", expression);
        }
    }
    Ok(all.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_packets_have_the_same_records(
        steps in prop::collection::vec((0..6_u8, 0..9_u8, any::<bool>(), 0..14_u8, any::<u64>()), 1..80),
        active in prop_oneof![Just(None), Just(Some(10)), Just(Some(100))],
        batch_len in 1..50_usize,
    ) {
        let mut now_ms = 1_700_000_000_000;
        let frames = steps.iter().map(|step| {
            let (passed_ms, late_ms) = times(*step);
            now_ms += passed_ms;
            (Timestamp::from_nanos((now_ms - late_ms) * 1_000_000), frame(*step))
        });
        let frames: Vec<_> = frames.collect();
        let batches: Vec<_> = frames.chunks(batch_len).map(|frames| {
            let mut batch = FrameBatch::new();
            frames.iter().for_each(|(time, bytes)| { batch.push(&Frame::ethernet(*time, bytes)); });
            batch
        }).collect();
        let mut builder = Pipeline::builder();
        if let Some(active) = active {
            builder = builder.active_timeout(Duration::from_secs(active));
        }
        check_filters(&builder, &batches)?;
    }
}

#[test]
fn captures_have_the_same_records() {
    let mut record_count = 0;
    for path in captures::captures() {
        let Ok(mut source) = FileSource::open(&path) else { continue };
        let mut batches = Vec::new();
        let mut batch = FrameBatch::new();
        while matches!(source.next_batch(&mut batch), Ok(Next::Frames)) {
            batches.push(std::mem::take(&mut batch));
        }
        let builder = Pipeline::builder().active_timeout(Duration::from_secs(5));
        record_count +=
            check_filters(&builder, &batches).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert!(record_count > 100, "{record_count} records");
}
