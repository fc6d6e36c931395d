//! Run of a pipeline with all layers, sampled at intervals.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use flowgauge::{
    ChecksumHandling, Decapsulation, DedupConfig, EndReason, Filter, Flow, FrameBatch, Interest, Message,
    MessageMeta, Pipeline, Sessions, Sink, Standard, TrackerConfig,
};

use crate::samples::{Sample, resident_bytes};
use crate::trace::Trace;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum number of samples, so that short runs have a verdict too.
const SAMPLE_COUNT_MIN: u32 = 30;

/// Creates a record of each flow and counts all output.
#[derive(Default)]
struct Count {
    record_count: u64,
    message_count: u64,
}

impl Sink for Count {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, _: &mut Flow<'_, ()>, _: &MessageMeta, message: &Message<'_>) {
        black_box(message);
        self.message_count += 1;
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        black_box(flow.view.record(reason));
        self.record_count += 1;
    }
}

/// Creates a pipeline with every layer of the crate and one budget.
fn pipeline() -> Result<Pipeline<Count>, Box<dyn Error>> {
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_secs(60));
    config.key_policy.decapsulation = Decapsulation::Both;
    let builder = Pipeline::builder()
        .tracker(config)
        .dedup(DedupConfig::default())
        .filter(Filter::parse("ip or ip6")?)
        .checksums(ChecksumHandling::Count)
        .encapsulation(true);
    Ok(builder.build(Count::default())?)
}

/// Loops over the trace for `duration` and returns the samples, the first one before the first frame.
///
/// # Errors
///
/// If a layer rejects its configuration, or the system does not report the resident memory.
pub fn soak(trace: &Trace, duration: Duration) -> Result<Vec<Sample>, Box<dyn Error>> {
    let interval = SAMPLE_INTERVAL.min(duration / SAMPLE_COUNT_MIN);
    let mut pipeline = pipeline()?;
    let mut batch = FrameBatch::new();
    // Allocated in advance, so that the samples do not increase the measured memory.
    let mut samples =
        Vec::with_capacity(duration.as_nanos().div_ceil(interval.as_nanos().max(1)) as usize + 2);
    let (mut frame_count, mut busy, mut pass_count) = (0, Duration::ZERO, 0);
    let start = Instant::now();
    let mut next = Duration::ZERO;
    let mut is_running = true;
    while is_running {
        is_running = trace.pass(pass_count, &mut batch, |batch| {
            let before = start.elapsed();
            if before >= next {
                next = before + interval;
                samples.push(Sample {
                    elapsed: before,
                    pass_count,
                    frame_count,
                    busy,
                    resident_bytes: resident_bytes(),
                    budget_bytes: pipeline.budget().held(),
                    open_flow_count: pipeline.flow_count() as u64,
                    record_count: pipeline.sink().record_count,
                    message_count: pipeline.sink().message_count,
                });
            }
            let before = Instant::now();
            // The sink never stops the pipeline.
            let _ = pipeline.batch(batch);
            busy += before.elapsed();
            frame_count += batch.len() as u64;
            start.elapsed() < duration
        });
        pass_count += u64::from(is_running);
    }
    if samples.iter().any(|sample| sample.resident_bytes == 0) {
        return Err("the system does not report resident memory in /proc/self/status".into());
    }
    pipeline.check_invariants();
    pipeline.finish();
    let stats = pipeline.stats();
    println!(
        "{frame_count} frames in {pass_count} passes: {} duplicates, {} datagrams reassembled, {} records, {} messages, \
         {} parsers stopped, at most {} open flows, {} evicted, at most {} bytes in the budget",
        stats.dedup.duplicate_count,
        stats.fragments.completed_count,
        pipeline.sink().record_count,
        pipeline.sink().message_count,
        stats.sessions.stopped_count,
        stats.tracker.open_count_max,
        stats.tracker.evicted_count(),
        pipeline.budget().peak()
    );
    Ok(samples)
}
