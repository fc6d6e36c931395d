//! The threads of the shards: builds a pipeline on each, sends it batches, and adds up the statistics.

use std::panic::resume_unwind;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
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

/// Runs a pipeline for each sink on its own thread. Each sink is dropped when its pipeline has ended all flows.
pub(super) fn run<K: Sink + Send>(
    layers: Layers<'_>,
    sinks: Vec<K>,
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
) -> Result<Summary, Error> {
    let (config, resources) = layers;
    let shares = shares(layers, sinks.len())?;
    let is_sharded = shares.len() > 1;
    let share = shares.first().filter(|_| is_sharded).cloned();
    let dispatcher = core::dispatcher(config, resources, share);
    let turn = &Mutex::new(());
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
            threads.push(scope.spawn(move || shard.work(layers, sink, (turn, built), &mut batches)));
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
        sink: K,
        (turn, built): (&Mutex<()>, Sender<bool>),
        batches: &mut Consumer<Arc<Lent>>,
    ) -> Result<PipelineStats, ConfigError> {
        // One after another: a pipeline that is refused must not take the memory of another one meanwhile, which would be
        // refused for another reason.
        let guard = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let pipeline = Pipeline::new(config, resources, sink);
        drop(guard);
        let _ = built.send(pipeline.is_ok());
        drop(built);
        let mut pipeline = pipeline?;
        if let Some(share) = self.share {
            pipeline.restrict(share);
        }
        for lent in batches.iter() {
            let wants = pipeline.lent(&lent, self.number);
            drop(lent);
            if wants.is_break() {
                let _ = self.stopped.send(());
            }
        }
        pipeline.finish();
        Ok(pipeline.stats())
    }
}
