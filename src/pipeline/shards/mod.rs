//! One pipeline per thread, each with its share of the flows.
//!
//! The reader sends every batch to all shards, with the indices of the frames that each must process: those whose flow
//! is assigned to it by a keyed hash, and those that only a full decode can assign. Each shard thus decides as a single
//! pipeline would. Only the batch is shared; it returns to the reader when the last shard has processed it.

mod merged;
mod threads;

use super::builder::Builder;
use super::error::Error;
use super::runner::{RunOptions, Summary};
use super::sink::{Sink, Stage};
use crate::record::FlowRecord;
use crate::source::Source;
use crate::tracker::FlowView;

impl Builder {
    /// Runs a pipeline for each sink on its own thread, and reads the source on the current thread. Each flow is
    /// assigned to one pipeline by a keyed hash. Sinks may be borrowed: `&mut sinks` of a vector.
    ///
    /// All sinks together receive the same output as a single sink, unless a limit is reached: the limit on flows is
    /// divided, the budget is shared, and all other limits apply to each shard. Fragments are processed by all shards,
    /// as are all frames if checksums or deduplication are enabled. The run stops early, between batches, if a sink
    /// returns [`ControlFlow::Break`](std::ops::ControlFlow::Break).
    ///
    /// # Errors
    ///
    /// Same as [`build`](Self::build), and also for [`Decapsulation::Both`](crate::decode::link::Decapsulation::Both)
    /// with more than one sink, because linked flows may belong to different shards, and for an empty list of sinks.
    /// Otherwise same as [`Pipeline::run`](super::Pipeline::run): all flows so far are ended before the error is returned.
    ///
    /// # Panics
    ///
    /// Panics if a sink panics.
    pub fn run_shards<K: Sink + Send>(
        &self,
        sinks: impl IntoIterator<Item = K>,
        source: &mut (impl Source + ?Sized),
        options: &RunOptions,
    ) -> Result<Summary, Error> {
        self.check_stage::<K::Stage>()?;
        let sinks = sinks.into_iter().collect();
        threads::run((&self.config, &self.resources), sinks, source, options)
    }

    /// Runs `shard_count` pipelines like [`run_shards`](Self::run_shards), and calls `deliver` with the record of each
    /// flow that `wants` accepts.
    ///
    /// Records are ordered by the batch in which their flows ended, and within a batch by the time of their last
    /// packets, as far as the order of each shard permits. `deliver` runs on its own thread. At most some 16,000
    /// records of a shard are queued. With the stage [`Sessions`](super::Sessions), records name the application
    /// protocol. The reader is ahead of `deliver`, which therefore also receives records after a stop.
    ///
    /// ```
    /// use flowgauge::{FileSource, Flows, Pipeline, RunOptions};
    ///
    /// let mut source = FileSource::open("examples/data/web.pcap")?;
    /// let (mut octet_count, options) = (0, RunOptions::default());
    /// let add = |record: flowgauge::FlowRecord| octet_count += record.octet_count();
    /// Pipeline::builder().run_records::<Flows>(2, &mut source, &options, |_| true, add)?;
    /// assert!(octet_count > 1_000_000);
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`run_shards`](Self::run_shards).
    ///
    /// # Panics
    ///
    /// Panics if `wants` or `deliver` panics.
    pub fn run_records<G: Stage>(
        &self,
        shard_count: usize,
        source: &mut (impl Source + ?Sized),
        options: &RunOptions,
        wants: impl Fn(&FlowView<'_>) -> bool + Sync,
        deliver: impl FnMut(FlowRecord) + Send,
    ) -> Result<Summary, Error> {
        self.check_stage::<G>()?;
        let layers = (&self.config, &self.resources);
        merged::run_records::<G>(layers, shard_count, source, options, (&wants, deliver))
    }
}
