//! One pipeline per thread, each with its share of the flows.
//!
//! Every shard is handed every batch, and tracks the flows that a keyed hash of their key gives to it. So each sees all
//! time and all fragments, decides as one pipeline would, and nothing but the batch is shared: it goes back to the reader when the
//! last shard is done with it.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::streams::{StreamPipeline, StreamSink};
use super::{ConfigError, Pipeline, PipelineStats};
use crate::base::FrameBatch;
use crate::link::Decapsulation;
use crate::source::{Error, Source};
use crate::tracker::{FlowSink, Share};

/// Batches that are under way at once.
const BATCH_COUNT: usize = 8;

/// What a shard can run: a [`Pipeline`] or a [`StreamPipeline`].
pub trait Shard<K: ?Sized>: Send + sealed::Shard {
    /// Takes the frames of a batch.
    fn batch(&mut self, batch: &FrameBatch, sink: &mut K);
    /// Ends all flows.
    fn finish(&mut self, sink: &mut K);
    /// Whether a sink wants more.
    fn goes_on(sink: &K) -> bool;
}

mod sealed {
    /// What all shards can.
    pub trait Shard {
        fn shared_stats(&self) -> super::PipelineStats;
    }
}

impl<S: Default + Send> sealed::Shard for Pipeline<S> {
    fn shared_stats(&self) -> PipelineStats {
        self.stats()
    }
}

impl<U: Default + Send> sealed::Shard for StreamPipeline<U> {
    fn shared_stats(&self) -> PipelineStats {
        self.stats()
    }
}

impl<S: Default + Send, K: FlowSink<S> + ?Sized> Shard<K> for Pipeline<S> {
    fn batch(&mut self, batch: &FrameBatch, sink: &mut K) {
        Self::batch(self, batch, sink);
    }

    fn finish(&mut self, sink: &mut K) {
        Self::finish(self, sink);
    }

    fn goes_on(sink: &K) -> bool {
        sink.wants_more()
    }
}

impl<U: Default + Send, K: StreamSink<U> + ?Sized> Shard<K> for StreamPipeline<U> {
    fn batch(&mut self, batch: &FrameBatch, sink: &mut K) {
        Self::batch(self, batch, sink);
    }

    fn finish(&mut self, sink: &mut K) {
        Self::finish(self, sink);
    }

    fn goes_on(sink: &K) -> bool {
        sink.wants_more()
    }
}

/// Pipelines that share the flows of one source, each on a thread of its own; made by [`Pipeline::shards`].
///
/// The records are those of one pipeline, as long as no cap is reached: caps on flows are divided, and all others are each
/// shard's own. Fragments, checksums and duplicates are looked at by every shard.
#[derive(Debug)]
pub struct Shards<P> {
    shards: Vec<P>,
}

impl<S: Default + Send> Pipeline<S> {
    /// As many pipelines as `count` says, made alike by `make`. Give them clones of one budget for one account of memory.
    ///
    /// # Errors
    ///
    /// What `make` gives, and [`ConfigError::LinkedTunnels`] for [`Decapsulation::Both`]: flows that are linked may belong to
    /// different shards.
    pub fn shards(
        count: NonZeroUsize,
        make: impl FnMut() -> Result<Self, ConfigError>,
    ) -> Result<Shards<Self>, ConfigError> {
        Shards::new(count, make, |pipeline| pipeline)
    }
}

impl<U: Default + Send> StreamPipeline<U> {
    /// As [`Pipeline::shards`].
    ///
    /// # Errors
    ///
    /// Likewise.
    pub fn shards(
        count: NonZeroUsize,
        make: impl FnMut() -> Result<Self, ConfigError>,
    ) -> Result<Shards<Self>, ConfigError> {
        Shards::new(count, make, |shard| &mut shard.pipeline)
    }
}

impl<P: sealed::Shard> Shards<P> {
    fn new<S: Default + Send>(
        count: NonZeroUsize,
        mut make: impl FnMut() -> Result<P, ConfigError>,
        pipeline: impl Fn(&mut P) -> &mut Pipeline<S>,
    ) -> Result<Self, ConfigError> {
        let mut shards = (0..count.get()).map(|_| make()).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = shards.first_mut().filter(|_| count.get() > 1) else { return Ok(Self { shards }) };
        let tracker = pipeline(first).tracker();
        if tracker.key_policy().decapsulation == Decapsulation::Both {
            return Err(ConfigError::LinkedTunnels);
        }
        let shares = Share::all(count.get(), tracker.seeds());
        shards
            .iter_mut()
            .zip(shares)
            .for_each(|(shard, share)| pipeline(shard).tracker_mut().restrict(share));
        Ok(Self { shards })
    }

    /// The pipelines.
    #[must_use]
    pub fn as_slice(&self) -> &[P] {
        &self.shards
    }

    /// What went through so far. What every shard sees is that of the first, what each has of its own is the sum.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        let mut shards = self.shards.iter().map(P::shared_stats);
        let mut stats = shards.next().unwrap_or_default();
        for other in shards {
            stats.filtered_count += other.filtered_count;
            stats.tracker.add(&other.tracker);
            stats.streams.add(&other.streams);
        }
        stats
    }

    /// Takes all frames of a source, which is read here, then ends the flows. Each shard calls the sink at its place, on its own
    /// thread.
    ///
    /// Stops early, between batches, if a sink wants no more.
    ///
    /// # Errors
    ///
    /// What the source gives; the flows so far are ended before it is returned.
    ///
    /// # Panics
    ///
    /// If there are not as many sinks as shards, or a sink panics.
    pub fn run<K: Send>(&mut self, source: &mut (impl Source + ?Sized), sinks: &mut [K]) -> Result<(), Error>
    where
        P: Shard<K>,
    {
        self.run_with(source, sinks, |_, _| {})
    }

    /// The same, and `after` hears of each batch, and of the end.
    pub(super) fn run_with<K: Send>(
        &mut self,
        source: &mut (impl Source + ?Sized),
        sinks: &mut [K],
        after: impl Fn(&mut K, Step) + Sync,
    ) -> Result<(), Error>
    where
        P: Shard<K>,
    {
        assert_eq!(self.shards.len(), sinks.len(), "a sink for each shard");
        let after = &after;
        thread::scope(|scope| {
            let (free, blocks) = channel();
            let mut queues = Vec::with_capacity(self.shards.len());
            let (stopped, stops) = channel();
            for (shard, sink) in self.shards.iter_mut().zip(sinks) {
                let (queue, batches) = channel();
                queues.push(queue);
                let stopped = stopped.clone();
                scope.spawn(move || work(shard, sink, &batches, &stopped, after));
            }
            (0..BATCH_COUNT).for_each(|_| _ = free.send(FrameBatch::new()));
            let is_stopped = || stops.try_recv().is_ok();
            let outcome = deal(source, &queues, &free, &blocks, is_stopped);
            // Shards that find their queue closed end their flows, and the scope waits for them.
            drop(queues);
            outcome
        })
    }
}

/// Where a shard stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A batch is done.
    Batch,
    /// All flows have ended.
    End,
}

/// A batch that shards look at; the last one gives it back by letting go of it.
struct Lent {
    batch: FrameBatch,
    free: Sender<FrameBatch>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.free.send(std::mem::take(&mut self.batch));
    }
}

/// Reads batches and hands each to all shards.
fn deal(
    source: &mut (impl Source + ?Sized),
    queues: &[Sender<Arc<Lent>>],
    free: &Sender<FrameBatch>,
    blocks: &Receiver<FrameBatch>,
    is_stopped: impl Fn() -> bool,
) -> Result<(), Error> {
    // Blocks come back, as this end of the channel is open.
    while let Ok(mut batch) = blocks.recv() {
        let read = source.next_batch(&mut batch);
        let lent = Arc::new(Lent { batch, free: free.clone() });
        if !matches!(read, Ok(false)) {
            // A shard whose sink panicked takes no more; the panic goes on where its thread is joined.
            let is_taken = queues.iter().all(|queue| queue.send(Arc::clone(&lent)).is_ok());
            if !is_taken {
                break;
            }
        }
        match read {
            Ok(true) if !is_stopped() => {}
            Ok(_) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What the thread of a shard does.
fn work<P: Shard<K>, K>(
    shard: &mut P,
    sink: &mut K,
    batches: &Receiver<Arc<Lent>>,
    stopped: &Sender<()>,
    after: impl Fn(&mut K, Step),
) {
    for lent in batches {
        shard.batch(&lent.batch, sink);
        drop(lent);
        after(sink, Step::Batch);
        if !P::goes_on(sink) {
            let _ = stopped.send(());
        }
    }
    shard.finish(sink);
    after(sink, Step::End);
}
