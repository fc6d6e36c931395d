//! One pipeline per thread, each with its share of the flows.
//!
//! The reader sends every batch to all shards, with the indices of the frames that each must process: those whose flow
//! is assigned to it by a keyed hash, and those that only a full decode can assign. Each shard thus decides as a single
//! pipeline would. Only the batch is shared; it returns to the reader when the last shard has processed it.

mod blocks;
mod dispatcher;
mod merged;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

pub use blocks::QueueStats;
use blocks::{BATCH_COUNT_MAX, Block, Blocks, Lent};
pub(super) use dispatcher::{Content, Dispatch, Dispatched, Dispatcher};
pub(super) use merged::run_records;

use super::config::Config;
use super::core;
use super::error::Error;
use super::pipeline::Pipeline;
use super::runner::{self, Intake, RunOptions, Summary};
use super::sink::Sink;
use super::stats::PipelineStats;
use crate::base::ring::{Consumer, Producer, ring};
use crate::base::{ConfigError, ConfigProblem, FrameBatch, Resources, Timestamp};
use crate::decode::link::Decapsulation;
use crate::source::{Interface, Next, Source};
use crate::tracker::Share;

/// Settings of all layers, and the resources that the layers share.
pub(super) type Layers<'a> = (&'a Config, &'a Resources);

/// Progress of a shard, for a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
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
    run_with(layers, sinks, (source, options), |_, _| {})
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
fn run_with<K: Sink + Send>(
    layers: Layers<'_>,
    sinks: &mut [K],
    (source, options): (&mut (impl Source + ?Sized), &RunOptions),
    after: impl Fn(&mut K, Step) + Sync,
) -> Result<Summary, Error> {
    let (config, resources) = layers;
    let shares = shares(layers, sinks.len())?;
    let is_sharded = shares.len() > 1;
    let dispatcher =
        shares.first().filter(|_| is_sharded).map(|share| core::dispatcher(config, resources, share.clone()));
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
        let blocks = Blocks::new(resources.budget.clone());
        let mut reader = Reader { dispatcher, queues, blocks, block: None, frame_count: 0, stops };
        // A shard that cannot be built returns its error when its queue is closed.
        let are_built = ready.iter().all(|is_built| is_built);
        let outcome = are_built.then(|| {
            let outcome = runner::drive(source, options, &mut reader);
            reader.end();
            outcome
        });
        // Shards that find their queue closed end their flows.
        let Reader { dispatcher, queues, blocks, .. } = reader;
        drop(queues);
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
        stats.queues.add(&blocks.stats);
        if let Some(dispatcher) = &dispatcher {
            stats.doubted_time_count = dispatcher.jumps.doubted_count;
        }
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

/// Reads batches from the source and sends each to all shards.
struct Reader {
    /// Distributes the frames of each batch; `None` for a single shard.
    dispatcher: Option<Dispatcher>,
    queues: Vec<Producer<Arc<Lent>>>,
    blocks: Blocks,
    /// The block that is being filled with frames.
    block: Option<Block>,
    frame_count: u64,
    /// Receives a message from each shard with a sink that requests a stop.
    stops: Receiver<()>,
}

impl Reader {
    /// Sends the filled block to all shards. Returns [`ControlFlow::Break`] if one of them no longer receives, because
    /// its sink panicked or requested a stop.
    fn send(&mut self, idle: Option<Timestamp>, is_last: bool) -> ControlFlow<()> {
        let Some(mut block) = self.block.take() else { return ControlFlow::Continue(()) };
        block.idle = idle;
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher.review(&mut block.batch, is_last);
            if let Some(held) = idle.and_then(|now| dispatcher.idle(now)) {
                held.iter().for_each(|frame| block.batch.push(&frame));
            }
            dispatcher.dispatch(&block.batch, &mut block.dispatch);
        }
        if block.batch.is_empty() && idle.is_none() {
            self.block = Some(block);
            return ControlFlow::Continue(());
        }
        self.frame_count += block.batch.len() as u64;
        let lent = self.blocks.lend(block);
        // The panic is resumed where the thread of the shard is joined.
        let is_taken = self.queues.iter_mut().all(|queue| queue.push(Arc::clone(&lent)).is_ok());
        if is_taken && self.stops.try_recv().is_err() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    /// Sends the deferred frame to the shards at the end of the input.
    fn end(&mut self) {
        self.buffer().clear();
        let _ = self.send(None, true);
    }
}

impl Intake for Reader {
    fn buffer(&mut self) -> &mut FrameBatch {
        let Self { block, blocks, .. } = self;
        &mut block.get_or_insert_with(|| blocks.next()).batch
    }

    fn process(&mut self, next: Next, _: &[Interface]) -> ControlFlow<()> {
        match next {
            Next::Frames => self.send(None, false),
            Next::Idle(now) => self.send(Some(now), false),
            Next::End => ControlFlow::Break(()),
        }
    }

    fn frame_count(&self) -> u64 {
        self.frame_count
    }
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
            let number = self.share.map(|share| {
                pipeline.restrict(share);
                self.number
            });
            for lent in batches.iter() {
                let wants = process(&mut pipeline, &lent.block, number);
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

/// Processes the frames of a block that are assigned to the shard with the index `number`; all frames if `number` is
/// `None`.
fn process<K: Sink>(pipeline: &mut Pipeline<K>, block: &Block, number: Option<usize>) -> ControlFlow<()> {
    let wants = match number {
        _ if block.batch.is_empty() => ControlFlow::Continue(()),
        None => pipeline.batch(&block.batch),
        Some(number) => pipeline.dispatched(&block.batch, &block.dispatch, number),
    };
    if let Some(now) = block.idle {
        pipeline.advance(now);
        let wants_more = pipeline.sink_mut().batch_ended();
        return if wants.is_break() { wants } else { wants_more };
    }
    wants
}
