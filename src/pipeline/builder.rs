//! The builder of pipelines, which owns the settings and the resources of all layers.

use std::time::Duration;

use super::config::Config;
use super::pipeline::Pipeline;
use super::sink::{Sink, Stage};
use crate::base::{Budget, ConfigError, ConfigProblem, Limits, Resources};
use crate::decode::ChecksumHandling;
use crate::decode::FragmentHandling;
use crate::decode::extractor::KeyPolicy;
use crate::decode::fragment::PoolConfig;
use crate::dedup::DedupConfig;
use crate::filter::Filter;
use crate::reassembler::ReassemblerConfig;
use crate::session::DriverConfig;
use crate::tracker::TrackerConfig;

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
    pub(super) resources: Resources,
    pub(super) config: Config,
}

impl Builder {
    /// Limits the memory of all layers together to `bytes`. Default 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.resources.limits.total_bytes_max = bytes;
        self.resources.budget = Budget::new(bytes);
        self
    }

    /// Changes limits. A change of [`Limits::total_bytes_max`] sets the memory budget too.
    ///
    /// ```
    /// use flowgauge::{Pipeline, TrackerConfig};
    ///
    /// let pipeline = Pipeline::builder()
    ///     .limit(|limits| limits.flow_count_max = 10_000)
    ///     .tracker(TrackerConfig::default().active_timeout(std::time::Duration::from_secs(60)))
    ///     .build(())?;
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    pub fn limit(self, change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = self.resources.limits;
        change(&mut limits);
        if limits.total_bytes_max != self.resources.limits.total_bytes_max {
            return self.limits(limits);
        }
        let resources = Resources { limits, ..self.resources };
        Self { resources, ..self }
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

    /// Sets whether the outer headers of each flow are recorded for [`FlowRecord::encapsulation`](crate::FlowRecord::encapsulation): their identifiers
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

    /// Returns an error if a setting is for a layer that the stage `G` does not have.
    pub(super) fn check_stage<G: Stage>(&self) -> Result<(), ConfigError> {
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

impl Pipeline<()> {
    /// Returns a builder with the default settings. `()` stands for any sink here; [`Builder::build`] takes the sink.
    pub fn builder() -> Builder {
        Builder::default()
    }
}
