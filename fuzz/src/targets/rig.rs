//! The only module that constructs pipelines: configurations drawn from the input.

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
        if self.flow_caps != 0 {
            limits.flow_count_max = u32::from(self.flow_caps & 15) + 1;
            limits.tcp_extra_count_max = u32::from(self.flow_caps >> 4 & 3);
            limits.encapsulation_count_max = u32::from(self.flow_caps >> 6);
        }
        if self.fragment_caps != 0 {
            limits.fragment_datagram_count_max = u32::from(self.fragment_caps & 7) + 1;
            limits.fragment_per_datagram_count_max = u32::from(self.fragment_caps >> 3 & 7) + 2;
            // An empty pool takes 64 KiB for the datagram that is completed.
            limits.fragment_bytes_max = 66_000 + (1024 << ((self.fragment_caps >> 6) * 2));
        }
        limits.dedup_frame_count_max = 1 << (self.dedup >> 4);
        limits.dedup_bytes_max = DEDUP_WINDOW_OCTETS_MAX;
        if self.stream_caps != 0 {
            limits.stream_bytes_max = u64::from(self.stream_caps & 15) * 3000;
            limits.stream_side_bytes_max = u64::from(self.stream_caps >> 4 & 3) * 3000;
            limits.stream_side_segment_count_max = u32::from(self.stream_caps >> 6) * 2;
        }
        if self.session_caps != 0 {
            limits.session_bytes_max = 600 * u64::from(self.session_caps & 63);
            limits.session_side_bytes_max = 512 << ((self.session_caps >> 6) * 2);
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
        config.is_naming_only = self.session_caps & 15 == 15;
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

    /// A pipeline that makes flows, or `None` if the budget is too small for one.
    pub fn flows<K: Sink<Stage = Flows>>(&self, budget: &Budget, sink: K) -> Option<Pipeline<K>> {
        self.accept(self.builder(budget).build(sink))
    }

    /// A pipeline with streams.
    pub fn stream_pipeline<K: Sink<Stage = Streams>>(&self, budget: &Budget, sink: K) -> Option<Pipeline<K>> {
        self.accept(self.builder(budget).streams(self.streams()).build(sink))
    }

    /// A pipeline with streams and sessions.
    pub fn session_pipeline<K>(&self, budget: &Budget, sink: K) -> Option<Pipeline<K>>
    where
        K: Sink<Stage = Sessions<Standard>>,
    {
        self.accept(self.session_builder(budget).build(sink))
    }

    /// Runs a source through shards with sessions, one sink each; the sum of their statistics.
    pub fn run_shards<K>(&self, budget: &Budget, source: &mut impl Source, sinks: &mut [K]) -> PipelineStats
    where
        K: Sink<Stage = Sessions<Standard>> + Send,
    {
        let run = self.session_builder(budget).run_shards(sinks, source, &RunOptions::default());
        run.expect("a valid configuration, and a source in memory has no errors").stats
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

/// The name of an open flow, counted in the order of their slots, wrapping around.
pub fn nth_flow<K: Sink>(pipeline: &Pipeline<K>, number: usize) -> Option<FlowId> {
    let count = pipeline.flow_count();
    pipeline.flows().nth(number.checked_rem(count)?).map(|(view, _)| view.id())
}
