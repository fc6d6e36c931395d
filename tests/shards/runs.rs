//! The end of a sharded run: by an error, by a stop handle, and with an idle source.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgauge::pipeline::TIME_JUMP_MAX;
use flowgauge::{EndReason, Error, ErrorPolicy, Flows, Pipeline, RunEnd, RunOptions, Sink, StopHandle};

#[path = "../support/scripted.rs"]
#[allow(dead_code, reason = "other tests use the other items")]
pub(crate) mod scripted;

use scripted::{Kept, Scripted, Step, listed};

/// Returns `Break` after the batch with the number `AT` only.
#[derive(Default)]
pub(crate) struct BreaksOnce<const AT: u64> {
    pub(crate) batch_count: u64,
}

impl<const AT: u64> Sink for BreaksOnce<AT> {
    type State = ();
    type Stage = Flows;

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.batch_count += 1;
        if self.batch_count == AT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A frame far ahead of all earlier ones is processed together with the idle time that confirms it: a batch, then an
/// idle time.
#[test]
fn a_break_before_an_idle_time_ends_the_run() {
    let later = 1 + 2 * TIME_JUMP_MAX.as_millis() as u64;
    let mut number = 0;
    let mut source = Scripted(move || {
        number += 1;
        match number {
            1 => Some(Step::Frames(1, vec![1, 2, 3])),
            2 => Some(Step::Frames(later, vec![4])),
            3 => Some(Step::Idle(later)),
            4..100_000 => Some(Step::Frames(later, vec![5])),
            _ => None,
        }
    });
    let mut sinks = [BreaksOnce::<2>::default(), BreaksOnce::default()];
    let run = Pipeline::builder().run_shards(&mut sinks, &mut source, &RunOptions::default());
    assert_eq!(run.unwrap().end, RunEnd::SinkBreak);
}

fn sinks(count: usize) -> Vec<Kept> {
    (0..count).map(|_| Kept::default()).collect()
}

/// Returns the ports of the records of all sinks.
fn ports(sinks: &[Kept]) -> Vec<u16> {
    let mut ports: Vec<_> = sinks.iter().flat_map(Kept::ports).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn sinks_keep_their_records_when_the_source_fails() {
    for count in [1, 2, 5] {
        let mut sinks = sinks(count);
        let steps = [
            Step::Frames(1, (1..40).collect()),
            Step::Fails(2, (30..60).collect()),
            Step::Frames(3, (60..70).collect()),
        ];
        let run = Pipeline::builder().run_shards(&mut sinks, &mut listed(steps), &RunOptions::default());
        let error = run.expect_err("the source fails");
        assert!(matches!(error, Error::Source(_)), "{error}");
        assert_eq!(ports(&sinks), (1..60).collect::<Vec<_>>(), "{count} shards");
        assert_eq!(sinks.iter().map(|sink| sink.ended_count).sum::<usize>(), 59);
        let packets = sinks.iter().flat_map(|sink| &sink.records).map(|(_, packets, _)| packets);
        assert_eq!(packets.sum::<u64>(), 69);
    }
}

#[test]
fn errors_of_a_sharded_run_are_collected() {
    for count in [1, 2, 5] {
        let mut sinks = sinks(count);
        let steps = [
            Step::Frames(1, vec![1, 2, 3]),
            Step::Fails(2, vec![4, 5]),
            Step::Fails(3, vec![]),
            Step::Frames(4, vec![6, 7]),
        ];
        let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
        let run = Pipeline::builder().run_shards(&mut sinks, &mut listed(steps), &options);
        let summary = run.expect("errors must not end the run");
        assert_eq!((summary.end, summary.errors.len()), (RunEnd::EndOfInput, 2));
        assert!(summary.errors.iter().all(|error| error.to_string().contains("injected")));
        assert_eq!((ports(&sinks), summary.stats.frame_count), ((1..8).collect(), 7), "{count} shards");
    }
}

#[test]
fn a_stop_handle_ends_all_shards_with_all_open_flows_recorded() {
    for count in [1, 2, 5] {
        let stop = StopHandle::new();
        let (handle, last) = (stop.clone(), Arc::new(AtomicU64::new(0)));
        let noted = Arc::clone(&last);
        let options = RunOptions::default().stop(stop).progress(move |progress| {
            assert!(noted.swap(progress.frame_count, Relaxed) <= progress.frame_count);
            if progress.frame_count >= 1000 {
                handle.stop();
            }
        });
        let mut number = 0_u64;
        let mut endless = Scripted(move || {
            number += 1;
            Some(Step::Frames(number / 100, vec![(number % 50_000) as u16 + 1]))
        });
        let mut sinks = sinks(count);
        let summary = Pipeline::builder().run_shards(&mut sinks, &mut endless, &options).unwrap();
        let case = format!("{count} shards: {:?}", summary.stats);
        assert_eq!((summary.end, last.load(Relaxed)), (RunEnd::Stopped, 1000), "{case}");
        assert_eq!(summary.stats.frame_count, 1000, "{case}");
        assert_eq!(ports(&sinks), (2..1002).collect::<Vec<_>>(), "{case}");
        let reasons = sinks.iter().flat_map(|sink| &sink.records).map(|(_, _, reason)| *reason);
        assert!(reasons.into_iter().all(|reason| reason == EndReason::ForcedEnd), "{case}");
    }
}

#[test]
fn flows_of_all_shards_time_out_while_a_source_is_idle() {
    for count in [1, 2, 5] {
        let steps = [
            Step::Frames(1_000_000, (1..20).collect()),
            Step::Idle(1_000_100),
            Step::Frames(1_030_000, (20..30).collect()),
            // After the idle timeout of the first flows.
            Step::Idle(1_075_000),
            Step::Idle(1_075_100),
        ];
        let mut sinks = sinks(count);
        let run = Pipeline::builder().run_shards(&mut sinks, &mut listed(steps), &RunOptions::default());
        assert_eq!(run.unwrap().stats.frame_count, 29);
        assert_eq!(ports(&sinks), (1..30).collect::<Vec<_>>());
        for (port, _, reason) in sinks.iter().flat_map(|sink| &sink.records) {
            let expected = if *port < 20 { EndReason::IdleTimeout } else { EndReason::ForcedEnd };
            assert_eq!(*reason, expected, "{port} of {count} shards");
        }
        assert!(sinks.iter().all(|sink| sink.batch_count >= 3), "each idle time counts as a batch");
    }
}
