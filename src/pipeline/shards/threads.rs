//! The threads of the shards: builds a pipeline on each, sends it batches, and adds up the statistics.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::super::config::Config;
use super::super::core;
use super::super::dispatch::{BATCH_COUNT_MAX, Blocks, Lent, Reader};
use super::super::error::Error;
use super::super::pipeline::Pipeline;
use super::super::runner::{self, RunOptions, Summary};
use super::super::sink::Sink;
use super::super::stats::PipelineStats;
use crate::base::ring::{Consumer, ring};
use crate::base::{ConfigError, ConfigProblem, Resources};
use crate::decode::link::Decapsulation;
use crate::source::Source;
use crate::tracker::Share;

/// Settings of all layers, and the resources that the layers share.
pub(super) type Layers<'a> = (&'a Config, &'a Resources);

/// Progress of a shard, for a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The shard has processed a batch.
    Batch,
    /// The shard has ended: all its flows have ended, or a panic is in progress.
    End,
}

/// Runs a pipeline for each sink on its own thread.
pub(super) fn run<K: Sink + Send>(
    layers: Layers<'_>,
    sinks: &mut [K],
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
) -> Result<Summary, Error> {
    run_with(layers, sinks, source, options, |_, _| {})
}

/// Returns one share of the flows for each of `count` shards.
fn shares((config, resources): Layers<'_>, count: usize) -> Result<Vec<Share>, ConfigError> {
    if count == 0 {
        return Err(ConfigError::out_of_range("shards", "shard count", (1, u64::MAX)));
    }
    if count > 1 && config.tracker.key_policy.decapsulation == Decapsulation::Both {
        let problem = ConfigProblem::Conflict { with: "more than one shard" };
        return Err(ConfigError::new("shards", "Decapsulation::Both", problem));
    }
    Ok(Share::all(count, resources.limits.flow_count_max, resources.seeds).collect())
}

/// Runs a pipeline for each sink on its own thread, and calls `after` with the sink after each batch and at the end.
pub(super) fn run_with<K: Sink + Send>(
    layers: Layers<'_>,
    sinks: &mut [K],
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
    after: impl Fn(&mut K, Step) + Sync,
) -> Result<Summary, Error> {
    let (config, resources) = layers;
    let shares = shares(layers, sinks.len())?;
    let is_sharded = shares.len() > 1;
    let share = shares.first().filter(|_| is_sharded).cloned();
    let dispatcher = core::dispatcher(config, resources, share);
    let after = &after;
    thread::scope(|scope| {
        let (stopped, stops) = channel();
        let (built, ready) = channel();
        let mut queues = Vec::with_capacity(shares.len());
        let mut threads = Vec::with_capacity(shares.len());
        for (number, (share, sink)) in shares.into_iter().zip(sinks).enumerate() {
            // The queue takes all blocks in flight, so that the reader never waits for it.
            let (queue, mut batches) = ring(BATCH_COUNT_MAX as usize);
            queues.push(queue);
            let shard = Worker { number, share: is_sharded.then_some(share), stopped: stopped.clone() };
            let built = built.clone();
            threads.push(scope.spawn(move || shard.work(layers, sink, built, &mut batches, after)));
        }
        drop(built);
        let blocks = Blocks::new(resources.budget.clone(), BATCH_COUNT_MAX);
        let mut reader = Reader::new(dispatcher, queues, blocks, Some(stops));
        // A shard that cannot be built returns its error when its queue is closed.
        let are_built = ready.iter().all(|is_built| is_built);
        let outcome = are_built.then(|| {
            let outcome = runner::drive(source, options, &mut reader);
            reader.end();
            outcome
        });
        // Shards that find their queue closed end their flows.
        let (jumps, queue_stats) = reader.close();
        let mut stats = PipelineStats::default();
        let mut error = None;
        for (number, thread) in threads.into_iter().enumerate() {
            match thread.join() {
                Ok(Ok(own)) if number == 0 => stats = own,
                Ok(Ok(own)) => add(&mut stats, &own),
                Ok(Err(refused)) => error = Some(refused),
                Err(panic) => resume_unwind(panic),
            }
        }
        stats.queues.add(&queue_stats);
        (stats.times, stats.doubted_time_count) = (jumps.times(), jumps.doubted_count);
        match (error, outcome) {
            (Some(error), _) => Err(error.into()),
            (None, Some(outcome)) => outcome.into_summary(stats),
            (None, None) => unreachable!("a shard that is not built returns its error"),
        }
    })
}

/// Adds the counters specific to one shard (`other`) to those of the first shard (`stats`), which include the counters
/// common to all.
fn add(stats: &mut PipelineStats, other: &PipelineStats) {
    stats.filtered_count += other.filtered_count;
    stats.tracker.add(&other.tracker);
    stats.streams.add(&other.streams);
    stats.sessions.add(&other.sessions);
}

/// One of several pipelines, which runs on its own thread.
struct Worker {
    number: usize,
    /// Share of the flows that the pipeline tracks; `None` if there is only one pipeline.
    share: Option<Share>,
    stopped: Sender<()>,
}

impl Worker {
    /// Builds a pipeline, processes batches until the queue of batches is closed, and ends all flows.
    fn work<K: Sink>(
        self,
        (config, resources): Layers<'_>,
        sink: &mut K,
        built: Sender<bool>,
        batches: &mut Consumer<Arc<Lent>>,
        after: impl Fn(&mut K, Step),
    ) -> Result<PipelineStats, ConfigError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let pipeline = Pipeline::new(config, resources, &mut *sink);
            let _ = built.send(pipeline.is_ok());
            drop(built);
            let mut pipeline = pipeline?;
            if let Some(share) = self.share {
                pipeline.restrict(share);
            }
            for lent in batches.iter() {
                let wants = pipeline.lent(&lent, self.number);
                drop(lent);
                after(pipeline.sink_mut(), Step::Batch);
                if wants.is_break() {
                    let _ = self.stopped.send(());
                }
            }
            pipeline.finish();
            Ok(pipeline.stats())
        }));
        // Threads that wait for this shard are notified in either case.
        after(sink, Step::End);
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }
}
