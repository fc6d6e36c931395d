//! Determinism of shards: any number of shards and batches of any size give the same records, octets and counts.

mod ahead;
mod runs;
#[cfg(feature = "protocols")]
mod sessions;
mod sources;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use flowgauge::base::{ConfigProblem, EndReason, FlowKey, Frame, FrameBatch, Limits, Side, Timestamp};
use flowgauge::decode::link::Decapsulation;
use flowgauge::filter::Filter;
use flowgauge::pipeline::{
    Builder, ChecksumHandling, Error, ErrorPolicy, Flows, Pipeline, PipelineStats, Records, RunEnd,
    RunOptions, Sink, Streams,
};
use flowgauge::reassembler::StreamEvent;
use flowgauge::record::FlowRecord;
use flowgauge::source::{FileSource, Source};
use flowgauge::tracker::{Flow, FlowEvent, FlowView, Interest, TrackerConfig};

use sources::{Rebatched, captures};

/// Collects records and octets, and counts events.
#[derive(Default)]
struct Collector {
    records: Vec<FlowRecord>,
    streams: Vec<(FlowKey, [Vec<u8>; 2])>,
    event_count: u64,
}

impl Sink for Collector {
    type State = [Vec<u8>; 2];
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::EVENTS
    }

    fn event(&mut self, _: &mut Flow<'_, [Vec<u8>; 2]>, _: &FlowEvent) {
        self.event_count += 1;
    }

    fn record(&mut self, flow: &mut Flow<'_, [Vec<u8>; 2]>, reason: EndReason) {
        if reason == EndReason::ActiveTimeout {
            self.records.push(flow.view.record(reason));
        }
    }

    // Records of all flows that ended, including those without packets since their active timeout.
    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, octets: [Vec<u8>; 2]) {
        self.records.push(view.record(reason));
        self.streams.push((*view.key(), octets));
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, [Vec<u8>; 2]>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let octets = &mut flow.state[side.index()];
        match event {
            StreamEvent::Chunk(chunk) => octets.extend_from_slice(chunk.bytes),
            StreamEvent::Gap(gap) => octets.extend_from_slice(&gap.len.to_le_bytes()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The combined results of all shards, sorted.
#[derive(Debug, PartialEq)]
struct Results {
    records: Vec<String>,
    streams: Vec<(FlowKey, [Vec<u8>; 2])>,
    event_count: u64,
    stats: String,
}

fn config() -> TrackerConfig {
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_millis(200));
    config
}

fn builder() -> Builder {
    Pipeline::builder().tracker(config())
}

/// Returns the statistics without values that depend on batches or are upper bounds.
fn comparable_stats(mut stats: PipelineStats) -> String {
    stats.tracker.hot_hit_count = 0;
    stats.tracker.open_count_max = 0;
    stats.streams.held_bytes_max = 0;
    stats.queues = Default::default();
    format!("{stats:?}")
}

fn run(source: &mut impl Source, count: usize) -> Results {
    let mut sinks: Vec<Collector> = (0..count).map(|_| Collector::default()).collect();
    // Frames that were read before an error count.
    let options = RunOptions::default().error_policy(ErrorPolicy::Continue);
    let run = builder().checksums(ChecksumHandling::Count).run_shards(&mut sinks, source, &options);
    let stats = run.expect("a valid configuration").stats;
    let mut records: Vec<_> =
        sinks.iter().flat_map(|sink| &sink.records).map(|record| format!("{record:?}")).collect();
    records.sort();
    let event_count = sinks.iter().map(|sink| sink.event_count).sum();
    let mut streams: Vec<_> = sinks.into_iter().flat_map(|sink| sink.streams).collect();
    streams.sort();
    Results { records, streams, event_count, stats: comparable_stats(stats) }
}

#[test]
fn any_number_of_shards_gives_the_same_results() {
    let mut record_count = 0;
    for path in captures() {
        for (jitter, has_spikes) in [(0, false), (50_000_000, false), (0, true)] {
            let Some(mut whole) = Rebatched::new(&path, usize::MAX >> 1, jitter) else { continue };
            if has_spikes {
                whole = whole.with_spikes(50);
            }
            let one = run(&mut whole, 1);
            record_count += one.records.len();
            for (count, size) in [(1, 1), (2, 1000), (3, 7), (8, 64)] {
                // A few batch sizes suffice for the largest captures.
                if whole.frames.len() > 10_000 && count != 2 {
                    continue;
                }
                (whole.at, whole.size) = (0, size);
                let sharded = run(&mut whole, count);
                let case = format!("{} with {count} shards by {size}, jitter {jitter}", path.display());
                assert_eq!((sharded.event_count, &sharded.stats), (one.event_count, &one.stats), "{case}");
                for (sharded, one) in sharded.records.iter().zip(&one.records) {
                    assert_eq!(sharded, one, "{case}");
                }
                for ((key, sharded), (_, one)) in sharded.streams.iter().zip(&one.streams) {
                    assert!(
                        sharded == one,
                        "{case}: {key} {:?} {:?}",
                        sharded.each_ref().map(Vec::len),
                        one.each_ref().map(Vec::len)
                    );
                }
                assert!(sharded == one, "{case}");
            }
        }
    }
    assert!(record_count > 100, "{record_count}");
}

#[test]
fn a_filter_selects_the_same_packets_for_any_number_of_shards() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/dns.pcap");
    let mut results = Vec::new();
    for count in [1, 3] {
        let builder = builder().filter(Filter::parse("udp or icmp").expect("a filter"));
        let mut records: Vec<Vec<String>> = vec![Vec::new(); count];
        let mut sinks: Vec<_> = records
            .iter_mut()
            .map(|all| Records::new(|record: FlowRecord| all.push(format!("{record:?}"))))
            .collect();
        let mut source = FileSource::open(&path).unwrap();
        let stats = builder.run_shards(&mut sinks, &mut source, &RunOptions::default()).unwrap().stats;
        assert!(stats.filtered_count > 0);
        let stats = comparable_stats(stats);
        let mut records = records.concat();
        records.sort();
        results.push((records, stats));
    }
    assert_eq!(results[0], results[1]);
}

#[test]
fn configurations_that_shards_do_not_support_are_rejected() {
    let mut config = config();
    config.key_policy.decapsulation = Decapsulation::Both;
    let builder = Pipeline::builder().tracker(config);
    let run = |sinks: &mut [()]| {
        let mut source = Rebatched { frames: FrameBatch::new(), at: 0, size: 1 };
        builder.run_shards(sinks, &mut source, &RunOptions::default()).map(|_| ())
    };
    assert!(run(&mut [()]).is_ok());
    let Err(Error::Config(error)) = run(&mut [(), ()]) else { panic!("two shards accept linked flows") };
    assert_eq!(error.problem, ConfigProblem::Conflict { with: "more than one shard" });
    let Err(Error::Config(error)) = run(&mut []) else { panic!("zero shards are accepted") };
    assert!(matches!(error.problem, ConfigProblem::OutOfRange { min: 1, .. }), "{error}");
}

/// Stops after its first record.
struct Stop(bool);

impl Sink for Stop {
    type State = ();
    type Stage = Flows;

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.0 = true;
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_sink_can_stop_all_shards() {
    let mut frames = FrameBatch::new();
    let template =
        Rebatched::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap"), 1, 0).unwrap();
    // The frames are an hour apart, so flows end all the time.
    for hour in 0..20_000_u64 {
        let frame = template.frames.get(hour as usize % template.frames.len()).unwrap();
        frames.push(&Frame { timestamp: Timestamp::from_nanos(hour * 3_600_000_000_000), ..frame });
    }
    let mut source = Rebatched { frames, at: 0, size: 10 };
    let mut sinks = [Stop(false), Stop(false)];
    let summary = builder().run_shards(&mut sinks, &mut source, &RunOptions::default()).unwrap();
    let count = summary.stats.frame_count;
    assert!((1..5000).contains(&count), "{count}");
    assert_eq!(summary.end, RunEnd::SinkBreak);
}

#[test]
#[should_panic(expected = "on purpose")]
fn a_panic_of_a_sink_is_propagated() {
    struct Panic;
    impl Sink for Panic {
        type State = ();
        type Stage = Flows;

        fn started(&mut self, _: &mut Flow<'_, ()>) {
            panic!("on purpose");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap");
    let mut source = Rebatched::new(&path, 1, 0).unwrap();
    let _ = builder().run_shards(&mut [Panic, Panic, Panic], &mut source, &RunOptions::default());
}

/// The flow that ends last begins first, so its shard delivers that record before all its others. Records of the other
/// shards must not wait for it, and it must not wait for them.
#[test]
fn shards_that_end_at_different_times_do_not_wait_for_each_other() {
    use etherparse::PacketBuilder;
    let udp = |flow: u32| {
        let [a, b, c, d] = flow.to_be_bytes();
        let builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10 + a, b, c, d], [192, 0, 2, 1], 64).udp(1, 53);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[]).unwrap();
        frame
    };
    const COUNT: u32 = 60_000;
    let mut frames = FrameBatch::new();
    for (millis, flow) in (0..COUNT).map(|flow| (flow / 100, flow)).chain([(COUNT / 100, 0)]) {
        frames.push(&Frame::ethernet(Timestamp::from_nanos(u64::from(millis) * 1_000_000), &udp(flow)));
    }
    let mut source = Rebatched { frames, at: 0, size: 1000 };
    let (builder, options) = (Pipeline::builder(), RunOptions::default());
    let mut count = 0;
    builder.run_records::<Flows>(2, &mut source, &options, |_| true, |_| count += 1).unwrap();
    assert_eq!(count, COUNT);

    // A panic in one shard also ends the whole run.
    source.at = 0;
    let is_wanted = |view: &FlowView<'_>| {
        let port = |side| view.key().port(side).expect("a port");
        assert!(port(Side::A) + port(Side::B) != 54, "on purpose");
        true
    };
    let run = std::panic::AssertUnwindSafe(|| {
        builder.run_records::<Flows>(2, &mut source, &options, is_wanted, |_| ())
    });
    assert!(std::panic::catch_unwind(run).is_err());
}

#[test]
fn merged_records_are_complete() {
    for name in ["web.pcap", "dns.pcap", "mail.pcap"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
        let mut source = Rebatched::new(&path, 50, 0).unwrap();
        let mut one = Vec::new();
        let sink = Records::new(|record| one.push(record));
        let options = RunOptions::default();
        builder().build(sink).unwrap().run(&mut source, &options).unwrap();
        for count in [1, 2, 8] {
            let mut merged = Vec::new();
            for _ in 0..2 {
                source.at = 0;
                let mut records = Vec::new();
                let deliver = |record| records.push(record);
                builder().run_records::<Flows>(count, &mut source, &options, |_| true, deliver).unwrap();
                merged.push(records);
            }
            let sorted = |records: &[FlowRecord]| {
                let mut texts: Vec<_> = records.iter().map(|record| format!("{record:?}")).collect();
                texts.sort();
                texts
            };
            assert!(merged.iter().all(|records| sorted(records) == sorted(&one)), "{name} with {count}");
        }
        let mut wanted_count = 0;
        source.at = 0;
        let is_wanted = |view: &FlowView<'_>| view.octet_count() > 1000;
        builder().run_records::<Flows>(2, &mut source, &options, is_wanted, |_| wanted_count += 1).unwrap();
        assert_eq!(wanted_count, one.iter().filter(|record| record.octet_count() > 1000).count());
    }
}

/// Fragments that remain in the pool until the end may be later than all packets. Every shard ends its flows at that
/// time.
#[test]
fn fragments_that_remain_at_the_end_set_the_clock_of_all_shards() {
    use etherparse::PacketBuilder;
    let udp = |port: u16| {
        let builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(port, 53);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[7; 32]).unwrap();
        frame
    };
    let mut frames = FrameBatch::new();
    for port in 1000..1016 {
        frames.push(&Frame::ethernet(Timestamp::ZERO, &udp(port)));
    }
    // Two minutes later, the first fragment of a datagram without the other fragments.
    let mut fragment = udp(2000);
    fragment[14 + 6] |= 0x20;
    frames.push(&Frame::ethernet(Timestamp::from_nanos(120_000_000_000), &fragment));
    let mut source = Rebatched { frames, at: 0, size: 5 };
    let one = run(&mut source, 1);
    assert_eq!(one.records.iter().filter(|record| record.contains("IdleTimeout")).count(), 16);
    for count in [2, 4] {
        source.at = 0;
        assert_eq!(run(&mut source, count), one, "{count} shards");
    }
}

/// Counts the open flows of all shards.
struct Open<'a> {
    now: &'a AtomicUsize,
    max: &'a AtomicUsize,
}

impl Sink for Open<'_> {
    type State = ();
    type Stage = Flows;

    fn started(&mut self, _: &mut Flow<'_, ()>) {
        self.max.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.now.fetch_sub(1, SeqCst);
    }
}

#[test]
fn the_limit_of_flows_applies_to_all_shards_together() {
    use etherparse::PacketBuilder;
    const FLOW_COUNT: usize = 5000;
    let mut frames = FrameBatch::new();
    for number in 0..FLOW_COUNT as u64 {
        let [.., a, b] = number.to_be_bytes();
        let builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, a, b], [192, 0, 2, 1], 64).udp(1, 53);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[]).unwrap();
        frames.push(&Frame::ethernet(Timestamp::from_nanos(number), &frame));
    }
    let mut source = Rebatched { frames, at: 0, size: 100 };
    for (shard_count, flow_count_max) in [(1, 5), (4, 1), (4, 3), (4, 5), (4, 7), (3, 1000), (16, 17)] {
        let mut limits = Limits::DEFAULT;
        limits.flow_count_max = flow_count_max;
        let (now, max) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut sinks: Vec<_> = (0..shard_count).map(|_| Open { now: &now, max: &max }).collect();
        source.at = 0;
        let run = builder().limits(limits).run_shards(&mut sinks, &mut source, &RunOptions::default());
        let tracker = run.unwrap().stats.tracker;
        assert_eq!((tracker.packet_count, tracker.started_count), (FLOW_COUNT as u64, FLOW_COUNT as u64));
        // There are enough flows for each shard to reach its share of the limit.
        let case = format!("{shard_count} shards, at most {flow_count_max}");
        assert_eq!((tracker.open_count_max, now.into_inner()), (flow_count_max.into(), 0), "{case}");
        assert!(max.into_inner() <= flow_count_max as usize, "{case}");
    }
}
