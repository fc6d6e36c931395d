//! The frames of a script one by one, in batches of a random length, and with two shards: records, messages and counts
//! do not depend on the division.

use flowgauge::base::FrameBatch;
use flowgauge::pipeline::{Pipeline, PipelineStats};
use flowgauge::reassembler::GapReason;
use flowgauge::source::{End, Error, Interface, Next, Source, SourceStats, Warning};

use super::compare::assert_same;
use super::frames::Captured;
use super::input::structured;
use super::observer::{Observer, Observing, SessionObserver, StreamObserver};
use super::rig::Setup;
use super::script::{Script, frames};

/// A source of frames in memory, in batches of a given length.
struct Frames<'a> {
    rest: &'a [Captured],
    batch_len: usize,
}

impl Source for Frames<'_> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let (now, rest) = self.rest.split_at(self.batch_len.min(self.rest.len()));
        now.iter().for_each(|captured| batch.push(&captured.frame()));
        self.rest = rest;
        Ok(if batch.is_empty() { Next::End(End::Complete) } else { Next::Frames })
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn stats(&self) -> SourceStats {
        SourceStats::default()
    }

    fn interfaces(&self) -> &[Interface] {
        &[]
    }

    fn progress(&self) -> u64 {
        0
    }
}

/// Sorted reports of a run.
struct Report {
    flows: Vec<(String, Vec<String>)>,
    lines: Vec<String>,
    stats: PipelineStats,
}

fn report<K: Observing>(stats: PipelineStats, sinks: Vec<K>) -> Report {
    let mut stats = stats;
    // Cache hits and peaks depend on the division.
    stats.tracker.hot_hit_count = 0;
    stats.tracker.open_count_max = 0;
    stats.streams.held_bytes_max = 0;
    stats.sessions.peak_bytes = 0;
    stats.queues = Default::default();
    let ended = sinks.into_iter().flat_map(|mut sink| std::mem::take(&mut sink.observer_mut().ended));
    let mut flows: Vec<_> = ended.map(|(record, lines)| (format!("{record:?}"), lines)).collect();
    flows.sort();
    Report { flows, lines: format!("{stats:#?}").lines().map(str::to_owned).collect(), stats }
}

/// Runs one pipeline with frames one by one, or in batches of a given length.
fn in_one_pipeline<K: Observing>(
    mut pipeline: Pipeline<K>,
    frames: &[Captured],
    batch_len: Option<usize>,
) -> (PipelineStats, Vec<K>) {
    match batch_len {
        None => frames.iter().for_each(|captured| pipeline.frame(&captured.frame())),
        Some(batch_len) => {
            let mut source = Frames { rest: frames, batch_len };
            let mut batch = FrameBatch::new();
            while !source.next_batch(&mut batch).expect("reading from memory succeeds").is_end() {
                assert!(pipeline.batch(&batch).is_continue());
            }
        }
    }
    pipeline.finish();
    (pipeline.stats(), vec![pipeline.into_sink()])
}

fn run_streams(setup: &Setup, frames: &[Captured], batch_len: Option<usize>) -> Report {
    let budget = setup.budget();
    let pipeline = setup
        .stream_pipeline(&budget, StreamObserver(Observer::with_reports()))
        .expect("a sufficient budget");
    let (stats, sinks) = in_one_pipeline(pipeline, frames, batch_len);
    assert_eq!(budget.held(), 0);
    report(stats, sinks)
}

fn run_sessions(setup: &Setup, frames: &[Captured], batch_len: Option<usize>) -> Report {
    let budget = setup.budget();
    let pipeline = setup
        .session_pipeline(&budget, SessionObserver(Observer::with_reports()))
        .expect("a sufficient budget");
    let (stats, sinks) = in_one_pipeline(pipeline, frames, batch_len);
    assert_eq!(budget.held(), 0);
    report(without_streams(stats), sinks)
}

/// Removes the counts of the reassembler. Sessions stop directions; whether the segment that stops its direction is
/// counted depends on the call in which an earlier hole became due.
fn without_streams(stats: PipelineStats) -> PipelineStats {
    let mut stats = stats;
    stats.streams = Default::default();
    stats
}

fn in_shards(setup: &Setup, frames: &[Captured], batch_len: usize) -> Report {
    let budget = setup.budget();
    let mut sinks = [SessionObserver(Observer::with_reports()), SessionObserver(Observer::with_reports())];
    let stats = setup.run_shards(&budget, &mut Frames { rest: frames, batch_len }, &mut sinks);
    assert_eq!(budget.held(), 0);
    report(without_streams(stats), sinks.into())
}

fn check_same(one: &Report, other: &Report, what: &str) {
    assert_same(&one.flows, &other.flows, &format!("flows one by one, and {what},"));
    assert_same(&one.lines, &other.lines, &format!("counts one by one, and {what},"));
}

/// Whether the order of two directions with holes that are due at different times is independent of the call in which
/// they become due: a sweep, the next packet of the flow, or its end.
const IS_ORDERED: bool = false;

/// Returns whether a hole ended because of its time limit.
fn has_due_holes(stats: &PipelineStats) -> bool {
    let count = |reason| stats.streams.gap_count(reason);
    count(GapReason::Acknowledged) + count(GapReason::Deadline) > 0
}

pub fn run(data: &[u8]) {
    let Some(script) = structured::<Script<'_>>(data) else { return };
    let setup = script.setup.with_ample_limits().shardable();
    let frames = frames(&script.steps);
    let batch_len = usize::from(setup.spare >> 1) + 1;
    let one = run_streams(&setup, &frames, None);
    let is_compared = IS_ORDERED || !has_due_holes(&one.stats);
    if is_compared {
        check_same(&one, &run_streams(&setup, &frames, Some(batch_len)), "in batches with streams");
    }
    let one = run_sessions(&setup, &frames, None);
    let (batches, shards) =
        (run_sessions(&setup, &frames, Some(batch_len)), in_shards(&setup, &frames, batch_len));
    if is_compared {
        check_same(&one, &batches, "in batches with sessions");
        check_same(&one, &shards, "in two shards");
    }
}
