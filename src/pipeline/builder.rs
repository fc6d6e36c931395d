//! The builder of pipelines, which owns the settings and the resources of all layers.

use std::time::Duration;

use super::config::Config;
use super::error::Error;
use super::pipeline::Pipeline;
use super::records::{Buffer, RecordIter};
use super::runner::{RunOptions, Summary};
use super::shards;
use super::sink::Sink;
use super::stage::Stage;
use crate::base::{Budget, ConfigError, ConfigProblem, Limits, Resources};
use crate::decode::ChecksumHandling;
use crate::decode::FragmentHandling;
use crate::decode::extractor::KeyPolicy;
use crate::decode::fragment::PoolConfig;
use crate::dedup::DedupConfig;
use crate::filter::Filter;
use crate::reassembler::ReassemblerConfig;
use crate::record::FlowRecord;
use crate::session::DriverConfig;
use crate::source::Source;
use crate::tracker::{FlowView, TrackerConfig};

/// Settings of a [`Pipeline`].
///
/// Created by [`Pipeline::builder`]. The builder owns the [`Resources`]: all layers of all pipelines that it builds
/// share the same limits and budget, so one number bounds the memory of all of them.
///
/// ```
/// use std::time::Duration;
/// use flowgauge::{FileSource, Pipeline, Records, RunOptions};
///
/// let sink = Records::new(|record| println!("{record}"));
/// let mut pipeline = Pipeline::builder()
///     .memory(64 << 20)
///     .filter("tcp port 443".parse()?)
///     .active_timeout(Duration::from_secs(1800))
///     .build(sink)?;
/// pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    resources: Resources,
    config: Config,
}

impl Builder {
    /// Limits the memory of all layers together to `bytes`. Default 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.resources.limits.total_bytes_max = bytes;
        self.resources.budget = Budget::new(bytes);
        self
    }

    /// Sets all limits, and the memory budget to [`Limits::total_bytes_max`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.resources.limits = limits;
        self.resources.budget = Budget::new(limits.total_bytes_max);
        self
    }

    /// Sets the limits, the memory budget and the hash seeds, for example to share a budget with a source.
    pub fn resources(mut self, resources: Resources) -> Self {
        self.resources = resources;
        self
    }

    /// Sets the timeouts, the timeout classes and the key policy of the flow tracker.
    pub fn tracker(mut self, config: TrackerConfig) -> Self {
        self.config.tracker = config;
        self
    }

    /// Sets which packets belong to one flow: the layer of a tunnel that is counted, and the parts of the Flow Key in
    /// addition to the five-tuple.
    pub fn key_policy(mut self, policy: KeyPolicy) -> Self {
        self.config.tracker.key_policy = policy;
        self
    }

    /// Sets the interval after which a record of an ongoing flow is created. By default, a flow has one record, at its
    /// end.
    pub fn active_timeout(mut self, timeout: Duration) -> Self {
        self.config.tracker.active_timeout = Some(timeout);
        self
    }

    /// Drops packets, before they are tracked, if their flow cannot match the filter.
    ///
    /// A filter with `src`, `dst` or `vlan` applies to a whole flow; evaluate it again on the record.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.config.filter = Some(filter);
        self
    }

    /// Drops duplicate frames. By default, duplicates are counted like any other frame.
    pub fn dedup(mut self, config: DedupConfig) -> Self {
        self.config.dedup = Some(config);
        self
    }

    /// Sets the handling of IP fragments.
    pub fn fragments(mut self, handling: FragmentHandling) -> Self {
        self.config.decoder.fragments = handling;
        self
    }

    /// Sets the timeout and the overlap policy of the fragments that wait for the rest of their datagram.
    pub fn fragment_pool(mut self, config: PoolConfig) -> Self {
        self.config.decoder.fragment_pool = config;
        self
    }

    /// Sets whether the checksums of each frame are verified. By default, they are ignored.
    pub fn checksums(mut self, handling: ChecksumHandling) -> Self {
        self.config.decoder.checksums = handling;
        self
    }

    /// Sets whether the outer headers of each flow are recorded for [`FlowRecord::encapsulation`]: their identifiers
    /// and the tunnel endpoints. Off by default; flows without outer headers cause no additional cost.
    pub fn encapsulation(mut self, is_kept: bool) -> Self {
        self.config.decoder.is_encapsulation_kept = is_kept;
        self
    }

    /// Sets whether a frame whose time is far ahead of all earlier ones waits for confirmation by the next frame, which
    /// is the default ([`TIME_JUMP_MAX`](super::TIME_JUMP_MAX)). Without the check every time is accepted, and a frame
    /// is tracked in the call that passes it.
    pub fn time_check(mut self, is_checked: bool) -> Self {
        self.config.is_time_checked = is_checked;
        self
    }

    /// Configures the TCP reassembler. Only for sinks with a stage that has streams.
    pub fn streams(mut self, config: ReassemblerConfig) -> Self {
        self.config.streams = Some(config);
        self
    }

    /// Configures the session driver. Only for sinks with a stage that has sessions.
    pub fn sessions(mut self, config: DriverConfig) -> Self {
        self.config.sessions = Some(config);
        self
    }

    /// Returns the memory budget that all pipelines of this builder share.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.resources.budget
    }

    /// Builds a pipeline around a sink. Allocates the first segment of the flow table.
    ///
    /// # Errors
    ///
    /// Returns a [`ConfigError`] that names the layer and the field: a number out of range, a budget too small for the
    /// empty layers, or a setting for a layer that the stage of the sink does not have.
    pub fn build<K: Sink>(&self, sink: K) -> Result<Pipeline<K>, ConfigError> {
        self.check_stage::<K::Stage>()?;
        Pipeline::new(&self.config, &self.resources, sink)
    }

    /// Iterates over the flow records of a source; see [`records`](super::records()).
    ///
    /// # Errors
    ///
    /// Same as [`build`](Self::build).
    pub fn records<S: Source>(&self, source: S) -> Result<RecordIter<S>, ConfigError> {
        Ok(RecordIter::new(self.build(Buffer::default())?, source))
    }

    /// Runs a pipeline for each sink on its own thread, and reads the source on the current thread. Each flow is
    /// assigned to one pipeline by a keyed hash.
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
    /// Otherwise same as [`Pipeline::run`]: all flows so far are ended before the error is returned.
    ///
    /// # Panics
    ///
    /// Panics if a sink panics.
    pub fn run_shards<K: Sink + Send>(
        &self,
        sinks: &mut [K],
        source: &mut (impl Source + ?Sized),
        options: &RunOptions,
    ) -> Result<Summary, Error> {
        self.check_stage::<K::Stage>()?;
        shards::run((&self.config, &self.resources), sinks, source, options)
    }

    /// Runs `shard_count` pipelines like [`run_shards`](Self::run_shards), and calls `deliver` with the record of each
    /// flow that `wants` accepts.
    ///
    /// Records are ordered by the batch in which their flows ended, and within a batch by the time of their last
    /// packets, as far as the order of each shard permits. `deliver` runs on its own thread. At most some 16,000
    /// records of a shard are queued. With the stage [`Sessions`](super::Sessions), records name the application
    /// protocol.
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
        shards::run_records::<G>(layers, shard_count, (source, options), &wants, deliver)
    }

    /// Returns an error if a setting is for a layer that the stage `G` does not have.
    fn check_stage<G: Stage>(&self) -> Result<(), ConfigError> {
        let absent = |layer, field| Err(ConfigError::new(layer, field, ConfigProblem::StageAbsent));
        if self.config.streams.is_some() && !G::HAS_STREAMS {
            return absent("reassembler", "streams");
        }
        if self.config.sessions.is_some() && !G::HAS_SESSIONS {
            return absent("session", "sessions");
        }
        Ok(())
    }
}
