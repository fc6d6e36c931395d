//! Sources that receive from the network: mirror sessions and captures over TCP, all on loopback.

#[path = "../support/captures.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod captures;
mod mirror;
mod stream;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flowgauge::base::FrameBatch;
use flowgauge::source::Source;
use flowgauge::{FlowRecord, Frame, Pipeline, Records};

/// A frame with its own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedFrame {
    data: Vec<u8>,
    wire_len: u32,
    interface: u32,
    timestamp: u64,
}

fn owned(frame: &Frame<'_>) -> OwnedFrame {
    let (data, timestamp) = (frame.data.to_vec(), frame.timestamp.as_nanos());
    OwnedFrame { data, wire_len: frame.wire_len, interface: frame.interface, timestamp }
}

/// Reads a source until `is_done` accepts the frames so far, at most a minute.
fn read_until(
    source: &mut impl Source,
    mut is_done: impl FnMut(&[OwnedFrame], &mut dyn Source) -> bool,
) -> Vec<OwnedFrame> {
    let mut batch = FrameBatch::new();
    let mut frames = Vec::new();
    let start = Instant::now();
    while !is_done(&frames, source) {
        assert!(start.elapsed() < Duration::from_secs(60), "{} frames, {:?}", frames.len(), source.stats());
        assert!(!source.next_batch(&mut batch).unwrap().is_end());
        frames.extend(batch.iter().map(|frame| owned(&frame)));
    }
    frames
}

/// Reads all frames of a capture of this repository.
fn frames_of(name: &str) -> Vec<OwnedFrame> {
    let mut source = flowgauge::FileSource::open(captures::root().join("examples/data").join(name)).unwrap();
    let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
    while !source.next_batch(&mut batch).unwrap().is_end() {
        frames.extend(batch.iter().map(|frame| owned(&frame)));
    }
    frames
}

/// Number of records and their packets and octets, by Flow Key, of Ethernet frames in their order.
fn totals(frames: &[OwnedFrame]) -> BTreeMap<String, (usize, u64, u64)> {
    let mut totals = BTreeMap::new();
    let sink = Records::new(|record: FlowRecord| {
        let entry: &mut (usize, u64, u64) = totals.entry(record.key.to_string()).or_default();
        *entry = (entry.0 + 1, entry.1 + record.packet_count(), entry.2 + record.octet_count());
    });
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    // Equal times, because those of the kernel differ from those of the capture.
    for frame in frames {
        let mut frame = Frame::ethernet(flowgauge::Timestamp::from_parts(1, 0), &frame.data);
        frame.interface = 0;
        pipeline.frame(&frame);
    }
    pipeline.finish();
    drop(pipeline);
    totals
}
