//! A capture that is divided by a checkpoint has the records of one pass.
//!
//! Captures of up to 200 frames are divided at every frame, others at 20 random ones. With `FLOWGAUGE_CORPUS`, the captures
//! of the corpus are divided too.
#![cfg(all(feature = "protocols", feature = "serde"))]

#[path = "../support/captures.rs"]
mod captures;
mod damage;
#[path = "../support/parallel.rs"]
mod parallel;
mod state;
mod transactions;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::checkpoint::{Reader, Writer};
use flowgauge::pipeline::Unsaved;
use flowgauge::tracker::Timeouts;
use flowgauge::{
    Builder, Decapsulation, FileSource, FlowRecord, Flows, KeyPolicy, Next, Pipeline, Records, Sessions,
    Sink, Source, Stage, Standard, Streams, TrackerConfig,
};
use serde_json::Value;

/// Number of frames up to which a capture is divided at every frame.
const EVERY_FRAME_MAX: usize = 200;

/// Number of random divisions of a longer capture.
const RANDOM_COUNT: usize = 20;

/// Maximum number of frames of a capture that are used.
const FRAME_COUNT_MAX: usize = 20_000;

/// Returns the frames of a capture, up to an error of the file.
fn frames(path: &Path) -> FrameBatch {
    let (mut frames, mut batch) = (FrameBatch::new(), FrameBatch::new());
    let Ok(mut source) = FileSource::open(path) else { return frames };
    while matches!(source.next_batch(&mut batch), Ok(Next::Frames)) && frames.len() < FRAME_COUNT_MAX {
        batch.iter().for_each(|frame| frames.push(&frame));
    }
    frames
}

/// Returns the positions at which a capture is divided.
fn divisions(frame_count: usize) -> Vec<usize> {
    if frame_count <= EVERY_FRAME_MAX {
        return (0..=frame_count).collect();
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ frame_count as u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % (frame_count + 1)
    };
    let mut divisions: Vec<_> = (0..RANDOM_COUNT).map(|_| next()).collect();
    divisions.sort_unstable();
    divisions
}

fn collect<G: Stage>(records: &mut Vec<FlowRecord>) -> impl Sink<State = (), Stage = G> {
    Records::new(|record| records.push(record)).with_stage::<G>()
}

fn feed<'a, K: Sink>(pipeline: &mut Pipeline<K>, frames: impl Iterator<Item = Frame<'a>>) {
    frames.for_each(|frame| pipeline.frame(&frame));
}

/// Calls `compare` with the records of one pass, and those of a run with a checkpoint, for each division of a capture.
fn divide<G: Stage>(
    builder: &Builder,
    frames: &FrameBatch,
    mut compare: impl FnMut(&Unsaved, &[FlowRecord], &[FlowRecord]),
) {
    let mut whole = Vec::new();
    let mut pipeline = builder.build(collect::<G>(&mut whole)).unwrap();
    feed(&mut pipeline, frames.iter());
    pipeline.finish();
    drop(pipeline);
    let (first, mut fed, mut files) = (RefCell::new(Vec::new()), 0, Vec::new());
    let sink = Records::new(|record| first.borrow_mut().push(record)).with_stage::<G>();
    let mut pipeline = builder.build(sink).unwrap();
    for division in divisions(frames.len()) {
        feed(&mut pipeline, (fed..division).filter_map(|place| frames.get(place)));
        fed = division;
        let mut writer = Writer::new(Vec::new()).unwrap();
        pipeline.checkpoint(&mut writer).unwrap();
        files.push((division, first.borrow().len(), writer.finish().unwrap()));
    }
    drop(pipeline);
    for (division, first_count, file) in files {
        let mut divided: Vec<_> = first.borrow().iter().take(first_count).cloned().collect();
        let mut pipeline =
            builder.restore(&mut Reader::new(&file[..]).unwrap(), collect::<G>(&mut divided)).unwrap();
        pipeline.check_invariants();
        feed(&mut pipeline, (division..frames.len()).filter_map(|place| frames.get(place)));
        pipeline.finish();
        pipeline.check_invariants();
        let unsaved = pipeline.stats().unsaved;
        drop(pipeline);
        compare(&unsaved, &whole, &divided);
    }
}

/// Adds the columns in which two lists of records differ.
fn differences(whole: &[FlowRecord], divided: &[FlowRecord], columns: &mut BTreeMap<String, usize>) {
    if whole.len() != divided.len() {
        *columns.entry("number of records".to_owned()).or_default() += 1;
        return;
    }
    for (whole, divided) in whole.iter().zip(divided).filter(|(whole, divided)| whole != divided) {
        let [whole, divided] = [whole, divided].map(|record| serde_json::to_value(record).unwrap());
        let (Value::Object(whole), Value::Object(divided)) = (whole, divided) else { panic!("objects") };
        let names: std::collections::BTreeSet<_> = whole.keys().chain(divided.keys()).collect();
        for name in names {
            if whole.get(name) != divided.get(name) {
                *columns.entry(name.clone()).or_default() += 1;
            }
        }
    }
}

/// Divides all captures, and checks that a run with a checkpoint has the records of one pass, unless fragments of a
/// datagram waited for others.
fn compare_captures<G: Stage>(builder: &Builder) {
    let (mut equal_count, mut unsaved_count, mut columns) = (0, 0, BTreeMap::new());
    for path in captures::captures() {
        divide::<G>(builder, &frames(&path), |unsaved, whole, divided| {
            if unsaved.datagram_count > 0 {
                unsaved_count += 1;
                differences(whole, divided, &mut columns);
                return;
            }
            equal_count += 1;
            let mut own = BTreeMap::new();
            differences(whole, divided, &mut own);
            assert_eq!(own, BTreeMap::new(), "{}", path.display());
        });
    }
    assert!(equal_count > 300);
    println!("{equal_count} divisions, and {unsaved_count} within a datagram: {columns:?}");
}

#[test]
fn flows_continue_with_the_records_of_one_pass() {
    compare_captures::<Flows>(&Pipeline::builder());
}

#[test]
fn flows_of_streams_continue_with_the_records_of_one_pass() {
    compare_captures::<Streams>(&Pipeline::builder());
}

#[test]
fn flows_of_sessions_continue_with_the_records_of_one_pass() {
    compare_captures::<Sessions<Standard>>(&Pipeline::builder());
}

#[test]
fn records_of_active_timeouts_and_tunnels_continue() {
    let policy = KeyPolicy::default().decapsulation(Decapsulation::Both);
    let timeouts = Timeouts::default().linger(Duration::ZERO);
    let tracker = TrackerConfig::default()
        .timeouts(timeouts)
        .active_timeout(Duration::from_millis(100))
        .key_policy(policy);
    compare_captures::<Flows>(&Pipeline::builder().tracker(tracker).encapsulation(true));
}

#[test]
fn flows_are_evicted_in_the_order_of_one_pass() {
    compare_captures::<Flows>(&Pipeline::builder().limit(|limits| limits.flow_count_max = 8));
}
