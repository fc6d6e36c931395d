//! One pipeline per thread, each with its share of the flows.
//!
//! The reader hands every batch to all shards, with the places of the frames that each has to look at: those whose flow a
//! keyed hash gives to it, and those that are not that simple. So each decides as one pipeline would, and nothing but the
//! batch is shared: it goes back to the reader when the last shard is done with it.

mod blocks;
mod dealer;
mod merged;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

pub use blocks::QueueStats;
use blocks::{Block, Blocks, Lent};
pub(super) use dealer::{Deal, Dealer, Dealt, What};

use super::sessions::{SessionPipeline, SessionSink};
use super::streams::{StreamPipeline, StreamSink};
use super::{ConfigError, Pipeline, PipelineStats};
use crate::base::{Budget, FrameBatch};
use crate::link::Decapsulation;
use crate::session::Protocols;
use crate::source::{Error, Source};
use crate::tracker::{FlowSink, Share};

/// What a shard can run for a sink of a type: a [`Pipeline`] for a [`FlowSink`], a [`StreamPipeline`] for a [`StreamSink`].
pub trait Shard<K: ?Sized>: sealed::Run<K> {}

impl<P: sealed::Run<K>, K: ?Sized> Shard<K> for P {}

mod sealed {
    use super::{Deal, FrameBatch, PipelineStats};

    /// What all shards can.
    pub trait Count {
        fn count(&self) -> PipelineStats;
    }

    /// What shards do with a sink.
    pub trait Run<K: ?Sized>: Count + Send {
        /// Takes all frames of a batch, as the only shard.
        fn take(&mut self, batch: &FrameBatch, sink: &mut K);
        /// Takes the frames that are dealt to the shard with a number.
        fn take_dealt(&mut self, batch: &FrameBatch, deal: &Deal, shard: usize, sink: &mut K);
        /// Ends all flows.
        fn end(&mut self, sink: &mut K);
        /// Whether a sink wants more.
        fn goes_on(sink: &K) -> bool;
    }
}

impl<S: Default> sealed::Count for Pipeline<S> {
    fn count(&self) -> PipelineStats {
        self.stats()
    }
}

impl<S: Default + Send, K: FlowSink<S> + ?Sized> sealed::Run<K> for Pipeline<S> {
    fn take(&mut self, batch: &FrameBatch, sink: &mut K) {
        self.batch(batch, sink);
    }

    fn take_dealt(&mut self, batch: &FrameBatch, deal: &Deal, shard: usize, sink: &mut K) {
        self.dealt(batch, deal, shard, sink);
    }

    fn end(&mut self, sink: &mut K) {
        self.finish(sink);
    }

    fn goes_on(sink: &K) -> bool {
        sink.wants_more()
    }
}

impl<U: Default> sealed::Count for StreamPipeline<U> {
    fn count(&self) -> PipelineStats {
        self.stats()
    }
}

impl<U: Default + Send, K: StreamSink<U> + ?Sized> sealed::Run<K> for StreamPipeline<U> {
    fn take(&mut self, batch: &FrameBatch, sink: &mut K) {
        self.batch(batch, sink);
    }

    fn take_dealt(&mut self, batch: &FrameBatch, deal: &Deal, shard: usize, sink: &mut K) {
        self.dealt(batch, deal, shard, sink);
    }

    fn end(&mut self, sink: &mut K) {
        self.finish(sink);
    }

    fn goes_on(sink: &K) -> bool {
        sink.wants_more()
    }
}

impl<P: Protocols, U: Default> sealed::Count for SessionPipeline<P, U> {
    fn count(&self) -> PipelineStats {
        self.stats()
    }
}

impl<P, U, K> sealed::Run<K> for SessionPipeline<P, U>
where
    P: Protocols + Send,
    U: Default + Send,
    K: SessionSink<P, U> + ?Sized,
{
    fn take(&mut self, batch: &FrameBatch, sink: &mut K) {
        self.batch(batch, sink);
    }

    fn take_dealt(&mut self, batch: &FrameBatch, deal: &Deal, shard: usize, sink: &mut K) {
        self.dealt(batch, deal, shard, sink);
    }

    fn end(&mut self, sink: &mut K) {
        self.finish(sink);
    }

    fn goes_on(sink: &K) -> bool {
        sink.wants_more()
    }
}

/// Pipelines that share the flows of one source, each on a thread of its own; made by [`Pipeline::shards`].
///
/// The records are those of one pipeline, as long as no cap is reached: the cap on flows is divided, so that it bounds all of
/// them together (with fewer flows than shards, the others stay idle), and all other caps are each shard's own. Fragments are looked at by every shard, and where checksums or duplicates are, all frames.
#[derive(Debug)]
pub struct Shards<P> {
    shards: Vec<P>,
    /// None for a single shard.
    dealer: Option<Dealer>,
    /// That of the first shard.
    budget: Budget,
    queues: QueueStats,
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

impl<P: Protocols + Send, U: Default + Send> SessionPipeline<P, U> {
    /// As [`Pipeline::shards`].
    ///
    /// # Errors
    ///
    /// Likewise.
    pub fn shards(
        count: NonZeroUsize,
        make: impl FnMut() -> Result<Self, ConfigError>,
    ) -> Result<Shards<Self>, ConfigError> {
        Shards::new(count, make, |shard| &mut shard.streams.pipeline)
    }
}

impl<P: sealed::Count> Shards<P> {
    fn new<S: Default + Send>(
        count: NonZeroUsize,
        mut make: impl FnMut() -> Result<P, ConfigError>,
        pipeline: impl Fn(&mut P) -> &mut Pipeline<S>,
    ) -> Result<Self, ConfigError> {
        let mut shards = (0..count.get()).map(|_| make()).collect::<Result<Vec<_>, _>>()?;
        let first = shards.first_mut().map(&pipeline);
        let budget = first.as_ref().map(|first| first.tracker().budget().clone()).unwrap_or_default();
        let queues = QueueStats::default();
        let Some(first) = first.filter(|_| count.get() > 1) else {
            return Ok(Self { shards, dealer: None, budget, queues });
        };
        let tracker = first.tracker();
        if tracker.key_policy().decapsulation == Decapsulation::Both {
            return Err(ConfigError::LinkedTunnels);
        }
        let shares: Vec<_> = Share::all(count.get(), tracker.flow_count_max(), tracker.seeds()).collect();
        let dealer = shares.first().map(|share| first.dealer(share.clone()));
        for (shard, share) in shards.iter_mut().zip(shares) {
            pipeline(shard).tracker_mut().restrict(share);
        }
        Ok(Self { shards, dealer, budget, queues })
    }

    /// The pipelines.
    #[must_use]
    pub fn as_slice(&self) -> &[P] {
        &self.shards
    }

    /// What went through so far. What every shard sees is that of the first, what each has of its own is the sum.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        let mut shards = self.shards.iter().map(P::count);
        let mut stats = shards.next().unwrap_or_default();
        for other in shards {
            stats.filtered_count += other.filtered_count;
            stats.tracker.add(&other.tracker);
            stats.streams.add(&other.streams);
            stats.sessions.add(&other.sessions);
        }
        stats.queues = self.queues;
        if let Some(dealer) = &self.dealer {
            stats.doubted_time_count = dealer.jumps.doubted_count;
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
    fn run_with<K: Send>(
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
        // What it charged is given back when no shard has a batch any more.
        let mut blocks = Blocks::new(self.budget.clone());
        let outcome = thread::scope(|scope| {
            let mut queues = Vec::with_capacity(self.shards.len());
            let is_dealt = self.dealer.is_some();
            let (stopped, stops) = channel();
            for (number, (shard, sink)) in self.shards.iter_mut().zip(sinks).enumerate() {
                let (queue, batches) = channel();
                queues.push(queue);
                let stopped = stopped.clone();
                let number = is_dealt.then_some(number);
                scope.spawn(move || work((shard, number), sink, &batches, &stopped, after));
            }
            let is_stopped = || stops.try_recv().is_ok();
            let outcome = read(source, self.dealer.as_mut(), &queues, &mut blocks, is_stopped);
            // Shards that find their queue closed end their flows, and the scope waits for them.
            drop(queues);
            outcome
        });
        self.queues.add(&blocks.stats);
        outcome
    }
}

/// Where a shard stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A batch is done.
    Batch,
    /// Nothing more comes: all flows have ended, or a panic is on its way.
    End,
}

/// Reads batches and hands each to all shards.
fn read(
    source: &mut (impl Source + ?Sized),
    mut dealer: Option<&mut Dealer>,
    queues: &[Sender<Arc<Lent>>],
    blocks: &mut Blocks,
    is_stopped: impl Fn() -> bool,
) -> Result<(), Error> {
    loop {
        let mut block = blocks.next();
        let read = source.next_batch(&mut block.batch);
        if matches!(read, Ok(false)) {
            block.batch.clear();
        }
        if let Some(dealer) = dealer.as_deref_mut() {
            dealer.review(&mut block.batch, !matches!(read, Ok(true)));
        }
        if !matches!(read, Ok(false)) || !block.batch.is_empty() {
            if let Some(dealer) = dealer.as_deref_mut() {
                dealer.deal(&block.batch, &mut block.deal);
            }
            let lent = blocks.lend(block);
            // A shard whose sink panicked takes no more; the panic goes on where its thread is joined.
            let is_taken = queues.iter().all(|queue| queue.send(Arc::clone(&lent)).is_ok());
            if !is_taken {
                return Ok(());
            }
        }
        match read {
            Ok(true) if !is_stopped() => {}
            Ok(true) => {
                // What waits is of no use to a later run.
                let _ = dealer.map(|dealer| dealer.jumps.release());
                return Ok(());
            }
            Ok(false) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// What the thread of a shard does; its number tells which frames are dealt to it.
fn work<P: Shard<K>, K>(
    (shard, number): (&mut P, Option<usize>),
    sink: &mut K,
    blocks: &Receiver<Arc<Lent>>,
    stopped: &Sender<()>,
    after: impl Fn(&mut K, Step),
) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for lent in blocks {
            let Block { batch, deal, .. } = &lent.block;
            match number {
                None => shard.take(batch, sink),
                Some(number) => shard.take_dealt(batch, deal, number, sink),
            }
            drop(lent);
            after(sink, Step::Batch);
            if !P::goes_on(sink) {
                let _ = stopped.send(());
            }
        }
        shard.end(sink);
    }));
    // Whoever waits for this shard is told in either case.
    after(sink, Step::End);
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}
