//! The only module that constructs pipelines: configurations drawn from the input, and one interface for all kinds.

use std::num::NonZeroUsize;
use std::time::Duration;

use arbitrary::Arbitrary;
use flowgauge::base::{Budget, Frame, FrameBatch, Timestamp};
use flowgauge::dedup::{DedupConfig, Mode};
use flowgauge::extractor::{Direction, Scope};
use flowgauge::filter::Filter;
use flowgauge::fragment::{OverlapPolicy as FragmentPolicy, PoolConfig};
use flowgauge::link::Decapsulation;
use flowgauge::pipeline::{
    ChecksumHandling, ConfigError, FragmentHandling, Pipeline, PipelineStats, SessionPipeline, SessionSink,
    SessionSlot, Shards, Slot, StreamPipeline, StreamSink,
};
use flowgauge::reassembler::{OverflowPolicy, OverlapPolicy, ReassemblerConfig};
use flowgauge::session::{DriverConfig, Standard};
use flowgauge::source::Source;
use flowgauge::tracker::{FlowId, FlowSink, TrackerConfig};

/// Choices of a configuration. All zero means the defaults.
#[derive(Arbitrary, Clone, Debug, Default)]
pub struct Setup {
    fragments: u8,
    fragment_policy: u8,
    fragment_caps: u8,
    checksums: u8,
    decapsulation: u8,
    encapsulation: u8,
    dedup: u8,
    key: u8,
    filter: u8,
    active_timeout: u8,
    flow_caps: u8,
    overlap: u8,
    overflow: u8,
    compared: u8,
    stream_caps: u8,
    session_caps: u8,
    budget: u8,
    pub spare: u8,
}

/// Octets that [`Setup`] takes of the input.
pub const SETUP_LEN: usize = 18;

/// Filters of all properties: by address, port, protocol, direction and VLAN.
const FILTERS: [&str; 7] = [
    "tcp or udp",
    "host 10.0.0.1",
    "port 80 or port 53",
    "src host 10.0.0.1 and not icmp",
    "net 10.0.0.0/30",
    "vlan 5 and tcp",
    "ip6 and dst port 443",
];

const DEDUP_WINDOW_OCTETS_MAX: u64 = 4096;

impl Setup {
    /// Whether caps are far beyond what an input can reach. Only then do batches and shards promise the same results.
    pub fn is_roomy(&self) -> bool {
        self.fragment_caps | self.flow_caps | self.stream_caps | self.session_caps | self.budget == 0
    }

    /// The same without caps.
    pub fn roomy(&self) -> Self {
        Self { fragment_caps: 0, flow_caps: 0, stream_caps: 0, session_caps: 0, budget: 0, ..self.clone() }
    }

    /// The same with a way of decapsulation that shards support.
    pub fn shardable(&self) -> Self {
        Self { decapsulation: self.decapsulation & 1, ..self.clone() }
    }

    pub fn budget(&self) -> Budget {
        Budget::new(match self.budget {
            0 => 1 << 30,
            // The first segment of the flow table is allocated at once: 1024 flows with their states.
            budget => 300_000 + u64::from(budget) * 4096,
        })
    }

    /// Whether each record counts every frame of its flow, so that records add up to frames.
    pub fn is_linked(&self) -> bool {
        self.decapsulation % 3 == 2
    }

    pub fn has_dedup(&self) -> bool {
        self.dedup != 0
    }

    pub fn has_active_timeout(&self) -> bool {
        self.active_timeout != 0
    }

    fn tracker(&self, budget: &Budget) -> TrackerConfig {
        let mut config = TrackerConfig::default();
        (config.budget, config.seeds) = (budget.clone(), Some([1, 2, 3, 4]));
        config.staged_flow_count_min = if self.spare & 1 == 0 { 0 } else { 1 << 15 };
        if self.has_active_timeout() {
            config.active_timeout = Some(Duration::from_secs(u64::from(self.active_timeout)));
        }
        if self.flow_caps != 0 {
            config.limits.flow_count_max = u32::from(self.flow_caps & 15) + 1;
            config.limits.tcp_extra_count_max = u32::from(self.flow_caps >> 4 & 3);
            config.limits.enclosure_count_max = u32::from(self.flow_caps >> 6);
        }
        let policy = &mut config.key_policy;
        policy.decapsulation = match self.decapsulation % 3 {
            0 => Decapsulation::Innermost,
            1 => Decapsulation::Outermost,
            _ => Decapsulation::Both,
        };
        policy.ports = self.key & 1 == 0;
        policy.vlan_ids = self.key & 2 != 0;
        policy.vni = self.key & 4 != 0;
        policy.echo_id = self.key & 8 != 0;
        policy.direction = if self.key & 0x30 == 0x30 { Direction::Uniflow } else { Direction::Biflow };
        policy.scope = if self.key & 0x40 == 0 { Scope::Fixed(0) } else { Scope::Interface };
        config
    }

    fn pool(&self, budget: &Budget) -> PoolConfig {
        let mut pool = PoolConfig::default();
        (pool.budget, pool.seeds) = (budget.clone(), Some([5, 6, 7, 8]));
        let policies = FragmentPolicy::ALL;
        pool.policy = policies[usize::from(self.fragment_policy) % policies.len()];
        if self.fragment_caps != 0 {
            pool.limits.fragment_datagram_count_max = u32::from(self.fragment_caps & 7) + 1;
            pool.limits.fragment_per_datagram_count_max = u32::from(self.fragment_caps >> 3 & 7) + 2;
            // An empty pool takes 64 KiB for the datagram that is completed.
            pool.limits.fragment_bytes_max = 66_000 + (1024 << ((self.fragment_caps >> 6) * 2));
        }
        pool
    }

    fn dedup_config(&self, budget: &Budget) -> DedupConfig {
        let mut config = DedupConfig::default();
        (config.budget, config.seeds) = (budget.clone(), Some([9, 10, 11, 12]));
        config.mode = if self.dedup & 2 == 0 { Mode::Exact } else { Mode::IgnoreMirrorChanges };
        config.verifies = self.dedup & 4 != 0;
        config.only_between_interfaces = self.dedup & 8 != 0;
        config.window = Duration::from_millis(u64::from(self.dedup >> 4));
        config.limits.dedup_frame_count_max = 1 << (self.dedup >> 4);
        config.limits.dedup_bytes_max = DEDUP_WINDOW_OCTETS_MAX;
        config
    }

    fn streams(&self, budget: &Budget) -> ReassemblerConfig {
        let mut config = ReassemblerConfig::default();
        config.budget = budget.clone();
        let policies = OverlapPolicy::ALL;
        config.overlap = policies[usize::from(self.overlap) % policies.len()];
        config.overflow = match self.overflow % 3 {
            0 => OverflowPolicy::Slide,
            1 => OverflowPolicy::Poison,
            _ => OverflowPolicy::DropNewest,
        };
        config.compared_len = u32::from(self.compared) * 16;
        if self.stream_caps != 0 {
            config.limits.stream_bytes_max = u64::from(self.stream_caps & 15) * 3000;
            config.limits.stream_side_bytes_max = u64::from(self.stream_caps >> 4 & 3) * 3000;
            config.limits.stream_side_segment_count_max = u32::from(self.stream_caps >> 6) * 2;
        }
        config
    }

    fn sessions(&self, budget: &Budget) -> DriverConfig {
        let mut config = DriverConfig::default();
        config.budget = budget.clone();
        if self.session_caps != 0 {
            config.is_naming_only = self.session_caps & 15 == 15;
            config.limits.session_bytes_max = 600 * u64::from(self.session_caps & 63);
            config.limits.session_side_bytes_max = 512 << ((self.session_caps >> 6) * 2);
        }
        config
    }

    fn base<S: Default>(&self, budget: &Budget) -> Result<Pipeline<S>, ConfigError> {
        let handling = match self.fragments % 3 {
            0 => FragmentHandling::Reassemble,
            1 => FragmentHandling::ReassembleOrPair,
            _ => FragmentHandling::AsTheyCome,
        };
        let checksums = match self.checksums % 3 {
            0 => ChecksumHandling::Ignore,
            1 => ChecksumHandling::Count,
            _ => ChecksumHandling::Drop,
        };
        let mut pipeline = Pipeline::new(self.tracker(budget))?
            .with_fragments(handling, self.pool(budget))?
            .with_checksums(checksums)
            .with_encapsulation(self.encapsulation & 1 != 0);
        if self.has_dedup() {
            pipeline = pipeline.with_dedup(self.dedup_config(budget))?;
        }
        if self.filter & 8 != 0 {
            let text = FILTERS[usize::from(self.filter & 7) % FILTERS.len()];
            pipeline = pipeline.with_filter(Filter::parse(text).expect("the filters of the table are valid"));
        }
        Ok(pipeline)
    }

    /// A pipeline that makes flows, or `None` if the budget is too small for one.
    pub fn flows<S: Default>(&self, budget: &Budget) -> Option<Pipeline<S>> {
        self.accept(self.base(budget))
    }

    /// A pipeline with streams.
    pub fn stream_pipeline<U: Default>(&self, budget: &Budget) -> Option<StreamPipeline<U>> {
        self.accept(self.base::<Slot<U>>(budget).and_then(|base| base.with_streams(self.streams(budget))))
    }

    fn try_session_pipeline<U: Default>(
        &self,
        budget: &Budget,
    ) -> Result<SessionPipeline<Standard, U>, ConfigError> {
        let base = self.base::<Slot<SessionSlot<Standard, U>>>(budget)?;
        Ok(base.with_streams(self.streams(budget))?.with_sessions(&self.sessions(budget)))
    }

    /// A pipeline with streams and sessions.
    pub fn session_pipeline<U: Default>(&self, budget: &Budget) -> Option<SessionPipeline<Standard, U>> {
        self.accept(self.try_session_pipeline(budget))
    }

    /// Runs a source through shards with sessions, one sink each; the sum of their statistics.
    pub fn run_shards<U, K>(
        &self,
        budget: &Budget,
        source: &mut impl Source,
        sinks: &mut [K],
    ) -> PipelineStats
    where
        U: Default + Send,
        K: SessionSink<Standard, U> + Send,
    {
        let count = NonZeroUsize::new(sinks.len()).expect("at least one shard");
        let mut shards: Shards<_> = SessionPipeline::shards(count, || self.try_session_pipeline(budget))
            .expect("a valid configuration");
        shards.run(source, sinks).expect("a source in memory has no errors");
        shards.stats()
    }

    /// Only a budget that is too small may refuse a configuration of the tables above.
    fn accept<P>(&self, pipeline: Result<P, ConfigError>) -> Option<P> {
        match pipeline {
            Ok(pipeline) => Some(pipeline),
            Err(_) if self.budget != 0 => None,
            Err(error) => panic!("{error} from {self:?}"),
        }
    }
}

/// What targets do with any kind of pipeline.
pub trait Rig<K> {
    fn frame(&mut self, frame: &Frame<'_>, sink: &mut K);
    fn batch(&mut self, batch: &FrameBatch, sink: &mut K);
    fn advance(&mut self, now: Timestamp, sink: &mut K);
    fn remove(&mut self, id: FlowId, sink: &mut K) -> bool;
    fn finish(&mut self, sink: &mut K);
    fn check_invariants(&self);
    fn stats(&self) -> PipelineStats;
    /// The name of an open flow, counted in the order of their slots, wrapping around.
    fn flow(&self, number: usize) -> Option<FlowId>;
    fn flow_count(&self) -> usize;
}

fn nth_flow<S>(tracker: &flowgauge::tracker::Tracker<S>, number: usize) -> Option<FlowId> {
    let count = tracker.len();
    tracker.iter().nth(number.checked_rem(count)?).map(|(view, _)| view.id())
}

macro_rules! rig {
    ([$($generics:tt)*] [$($Pipeline:tt)*] [$($Sink:tt)*] $remove:expr) => {
        impl<$($generics)*, K: $($Sink)*> Rig<K> for $($Pipeline)* {
            fn frame(&mut self, frame: &Frame<'_>, sink: &mut K) {
                self.frame(frame, sink);
            }
            fn batch(&mut self, batch: &FrameBatch, sink: &mut K) {
                self.batch(batch, sink);
            }
            fn advance(&mut self, now: Timestamp, sink: &mut K) {
                self.advance(now, sink);
            }
            fn remove(&mut self, id: FlowId, sink: &mut K) -> bool {
                $remove(self, id, sink)
            }
            fn finish(&mut self, sink: &mut K) {
                self.finish(sink);
            }
            fn check_invariants(&self) {
                self.check_invariants();
            }
            fn stats(&self) -> PipelineStats {
                self.stats()
            }
            fn flow(&self, number: usize) -> Option<FlowId> {
                nth_flow(self.tracker(), number)
            }
            fn flow_count(&self) -> usize {
                self.tracker().len()
            }
        }
    };
}

rig! { [S: Default] [Pipeline<S>] [FlowSink<S>]
|pipeline: &mut Pipeline<S>, id, sink: &mut K| pipeline.tracker_mut().remove(id, sink) }
rig! { [U: Default] [StreamPipeline<U>] [StreamSink<U>] Self::remove }
rig! { [U: Default] [SessionPipeline<Standard, U>] [SessionSink<Standard, U>] Self::remove }
