//! Construction of all pipelines, with configurations from the input.

use std::time::Duration;

use arbitrary::Arbitrary;
use flowgauge::base::{Budget, ConfigError, Limits, Resources};
use flowgauge::decode::extractor::{Direction, Scope};
use flowgauge::decode::fragment::{OverlapPolicy as FragmentPolicy, PoolConfig};
use flowgauge::decode::link::Decapsulation;
use flowgauge::dedup::{DedupConfig, Mode};
use flowgauge::filter::Filter;
use flowgauge::pipeline::{
    Builder, ChecksumHandling, Flows, FragmentHandling, Pipeline, PipelineStats, RunOptions, Sessions, Sink,
    Streams,
};
use flowgauge::protocols::Standard;
use flowgauge::reassembler::{OverflowPolicy, OverlapPolicy, ReassemblerConfig};
use flowgauge::session::DriverConfig;
use flowgauge::source::Source;
use flowgauge::tracker::{FlowId, TrackerConfig};

/// Choices of a configuration. Zero in all fields means the defaults.
#[derive(Arbitrary, Clone, Debug, Default)]
pub struct Setup {
    fragments: u8,
    fragment_policy: u8,
    fragment_limits: u8,
    checksums: u8,
    decapsulation: u8,
    encapsulation: u8,
    dedup: u8,
    key: u8,
    filter: u8,
    active_timeout: u8,
    flow_limits: u8,
    overlap: u8,
    overflow: u8,
    compared: u8,
    stream_limits: u8,
    session_limits: u8,
    budget: u8,
    pub spare: u8,
}

/// Number of octets of the input that [`Setup`] reads.
pub const SETUP_LEN: usize = 18;

/// Filters by all properties: address, port, protocol, direction and VLAN.
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
    /// Returns whether no input can reach the limits. Only then do batches and shards have the same results.
    pub fn has_ample_limits(&self) -> bool {
        self.fragment_limits | self.flow_limits | self.stream_limits | self.session_limits | self.budget == 0
    }

    /// Returns the same setup without limits.
    pub fn with_ample_limits(&self) -> Self {
        Self {
            fragment_limits: 0,
            flow_limits: 0,
            stream_limits: 0,
            session_limits: 0,
            budget: 0,
            ..self.clone()
        }
    }

    /// Returns the same setup with a decapsulation that shards support.
    pub fn shardable(&self) -> Self {
        Self { decapsulation: self.decapsulation & 1, ..self.clone() }
    }

    pub fn budget(&self) -> Budget {
        Budget::new(match self.budget {
            0 => 1 << 30,
            // The first segment of the flow table, 1024 flows with their states, is allocated in advance.
            budget => 300_000 + u64::from(budget) * 4096,
        })
    }

    /// Returns whether each record counts every frame of its flow, so that the sums of records and frames agree.
    pub fn is_linked(&self) -> bool {
        self.decapsulation % 3 == 2
    }

    pub fn has_dedup(&self) -> bool {
        self.dedup != 0
    }

    pub fn has_active_timeout(&self) -> bool {
        self.active_timeout != 0
    }

    fn tracker(&self) -> TrackerConfig {
        let mut config = TrackerConfig::default();
        config.staged_flow_count_min = if self.spare & 1 == 0 { 0 } else { 1 << 15 };
        if self.has_active_timeout() {
            config.active_timeout = Some(Duration::from_secs(u64::from(self.active_timeout)));
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

    fn limits(&self) -> Limits {
        let mut limits = Limits::DEFAULT;
        if self.flow_limits != 0 {
            limits.flow_count_max = u32::from(self.flow_limits & 15) + 1;
            limits.tcp_extra_count_max = u32::from(self.flow_limits >> 4 & 3);
            limits.encapsulation_count_max = u32::from(self.flow_limits >> 6);
        }
        if self.fragment_limits != 0 {
            limits.fragment_datagram_count_max = u32::from(self.fragment_limits & 7) + 1;
            limits.fragment_per_datagram_count_max = u32::from(self.fragment_limits >> 3 & 7) + 2;
            // An empty pool allocates 64 KiB for completed datagrams.
            limits.fragment_bytes_max = 66_000 + (1024 << ((self.fragment_limits >> 6) * 2));
        }
        limits.dedup_frame_count_max = 1 << (self.dedup >> 4);
        limits.dedup_bytes_max = DEDUP_WINDOW_OCTETS_MAX;
        if self.stream_limits != 0 {
            limits.stream_bytes_max = u64::from(self.stream_limits & 15) * 3000;
            limits.stream_side_bytes_max = u64::from(self.stream_limits >> 4 & 3) * 3000;
            limits.stream_side_segment_count_max = u32::from(self.stream_limits >> 6) * 2;
        }
        if self.session_limits != 0 {
            limits.session_bytes_max = 600 * u64::from(self.session_limits & 63);
            limits.session_side_bytes_max = 512 << ((self.session_limits >> 6) * 2);
        }
        limits
    }

    fn pool(&self) -> PoolConfig {
        let mut pool = PoolConfig::default();
        let policies = FragmentPolicy::ALL;
        pool.policy = policies[usize::from(self.fragment_policy) % policies.len()];
        pool
    }

    fn dedup_config(&self) -> DedupConfig {
        let mut config = DedupConfig::default();
        config.mode = if self.dedup & 2 == 0 { Mode::Exact } else { Mode::IgnoreMirrorChanges };
        config.verifies = self.dedup & 4 != 0;
        config.only_between_interfaces = self.dedup & 8 != 0;
        config.window = Duration::from_millis(u64::from(self.dedup >> 4));
        config
    }

    fn streams(&self) -> ReassemblerConfig {
        let mut config = ReassemblerConfig::default();
        let policies = OverlapPolicy::ALL;
        config.overlap = policies[usize::from(self.overlap) % policies.len()];
        config.overflow = match self.overflow % 3 {
            0 => OverflowPolicy::Slide,
            1 => OverflowPolicy::Poison,
            _ => OverflowPolicy::DropNewest,
        };
        config.compared_len = u32::from(self.compared) * 16;
        config
    }

    fn sessions(&self) -> DriverConfig {
        let mut config = DriverConfig::default();
        config.is_naming_only = self.session_limits & 15 == 15;
        config
    }

    fn builder(&self, budget: &Budget) -> Builder {
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
        let resources = Resources::new(self.limits()).with_budget(budget.clone()).with_seeds([1, 2, 3, 4]);
        let mut builder = Pipeline::builder()
            .resources(resources)
            .tracker(self.tracker())
            .fragments(handling)
            .fragment_pool(self.pool())
            .checksums(checksums)
            .encapsulation(self.encapsulation & 1 != 0);
        if self.has_dedup() {
            builder = builder.dedup(self.dedup_config());
        }
        if self.filter & 8 != 0 {
            let text = FILTERS[usize::from(self.filter & 7) % FILTERS.len()];
            builder = builder.filter(Filter::parse(text).expect("the filters of the table are valid"));
        }
        builder
    }

    fn session_builder(&self, budget: &Budget) -> Builder {
        self.builder(budget).streams(self.streams()).sessions(self.sessions())
    }

    /// Creates a pipeline for flows, or returns `None` if the budget is too small.
    pub fn flows<K: Sink<Stage = Flows>>(&self, budget: &Budget, sink: K) -> Option<Pipeline<K>> {
        self.accept(self.builder(budget).build(sink))
    }

    /// Creates a pipeline with streams.
    pub fn stream_pipeline<K: Sink<Stage = Streams>>(&self, budget: &Budget, sink: K) -> Option<Pipeline<K>> {
        self.accept(self.builder(budget).streams(self.streams()).build(sink))
    }

    /// Creates a pipeline with streams and sessions.
    pub fn session_pipeline<K>(&self, budget: &Budget, sink: K) -> Option<Pipeline<K>>
    where
        K: Sink<Stage = Sessions<Standard>>,
    {
        self.accept(self.session_builder(budget).build(sink))
    }

    /// Runs shards with sessions and one sink each on a source, and returns the sum of their statistics.
    pub fn run_shards<K>(&self, budget: &Budget, source: &mut impl Source, sinks: &mut [K]) -> PipelineStats
    where
        K: Sink<Stage = Sessions<Standard>> + Send,
    {
        let run = self.session_builder(budget).run_shards(sinks, source, &RunOptions::default());
        run.expect("a valid configuration and a source without errors").stats
    }

    /// Returns the pipeline, or `None` if the budget is too small; other errors of a configuration panic.
    fn accept<P>(&self, pipeline: Result<P, ConfigError>) -> Option<P> {
        match pipeline {
            Ok(pipeline) => Some(pipeline),
            Err(_) if self.budget != 0 => None,
            Err(error) => panic!("{error} from {self:?}"),
        }
    }
}

/// Returns the id of an open flow by its position in the order of slots, modulo their number.
pub fn nth_flow<K: Sink>(pipeline: &Pipeline<K>, number: usize) -> Option<FlowId> {
    let count = pipeline.flow_count();
    pipeline.flows().nth(number.checked_rem(count)?).map(|(view, _)| view.id())
}
