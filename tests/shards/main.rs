//! One, two, three and eight shards, and batches of any size: the same records, octets and counts.

#[cfg(feature = "protocols")]
mod sessions;
mod sources;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use flowgauge::base::{EndReason, FlowKey, Frame, FrameBatch, Side, Timestamp};
use flowgauge::filter::Filter;
use flowgauge::link::Decapsulation;
use flowgauge::pipeline::{
    ChecksumHandling, ConfigError, Pipeline, PipelineStats, Records, StreamPipeline, StreamSink,
};
use flowgauge::reassembler::{ReassemblerConfig, StreamEvent};
use flowgauge::record::FlowRecord;
use flowgauge::source::{FileSource, Source};
use flowgauge::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest, TrackerConfig};

use sources::{Rebatched, captures};

/// Keeps records and octets, and counts events.
#[derive(Default)]
struct Keep {
    records: Vec<FlowRecord>,
    streams: Vec<(FlowKey, [Vec<u8>; 2])>,
    event_count: u64,
}

impl FlowSink<[Vec<u8>; 2]> for Keep {
    fn interest(&self) -> Interest {
        Interest::EVENTS
    }

    fn event(&mut self, flow: &mut Flow<'_, [Vec<u8>; 2]>, event: &FlowEvent) {
        self.event_count += 1;
        if *event == FlowEvent::ActiveTimeout {
            self.records.push(flow.view.record(EndReason::ActiveTimeout));
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, octets: [Vec<u8>; 2]) {
        self.records.push(view.record(reason));
        self.streams.push((*view.key(), octets));
    }
}

impl StreamSink<[Vec<u8>; 2]> for Keep {
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

/// All that shards together say, in an order of its own.
#[derive(Debug, PartialEq)]
struct Said {
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

fn shard() -> Result<StreamPipeline<[Vec<u8>; 2]>, ConfigError> {
    Pipeline::new(config())?
        .with_checksums(ChecksumHandling::Count)
        .with_streams(ReassemblerConfig::default())
}

/// Statistics without what depends on batches or is a bound.
fn counted(mut stats: PipelineStats) -> String {
    stats.tracker.hot_hit_count = 0;
    stats.tracker.open_count_max = 0;
    stats.streams.held_bytes_max = 0;
    stats.queues = Default::default();
    format!("{stats:?}")
}

fn run(source: &mut impl Source, count: usize) -> Said {
    let mut sinks: Vec<Keep> = (0..count).map(|_| Keep::default()).collect();
    let count = NonZeroUsize::new(count).expect("a shard");
    let mut shards = StreamPipeline::shards(count, shard).expect("a sound configuration");
    // What was read before an error counts.
    let _ = shards.run(source, &mut sinks);
    let mut records: Vec<_> =
        sinks.iter().flat_map(|sink| &sink.records).map(|record| format!("{record:?}")).collect();
    records.sort();
    let event_count = sinks.iter().map(|sink| sink.event_count).sum();
    let mut streams: Vec<_> = sinks.into_iter().flat_map(|sink| sink.streams).collect();
    streams.sort();
    Said { records, streams, event_count, stats: counted(shards.stats()) }
}

#[test]
fn any_number_of_shards_says_the_same() {
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
                // What one pipeline says of the largest captures is enough with few sizes.
                if whole.frames.len() > 10_000 && count != 2 {
                    continue;
                }
                (whole.at, whole.size) = (0, size);
                let said = run(&mut whole, count);
                let what = format!("{} with {count} shards by {size}, jitter {jitter}", path.display());
                assert_eq!((said.event_count, &said.stats), (one.event_count, &one.stats), "{what}");
                for (said, one) in said.records.iter().zip(&one.records) {
                    assert_eq!(said, one, "{what}");
                }
                for ((key, said), (_, one)) in said.streams.iter().zip(&one.streams) {
                    assert!(
                        said == one,
                        "{what}: {key} {:?} {:?}",
                        said.each_ref().map(Vec::len),
                        one.each_ref().map(Vec::len)
                    );
                }
                assert!(said == one, "{what}");
            }
        }
    }
    assert!(record_count > 100, "{record_count}");
}

#[test]
fn a_filter_leaves_the_same_to_shards() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/dns.pcap");
    let mut seen = Vec::new();
    for count in [1, 3] {
        let make = || {
            let filter = Filter::parse("udp or icmp").expect("a filter");
            Ok(Pipeline::<()>::new(config())?.with_filter(filter))
        };
        let mut shards = Pipeline::shards(NonZeroUsize::new(count).unwrap(), make).unwrap();
        let mut records: Vec<Vec<String>> = vec![Vec::new(); count];
        let mut sinks: Vec<_> = records
            .iter_mut()
            .map(|all| Records::new(|record: FlowRecord| all.push(format!("{record:?}"))))
            .collect();
        shards.run(&mut FileSource::open(&path).unwrap(), &mut sinks).unwrap();
        let stats = counted(shards.stats());
        assert!(shards.stats().filtered_count > 0);
        let mut records = records.concat();
        records.sort();
        seen.push((records, stats));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn what_shards_cannot_do_is_refused() {
    let make = || {
        let mut config = config();
        config.key_policy.decapsulation = Decapsulation::Both;
        Pipeline::<()>::new(config)
    };
    assert!(Pipeline::shards(NonZeroUsize::MIN, make).is_ok());
    let two = NonZeroUsize::new(2).unwrap();
    assert_eq!(Pipeline::shards(two, make).err(), Some(ConfigError::LinkedTunnels));
}

/// Stops after its first record.
struct Stop(bool);

impl FlowSink<()> for Stop {
    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.0 = true;
    }

    fn wants_more(&self) -> bool {
        !self.0
    }
}

#[test]
fn a_sink_can_stop_all_shards() {
    let mut frames = FrameBatch::new();
    let template =
        Rebatched::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap"), 1, 0).unwrap();
    // Hours apart, so that flows end all the time.
    for hour in 0..20_000_u64 {
        let frame = template.frames.get(hour as usize % template.frames.len()).unwrap();
        frames.push(&Frame { timestamp: Timestamp::from_nanos(hour * 3_600_000_000_000), ..frame });
    }
    let mut source = Rebatched { frames, at: 0, size: 10 };
    let mut shards =
        Pipeline::shards(NonZeroUsize::new(2).unwrap(), || Pipeline::<()>::new(config())).unwrap();
    shards.run(&mut source, &mut [Stop(false), Stop(false)]).unwrap();
    let count = shards.stats().frame_count;
    assert!((1..5000).contains(&count), "{count}");
}

#[test]
#[should_panic(expected = "a scoped thread panicked")]
fn a_sink_that_panics_is_heard() {
    struct Panic;
    impl FlowSink<()> for Panic {
        fn started(&mut self, _: &mut Flow<'_, ()>) {
            panic!("on purpose");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/web.pcap");
    let mut source = Rebatched::new(&path, 1, 0).unwrap();
    let mut shards =
        Pipeline::shards(NonZeroUsize::new(3).unwrap(), || Pipeline::<()>::new(config())).unwrap();
    let _ = shards.run(&mut source, &mut [Panic, Panic, Panic]);
}

/// A flow that ends last begins first, and its shard has its record before all others: those of the other shards must not wait
/// for it, nor it for them.
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
    let make = || Pipeline::<()>::new(TrackerConfig::default());
    let mut shards = Pipeline::shards(NonZeroUsize::new(2).unwrap(), make).unwrap();
    let mut count = 0;
    shards.run_records(&mut source, |_| true, |_| count += 1).unwrap();
    assert_eq!(count, COUNT);

    // A panic in one shard ends all of it, too.
    source.at = 0;
    let mut shards = Pipeline::shards(NonZeroUsize::new(2).unwrap(), make).unwrap();
    let wants = |view: &FlowView<'_>| {
        assert!(view.key().port(Side::A) + view.key().port(Side::B) != 54, "on purpose");
        true
    };
    let run = std::panic::AssertUnwindSafe(|| shards.run_records(&mut source, wants, |_| ()));
    assert!(std::panic::catch_unwind(run).is_err());
}

#[test]
fn merged_records_are_all_of_them() {
    for name in ["web.pcap", "dns.pcap", "mail.pcap"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
        let mut source = Rebatched::new(&path, 50, 0).unwrap();
        let mut one = Vec::new();
        let mut pipeline = Pipeline::<()>::new(config()).unwrap();
        pipeline.run(&mut source, &mut Records::new(|record| one.push(record))).unwrap();
        for count in [1, 2, 8] {
            let mut merged = Vec::new();
            for _ in 0..2 {
                source.at = 0;
                let count = NonZeroUsize::new(count).unwrap();
                let mut shards = Pipeline::shards(count, || Pipeline::<()>::new(config())).unwrap();
                let mut records = Vec::new();
                shards.run_records(&mut source, |_| true, |record| records.push(record)).unwrap();
                merged.push(records);
            }
            let sorted = |records: &[FlowRecord]| {
                let mut texts: Vec<_> = records.iter().map(|record| format!("{record:?}")).collect();
                texts.sort();
                texts
            };
            assert!(merged.iter().all(|records| sorted(records) == sorted(&one)), "{name} with {count}");
        }
        let mut shards =
            Pipeline::shards(NonZeroUsize::new(2).unwrap(), || Pipeline::<()>::new(config())).unwrap();
        let mut wanted_count = 0;
        source.at = 0;
        let wants = |view: &FlowView<'_>| view.octet_count() > 1000;
        shards.run_records(&mut source, wants, |_| wanted_count += 1).unwrap();
        assert_eq!(wanted_count, one.iter().filter(|record| record.octet_count() > 1000).count());
    }
}

/// What waits in the pool of fragments until the end may be later than all packets. Every shard ends its flows at that time.
#[test]
fn fragments_that_wait_until_the_end_set_the_clock_of_all_shards() {
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
    // The first fragment of a datagram whose others never come, two minutes later.
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

impl FlowSink<()> for Open<'_> {
    fn started(&mut self, _: &mut Flow<'_, ()>) {
        self.max.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.now.fetch_sub(1, SeqCst);
    }
}

#[test]
fn the_cap_on_flows_bounds_all_shards_together() {
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
        let make = || {
            let mut config = config();
            config.limits.flow_count_max = flow_count_max;
            Pipeline::<()>::new(config)
        };
        let (now, max) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut shards = Pipeline::shards(NonZeroUsize::new(shard_count).unwrap(), make).unwrap();
        let mut sinks: Vec<_> = (0..shard_count).map(|_| Open { now: &now, max: &max }).collect();
        source.at = 0;
        shards.run(&mut source, &mut sinks).unwrap();
        let tracker = shards.stats().tracker;
        assert_eq!((tracker.packet_count, tracker.started_count), (FLOW_COUNT as u64, FLOW_COUNT as u64));
        // With so many flows, each shard reaches its part.
        let what = format!("{shard_count} shards, at most {flow_count_max}");
        assert_eq!((tracker.open_count_max, now.into_inner()), (flow_count_max.into(), 0), "{what}");
        assert!(max.into_inner() <= flow_count_max as usize, "{what}");
    }
}
