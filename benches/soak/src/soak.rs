//! The run itself: a pipeline with all layers, sampled at intervals.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use flowgauge::base::{EndReason, FrameBatch};
use flowgauge::dedup::DedupConfig;
use flowgauge::filter::Filter;
use flowgauge::link::Decapsulation;
use flowgauge::pipeline::{ChecksumHandling, Pipeline, SessionPipeline, SessionSink};
use flowgauge::reassembler::ReassemblerConfig;
use flowgauge::session::{About, DriverConfig, Message, Standard};
use flowgauge::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest, TrackerConfig};

use crate::samples::{Sample, resident_bytes};
use crate::trace::Trace;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);

/// Shorter runs are sampled more often, so that each has a verdict.
const SAMPLE_COUNT_MIN: u32 = 30;

/// Makes a record of each flow and counts all output.
#[derive(Default)]
struct Count {
    record_count: u64,
    message_count: u64,
}

impl Count {
    fn emit(&mut self, view: &FlowView<'_>, reason: EndReason) {
        black_box(view.record(reason));
        self.record_count += 1;
    }
}

impl FlowSink<()> for Count {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.emit(&flow.view, EndReason::ActiveTimeout);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, (): ()) {
        self.emit(view, reason);
    }
}

impl SessionSink<Standard, ()> for Count {
    fn message(&mut self, _: &mut Flow<'_, ()>, _: &About, message: Message<'_>) {
        black_box(message);
        self.message_count += 1;
    }
}

/// A pipeline with every layer that the crate has, on one budget.
fn pipeline() -> Result<SessionPipeline<Standard, ()>, Box<dyn Error>> {
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_secs(60));
    config.key_policy.decapsulation = Decapsulation::Both;
    let (mut dedup, mut streams, mut sessions) =
        (DedupConfig::default(), ReassemblerConfig::default(), DriverConfig::default());
    (dedup.budget, streams.budget, sessions.budget) =
        (config.budget.clone(), config.budget.clone(), config.budget.clone());
    Ok(Pipeline::new(config)?
        .with_dedup(dedup)?
        .with_filter(Filter::parse("ip or ip6")?)
        .with_checksums(ChecksumHandling::Count)
        .with_encapsulation(true)
        .with_streams(streams)?
        .with_sessions(&sessions))
}

/// Loops over the trace for `duration` and returns the samples, the first one before the first frame.
///
/// # Errors
///
/// If a layer refuses its configuration, or the system does not report the resident memory.
pub fn soak(trace: &Trace, duration: Duration) -> Result<Vec<Sample>, Box<dyn Error>> {
    let interval = SAMPLE_INTERVAL.min(duration / SAMPLE_COUNT_MIN);
    let mut pipeline = pipeline()?;
    let mut sink = Count::default();
    let mut batch = FrameBatch::new();
    // Reserved here, so that the samples themselves do not grow what they measure.
    let mut samples =
        Vec::with_capacity(duration.as_nanos().div_ceil(interval.as_nanos().max(1)) as usize + 2);
    let (mut frame_count, mut busy, mut pass_count) = (0, Duration::ZERO, 0);
    let start = Instant::now();
    let mut next = Duration::ZERO;
    let mut is_going_on = true;
    while is_going_on {
        is_going_on = trace.pass(pass_count, &mut batch, |batch| {
            let before = start.elapsed();
            if before >= next {
                next = before + interval;
                samples.push(Sample {
                    elapsed: before,
                    pass_count,
                    frame_count,
                    busy,
                    resident_bytes: resident_bytes(),
                    budget_bytes: pipeline.tracker().budget().held(),
                    open_flow_count: pipeline.tracker().len() as u64,
                    record_count: sink.record_count,
                    message_count: sink.message_count,
                });
            }
            let before = Instant::now();
            pipeline.batch(batch, &mut sink);
            busy += before.elapsed();
            frame_count += batch.len() as u64;
            start.elapsed() < duration
        });
        pass_count += u64::from(is_going_on);
    }
    if samples.iter().any(|sample| sample.resident_bytes == 0) {
        return Err("the system does not report resident memory in /proc/self/status".into());
    }
    pipeline.check_invariants();
    pipeline.finish(&mut sink);
    let stats = pipeline.stats();
    println!(
        "{frame_count} frames in {pass_count} passes: {} duplicates, {} datagrams reassembled, {} records, {} messages, \
         {} parsers stopped, at most {} flows open, {} evicted, {} bytes in the budget at most",
        stats.dedup.duplicate_count,
        stats.fragments.completed_count,
        sink.record_count,
        sink.message_count,
        stats.sessions.stopped_count,
        stats.tracker.open_count_max,
        stats.tracker.evicted_count(),
        pipeline.tracker().budget().peak()
    );
    Ok(samples)
}
