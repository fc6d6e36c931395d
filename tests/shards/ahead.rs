//! A pipeline whose packets are extracted on another thread: its results are those of the same pipeline without one.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use flowgauge::base::{Account, EndReason, FrameBatch, Limits, Side};
use flowgauge::decode::extractor::KeyPolicy;
use flowgauge::decode::link::Decapsulation;
use flowgauge::dedup::DedupConfig;
use flowgauge::filter::Filter;
use flowgauge::pipeline::{
    Builder, ChecksumHandling, Error, ErrorPolicy, Flows, FragmentHandling, Pipeline, RunEnd, RunOptions,
    Sink, Summary, TIME_JUMP_MAX,
};
use flowgauge::reassembler::StreamEvent;
use flowgauge::tracker::{Flow, FlowEvent, FlowView};
use flowgauge::{Next, Source as _, StopHandle};

#[path = "../support/fn_source.rs"]
mod fn_source;

use super::runs::BreaksOnce;
use super::runs::scripted::{Kept, Scripted, Step, listed};
use super::sources::{Rebatched, captures};
use super::{Collector, builder};
use fn_source::FnSource;

fn ahead() -> RunOptions {
    RunOptions::default().extract_ahead(true)
}

/// Returns the records, streams, event counts and counters of runs over the same pipeline, without those of the queues.
fn results(builder: &Builder, sources: &mut [Rebatched], options: &RunOptions) -> Vec<String> {
    let mut pipeline = builder.build(Collector::default()).unwrap();
    let mut all = Vec::new();
    for source in sources {
        source.at = 0;
        let mut stats = pipeline.run(source, options).unwrap().stats;
        stats.queues = Default::default();
        all.push(format!("{stats:?}"));
    }
    let Collector { records, streams, event_count } = pipeline.into_sink();
    all.extend(records.iter().map(|record| format!("{record:?}")));
    all.extend(streams.iter().map(|stream| format!("{stream:?}")));
    all.push(event_count.to_string());
    all
}

#[test]
fn all_results_and_their_order_are_the_same_for_all_settings() {
    let policy = |decapsulation| {
        let mut policy = KeyPolicy::default();
        policy.decapsulation = decapsulation;
        policy
    };
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = 5;
    let builders = [
        builder(),
        builder().checksums(ChecksumHandling::Drop),
        builder().dedup(DedupConfig::default()),
        builder().filter(Filter::parse("udp or port 80").unwrap()),
        builder().fragments(FragmentHandling::AsTheyCome).time_check(false),
        builder().key_policy(policy(Decapsulation::Both)).encapsulation(true),
        builder().key_policy(policy(Decapsulation::Outermost)),
        builder().limits(limits),
    ];
    let mut record_count = 0;
    for path in captures() {
        let Some(whole) = Rebatched::new(&path, 1000, 0) else { continue };
        let is_long = whole.frames.len() > 10_000;
        let jittered = Rebatched::new(&path, 37, 50_000_000).unwrap().with_spikes(50);
        let single = Rebatched::new(&path, 1, 0).unwrap();
        let mut sources = if is_long { vec![whole] } else { vec![whole, jittered, single] };
        for (number, builder) in builders.iter().enumerate().take(if is_long { 1 } else { builders.len() }) {
            let expected = results(builder, &mut sources, &RunOptions::default());
            record_count += expected.len();
            let results = results(builder, &mut sources, &ahead());
            assert_eq!(results, expected, "{} with the settings {number}", path.display());
        }
    }
    assert!(record_count > 1000, "{record_count}");
}

/// Which of a source and a pipeline waits for the other.
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// The source returns a batch when the pipeline has processed all earlier ones, and so waits for the next one.
    Source,
    /// The pipeline processes a batch when the source has returned the next three, of which two were sent, so that it
    /// never waits for batches.
    Pipeline,
}

/// The numbers of batches that a source has returned and that a pipeline has processed.
#[derive(Clone, Default)]
struct Turns(Arc<[AtomicU64; 2]>);

impl Turns {
    /// Waits until a number reaches a value.
    fn wait(&self, number: usize, value: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.0[number].load(SeqCst) < value {
            assert!(Instant::now() < deadline, "the other thread makes no progress");
            std::thread::yield_now();
        }
    }
}

struct InTurn {
    collector: Collector,
    turns: Turns,
    waits: Waits,
    batch_count: u64,
}

impl Sink for InTurn {
    type State = <Collector as Sink>::State;
    type Stage = <Collector as Sink>::Stage;

    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        self.collector.record(flow, reason);
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, octets: Self::State) {
        self.collector.ended(view, reason, octets);
    }

    fn event(&mut self, flow: &mut Flow<'_, Self::State>, event: &FlowEvent) {
        self.collector.event(flow, event);
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, Self::State>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        self.collector.stream(flow, side, event)
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        let processed_count = self.turns.0[1].fetch_add(1, SeqCst) + 1;
        if matches!(self.waits, Waits::Pipeline) {
            self.turns.wait(0, (processed_count + 3).min(self.batch_count));
        }
        ControlFlow::Continue(())
    }
}

/// A pipeline that waits for batches extracts them itself, and the other thread extracts those that have to wait.
#[test]
fn the_results_do_not_depend_on_the_thread_that_extracts() {
    const BATCH_LEN: usize = 50;
    for path in captures().into_iter().take(9) {
        let mut whole = Rebatched::new(&path, BATCH_LEN, 0).unwrap().with_spikes(200);
        let expected = results(&builder(), std::slice::from_mut(&mut whole), &RunOptions::default());
        for waits in [Waits::Source, Waits::Pipeline] {
            whole.at = 0;
            let turns = Turns::default();
            let sink = InTurn {
                collector: Collector::default(),
                turns: turns.clone(),
                waits,
                batch_count: whole.frames.len().div_ceil(BATCH_LEN) as u64,
            };
            let mut source = FnSource(|batch: &mut FrameBatch| {
                let returned_count = turns.0[0].load(SeqCst);
                if matches!(waits, Waits::Source) {
                    turns.wait(1, returned_count);
                }
                let next = whole.next_batch(batch);
                turns.0[0].fetch_add(u64::from(!batch.is_empty()), SeqCst);
                next
            });
            let mut pipeline = builder().build(sink).unwrap();
            let mut stats = pipeline.run(&mut source, &ahead()).unwrap().stats;
            stats.queues = Default::default();
            let Collector { records, streams, event_count } = pipeline.into_sink().collector;
            let mut results = vec![format!("{stats:?}")];
            results.extend(records.iter().map(|record| format!("{record:?}")));
            results.extend(streams.iter().map(|stream| format!("{stream:?}")));
            results.push(event_count.to_string());
            assert_eq!(results, expected, "{} while the {waits:?} waits", path.display());
        }
    }
}

/// The pipeline continues with the next source at the time that the time check has reached.
#[test]
fn the_state_of_the_time_check_continues_with_the_next_source() {
    let later = 1 + 3 * TIME_JUMP_MAX.as_millis() as u64;
    let run = |options: &RunOptions| {
        let mut pipeline = Pipeline::builder().build(Kept::default()).unwrap();
        let mut counts = Vec::new();
        for steps in [
            // The last frame is far ahead, and nothing confirms its time.
            vec![Step::Frames(1, vec![1, 2]), Step::Frames(later, vec![3])],
            vec![Step::Frames(2 * later, vec![4]), Step::Frames(2, vec![5]), Step::Frames(later, vec![6])],
        ] {
            let stats = pipeline.run(&mut listed(steps), options).unwrap().stats;
            counts.push(((stats.frame_count, stats.times), stats.doubted_time_count, pipeline.now()));
        }
        (counts, pipeline.into_sink().records)
    };
    let expected = run(&RunOptions::default());
    assert_eq!(expected.0.iter().map(|((frames, _), _, _)| *frames).collect::<Vec<_>>(), [3, 6]);
    assert_eq!(expected.0[1].1, 1);
    assert_eq!(run(&ahead()), expected);
}

fn scripted_run(steps: Vec<Step>, policy: ErrorPolicy) -> (Result<Summary, Error>, Kept) {
    let mut pipeline = Pipeline::builder().build(Kept::default()).unwrap();
    let outcome = pipeline.run(&mut listed(steps), &ahead().error_policy(policy));
    (outcome, pipeline.into_sink())
}

#[test]
fn errors_of_the_source_end_the_run_or_are_collected_with_all_frames_counted() {
    let steps = || {
        vec![
            Step::Frames(1, (1..40).collect()),
            Step::Fails(2, (30..60).collect()),
            Step::Frames(3, (60..70).collect()),
        ]
    };
    let (outcome, sink) = scripted_run(steps(), ErrorPolicy::End);
    assert!(matches!(outcome, Err(Error::Source(_))));
    assert_eq!(sink.ports(), (1..60).collect::<Vec<_>>());
    let (outcome, sink) = scripted_run(steps(), ErrorPolicy::Continue);
    let summary = outcome.unwrap();
    assert_eq!((summary.end, summary.errors.len()), (RunEnd::EndOfInput, 1));
    assert_eq!((sink.ports(), summary.stats.frame_count), ((1..70).collect(), 79));
}

#[test]
fn flows_time_out_while_a_source_is_idle() {
    let steps = vec![
        Step::Frames(1_000_000, vec![1, 2]),
        Step::Idle(1_000_100),
        Step::Frames(1_030_000, vec![3]),
        Step::Idle(1_075_000),
        Step::Frames(1_075_001, vec![1]),
    ];
    let run = |options: &RunOptions| {
        let mut pipeline = Pipeline::builder().build(Kept::default()).unwrap();
        pipeline.run(&mut listed(steps.clone()), options).unwrap();
        let Kept { records, batches_before, batch_count, .. } = pipeline.into_sink();
        (records, batches_before, batch_count)
    };
    let expected = run(&RunOptions::default());
    assert_eq!(expected.0.len(), 4);
    assert_eq!(run(&ahead()), expected);
}

/// Whether the reader has reached an error or the end by then, the run ends as if nothing was read ahead.
#[test]
fn a_sink_that_requests_a_stop_receives_no_further_batch() {
    for step_count in [3, 4, 6, 100_000] {
        let mut number = 0;
        let mut source = Scripted(move || {
            number += 1;
            match number {
                6 => Some(Step::Fails(1, vec![5])),
                _ => (number <= step_count).then(|| Step::Frames(1, vec![number as u16 % 7])),
            }
        });
        let mut pipeline = Pipeline::builder().build(BreaksOnce::<3>::default()).unwrap();
        let summary = pipeline.run(&mut source, &ahead()).unwrap();
        assert_eq!((summary.end, summary.stats.frame_count), (RunEnd::SinkBreak, 3), "{step_count} batches");
        assert_eq!((pipeline.flow_count(), pipeline.sink().batch_count), (0, 3));
    }
}

/// The frame that waits for the next one at that time is processed, and an error of the same batch is returned.
#[test]
fn a_run_that_the_sink_ends_has_the_deferred_frame_and_the_error_of_its_last_batch() {
    let later = 1 + 3 * TIME_JUMP_MAX.as_millis() as u64;
    let frames = |time_ms: u64| Step::Frames(time_ms, vec![1, 2]);
    let scripts = [
        // The third batch ends with a frame far ahead.
        vec![frames(1), frames(2), frames(later), frames(later + 1), frames(later + 2)],
        vec![frames(1), frames(2), frames(later)],
        // The third batch is the one with the error, or the one before it.
        vec![frames(1), frames(2), Step::Fails(3, vec![7]), frames(4)],
        vec![frames(1), frames(2), frames(3), Step::Fails(4, vec![7])],
        vec![frames(1), frames(2), frames(3), Step::Fails(4, vec![])],
        vec![frames(1), frames(2), frames(3)],
    ];
    for (number, steps) in scripts.into_iter().enumerate() {
        let run = |options: RunOptions| {
            let mut pipeline = Pipeline::builder().build(BreaksOnce::<3>::default()).unwrap();
            let outcome = pipeline.run(&mut listed(steps.clone()), &options.error_policy(ErrorPolicy::End));
            let stats = pipeline.stats();
            let end = outcome.map(|summary| summary.end).map_err(|error| error.to_string());
            (end, stats.frame_count, stats.doubted_time_count, stats.tracker, pipeline.now())
        };
        assert_eq!(run(ahead()), run(RunOptions::default()), "script {number}");
    }
}

#[test]
fn a_stop_handle_ends_the_run_and_all_frames_that_were_read_count() {
    let stop = StopHandle::new();
    let (handle, last) = (stop.clone(), Arc::new(AtomicU64::new(0)));
    let noted = Arc::clone(&last);
    let options = ahead().stop(stop).progress(move |progress| {
        noted.store(progress.frame_count, Relaxed);
        if progress.frame_count >= 1000 {
            handle.stop();
        }
    });
    let mut number = 0_u64;
    let mut endless = Scripted(move || {
        number += 1;
        Some(Step::Frames(number / 100, vec![(number % 50_000) as u16 + 1]))
    });
    let mut pipeline = Pipeline::builder().build(Kept::default()).unwrap();
    let summary = pipeline.run(&mut endless, &options).unwrap();
    assert_eq!((summary.end, last.load(Relaxed)), (RunEnd::Stopped, 1000));
    assert_eq!(summary.stats.frame_count, 1000);
    assert_eq!(pipeline.into_sink().ports(), (2..1002).collect::<Vec<_>>());
}

#[test]
fn at_most_four_batches_are_in_flight_and_their_memory_is_charged() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap");
    let mut source = Rebatched::new(&path, 3, 0).unwrap();
    let builder = Pipeline::builder();
    let mut pipeline = builder.build(Kept::default()).unwrap();
    let queues = pipeline.run(&mut source, &ahead()).unwrap().stats.queues;
    assert!((1..=4).contains(&queues.batch_count_max), "{queues:?}");
    assert_eq!(queues.refused_count, 0);
    assert!(queues.held_bytes_max > 0 && builder.budget().held_by(Account::Queues) == 0, "{queues:?}");
}

#[test]
#[should_panic(expected = "on purpose")]
fn a_panic_of_the_sink_ends_the_reader_and_is_propagated() {
    struct Panics;
    impl Sink for Panics {
        type State = ();
        type Stage = Flows;

        fn started(&mut self, _: &mut Flow<'_, ()>) {
            panic!("on purpose");
        }
    }
    let mut endless = Scripted(|| Some(Step::Frames(1, vec![1])));
    let _ = Pipeline::builder().build(Panics).unwrap().run(&mut endless, &ahead());
}

#[test]
#[should_panic(expected = "the source panics")]
fn a_panic_of_the_source_is_propagated() {
    let mut source = FnSource(|_: &mut FrameBatch| -> Result<Next, flowgauge::source::Error> {
        panic!("the source panics")
    });
    let _ = Pipeline::builder().build(()).unwrap().run(&mut source, &ahead());
}
