//! The end of a run of one pipeline, at the end of its source, with an error, or by a stop handle; and the options of a
//! run.

#[path = "runner/ends.rs"]
mod ends;
#[cfg(unix)]
#[path = "runner/pipes.rs"]
mod pipes;
#[path = "support/scripted.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod scripted;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowgauge::source::End;
use flowgauge::{
    EndReason, Error, ErrorPolicy, FileSource, Files, Flows, Frame, FrameBatch, Next, Pipeline, Records,
    RunEnd, RunOptions, RunProgress, Sink, Source, StopHandle, Timestamp,
};

use scripted::{Kept, Scripted, Step, at, listed};

fn pipeline() -> Pipeline<Kept> {
    Pipeline::builder().build(Kept::default()).expect("the default settings are valid")
}

#[test]
fn a_sink_keeps_what_it_received_when_the_source_fails() {
    let mut pipeline = pipeline();
    let steps = [Step::Frames(1, vec![1, 2]), Step::Fails(2, vec![2, 3]), Step::Frames(3, vec![4])];
    let error = pipeline.run(&mut listed(steps), &RunOptions::default()).expect_err("the source fails");
    assert!(matches!(error, Error::Source(_)), "{error}");
    assert!(error.to_string().contains("injected"), "{error}");
    // The frames before the error are processed, and all flows have ended.
    assert_eq!(pipeline.flow_count(), 0);
    let forced = EndReason::ForcedEnd;
    assert_eq!(pipeline.sink().records, [(1, 1, forced), (2, 2, forced), (3, 1, forced)]);
    assert_eq!((pipeline.sink().ended_count, pipeline.stats().frame_count), (3, 4));
}

#[test]
fn errors_are_collected_and_the_run_goes_on() {
    let mut pipeline = pipeline();
    let steps =
        [Step::Frames(1, vec![1]), Step::Fails(2, vec![2]), Step::Fails(3, vec![]), Step::Frames(4, vec![1])];
    let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
    let summary = pipeline.run(&mut listed(steps), &options).expect("errors do not end the run");
    assert_eq!((summary.end, summary.errors.len()), (RunEnd::EndOfInput, 2));
    assert!(summary.errors.iter().all(|error| error.to_string().contains("injected")));
    assert_eq!((pipeline.sink().ports(), summary.stats.frame_count), (vec![1, 2], 3));
}

#[test]
fn a_source_that_always_fails_ends_the_run() {
    let mut pipeline = pipeline();
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let mut source = Scripted(move || {
        calls.fetch_add(1, Relaxed);
        Some(Step::Fails(1, vec![7]))
    });
    let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
    let error = pipeline.run(&mut source, &options).expect_err("too many errors");
    assert!(matches!(error, Error::Source(_)), "{error}");
    // The frames that came with each error are processed.
    assert_eq!((count.load(Relaxed), pipeline.sink().records.len()), (65_537, 1));
    assert_eq!(pipeline.stats().frame_count, 65_537);
}

#[test]
fn deleted_files_do_not_end_a_run() {
    let folder = std::env::temp_dir().join(format!("flowgauge-runner-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let names = ["dns.pcap", "mail.pcap", "web.pcap"];
    let paths = names.map(|name| folder.join(name));
    for (name, path) in names.iter().zip(&paths) {
        std::fs::copy(data.join(name), path).unwrap();
    }
    let mut source = Files::open(&paths).unwrap();
    // The file was inspected, and is opened again when its first frame is due.
    std::fs::remove_file(&paths[1]).unwrap();
    let mut pipeline = pipeline();
    let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
    let summary = pipeline.run(&mut source, &options).expect("the others are read");
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!((summary.end, summary.errors.len()), (RunEnd::EndOfInput, 1));
    assert!(summary.errors[0].to_string().contains("mail.pcap"), "{}", summary.errors[0]);
    let counted = |name: &str| {
        let mut source = FileSource::open(data.join(name)).unwrap();
        let mut pipeline = Pipeline::builder().build(()).unwrap();
        pipeline.run(&mut source, &RunOptions::default()).unwrap().stats.frame_count
    };
    assert_eq!(summary.stats.frame_count, counted("dns.pcap") + counted("web.pcap"));
}

/// Returns a source without an end; each batch is a frame of a new flow.
fn endless() -> Scripted<impl FnMut() -> Option<Step> + Send> {
    let mut number = 0_u64;
    Scripted(move || {
        number += 1;
        Some(Step::Frames(number / 100, vec![(number % 50_000) as u16 + 1]))
    })
}

#[test]
fn a_stop_handle_ends_a_run_with_all_open_flows_recorded() {
    let stop = StopHandle::new();
    let mut pipeline = pipeline();
    let handle = stop.clone();
    let options = RunOptions::default().stop(stop.clone()).progress(move |progress| {
        if progress.frame_count == 1000 {
            handle.stop();
        }
    });
    let summary = pipeline.run(&mut endless(), &options).unwrap();
    assert_eq!((summary.end, summary.stats.frame_count), (RunEnd::Stopped, 1000));
    assert_eq!((pipeline.flow_count(), pipeline.sink().records.len()), (0, 1000));
    assert!(
        pipeline
            .sink()
            .records
            .iter()
            .all(|(_, count, reason)| (*count, *reason) == (1, EndReason::ForcedEnd))
    );

    // A handle that is set stops a run before it reads anything, and the flag of a signal handler is the same flag.
    let stop = StopHandle::new();
    stop.flag().store(true, Relaxed);
    let summary = pipeline.run(&mut endless(), &RunOptions::default().stop(stop)).unwrap();
    assert_eq!((summary.end, summary.stats.frame_count), (RunEnd::Stopped, 1000));
}

#[test]
fn a_stop_handle_works_from_another_thread() {
    let stop = StopHandle::new();
    let options = RunOptions::default().stop(stop.clone());
    let run = std::thread::spawn(move || {
        let mut pipeline = pipeline();
        let end = pipeline.run(&mut endless(), &options).unwrap().end;
        (end, pipeline.stats(), pipeline.into_sink())
    });
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    stop.stop();
    let (end, stats, sink) = run.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(end, RunEnd::Stopped);
    assert_eq!(stats.tracker.started_count, stats.tracker.ended_count());
    assert_eq!(stats.tracker.started_count, sink.ended_count as u64);
}

/// Breaks after a number of batches.
struct Breaks(usize);

impl Sink for Breaks {
    type State = ();
    type Stage = Flows;

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.0 -= 1;
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_sink_ends_a_run_after_the_batch_in_which_it_breaks() {
    let mut pipeline = Pipeline::builder().build(Breaks(7)).unwrap();
    let summary = pipeline.run(&mut endless(), &RunOptions::default()).unwrap();
    assert_eq!((summary.end, summary.stats.frame_count, pipeline.flow_count()), (RunEnd::SinkBreak, 7, 0));
    // An idle time counts as a batch.
    let mut pipeline = Pipeline::builder().build(Breaks(2)).unwrap();
    let steps = [Step::Frames(1, vec![1]), Step::Idle(2), Step::Frames(3, vec![2])];
    let summary = pipeline.run(&mut listed(steps), &RunOptions::default()).unwrap();
    assert_eq!((summary.end, summary.stats.frame_count), (RunEnd::SinkBreak, 1));
}

#[test]
fn progress_is_reported_after_each_batch() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap");
    let len = std::fs::metadata(&path).unwrap().len();
    let seen: Arc<Mutex<Vec<RunProgress>>> = Arc::default();
    let calls = Arc::clone(&seen);
    let options = RunOptions::default().progress(move |progress| calls.lock().unwrap().push(*progress));
    let mut pipeline = pipeline();
    let summary = pipeline.run(&mut FileSource::open(path).unwrap(), &options).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), pipeline.sink().batch_count);
    assert!(seen.len() > 2, "{seen:?}");
    assert!(seen.is_sorted_by_key(|progress| (progress.frame_count, progress.input_octet_count)));
    assert!(seen.iter().all(|progress| progress.input_len == Some(len)));
    let last = seen.last().unwrap();
    assert_eq!(last.input_octet_count, len);
    assert!(seen.iter().all(|progress| progress.source.frame_count >= progress.frame_count));
    assert_eq!(last.source.frame_count, summary.stats.frame_count);
    assert!(seen.iter().any(|progress| progress.flow_count > Some(1) && progress.held_bytes > 0));
    // The last frame may be delayed until the next one.
    assert!(summary.stats.frame_count - last.frame_count <= 1);
}

#[test]
fn flows_time_out_while_a_source_is_idle() {
    let mut pipeline = pipeline();
    let first_frame_count = Arc::new(Mutex::new(None));
    let steps = [
        Step::Frames(1_000_000, vec![1, 2]),
        Step::Idle(1_000_100),
        Step::Frames(1_030_000, vec![3]),
        // Later than the idle timeout of the first two.
        Step::Idle(1_075_000),
        Step::Idle(1_075_100),
    ];
    let recorded = Arc::clone(&first_frame_count);
    let options = RunOptions::default().progress(move |progress| {
        recorded.lock().unwrap().get_or_insert(progress.frame_count);
    });
    let summary = pipeline.run(&mut listed(steps), &options).unwrap();
    assert_eq!((summary.end, summary.stats.frame_count), (RunEnd::EndOfInput, 3));
    assert_eq!(*first_frame_count.lock().unwrap(), Some(2));
    let sink = pipeline.sink();
    let (idle, forced) = (EndReason::IdleTimeout, EndReason::ForcedEnd);
    assert_eq!(sink.records, [(1, 1, idle), (2, 1, idle), (3, 1, forced)]);
    // The first two flows ended with the fourth step, the last one after the fifth.
    assert_eq!((&sink.batches_before[..], sink.batch_count), (&[3, 3, 5][..], 5));
    assert_eq!(pipeline.now(), at(1_075_100));
}

/// A source that ends after a number of frames, and has the rest for the next call.
struct Part<'a> {
    frames: &'a mut std::vec::IntoIter<(Timestamp, Vec<u8>)>,
    rest_count: usize,
}

impl Source for Part<'_> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, flowgauge::source::Error> {
        batch.clear();
        while batch.len() < 32 && self.rest_count > 0 {
            let Some((timestamp, data)) = self.frames.next() else { break };
            batch.push(&Frame::ethernet(timestamp, &data));
            self.rest_count -= 1;
        }
        Ok(if batch.is_empty() { Next::End(End::Complete) } else { Next::Frames })
    }
}

#[test]
fn sources_fed_one_after_the_other_are_one_input() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap");
    let (mut source, mut batch) = (FileSource::open(path).unwrap(), FrameBatch::new());
    let mut frames = Vec::new();
    while !source.next_batch(&mut batch).unwrap().is_end() {
        frames.extend(batch.iter().map(|frame| (frame.timestamp, frame.data.to_vec())));
    }
    let records = |part_len: usize, options: &RunOptions| {
        let mut records = Vec::new();
        let sink = Records::new(|record| records.push(format!("{record:?}")));
        let mut pipeline = Pipeline::builder().build(sink).unwrap();
        let mut rest = frames.clone().into_iter();
        for part in 1..=frames.len().div_ceil(part_len) {
            let summary =
                pipeline.feed(&mut Part { frames: &mut rest, rest_count: part_len }, options).unwrap();
            assert_eq!(summary.end, RunEnd::EndOfInput);
            // The last frame may wait for the next one.
            assert!((part * part_len).min(frames.len()) - summary.stats.frame_count as usize <= 1);
            assert!(part * part_len < 100 || pipeline.flow_count() > 0);
        }
        pipeline.finish();
        assert_eq!((pipeline.flow_count(), pipeline.stats().frame_count as usize), (0, frames.len()));
        drop(pipeline);
        records
    };
    let whole = records(frames.len(), &RunOptions::default());
    assert_eq!(whole.len(), 27);
    for part_len in [1, 31, 100, 1000] {
        for is_ahead in [false, true] {
            assert_eq!(
                records(part_len, &RunOptions::default().extract_ahead(is_ahead)),
                whole,
                "{part_len}"
            );
        }
    }
}

#[test]
fn flows_stay_open_when_a_fed_source_fails() {
    let mut pipeline = pipeline();
    let steps = [Step::Frames(1, vec![1, 2]), Step::Fails(2, vec![2, 3])];
    let error = pipeline.feed(&mut listed(steps), &RunOptions::default()).expect_err("the source fails");
    assert!(error.to_string().contains("injected"), "{error}");
    assert_eq!((pipeline.flow_count(), pipeline.sink().records.len()), (3, 0));
    pipeline.feed(&mut listed([Step::Frames(3, vec![1])]), &RunOptions::default()).unwrap();
    pipeline.finish();
    let forced = EndReason::ForcedEnd;
    assert_eq!(pipeline.sink().records, [(1, 2, forced), (2, 2, forced), (3, 1, forced)]);
}
