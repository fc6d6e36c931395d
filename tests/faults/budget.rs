//! The n-th request for memory is refused, for each n that a short trace has, alone or with all that follow.

use std::ops::ControlFlow;

use flowgauge::base::{Budget, EndReason, Frame, FrameBatch, LinkType, Side, Timestamp};
use flowgauge::dedup::DedupConfig;
use flowgauge::fragment::PoolConfig;
use flowgauge::link::Decapsulation;
use flowgauge::pipeline::{
    ConfigError, FragmentHandling, Pipeline, PipelineStats, StreamPipeline, StreamSink,
};
use flowgauge::reassembler::{ReassemblerConfig, StreamEvent};
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest, TrackerConfig};

use super::{Fault, packets};

/// So much that nothing is refused but what the test refuses.
const LIMIT: u64 = 1 << 30;

/// Frames in a batch; invariants are checked after each.
const BATCH_COUNT: usize = 64;

/// Runs something with a budget that refuses the n-th request alone, then that and all that follow, until there are no more
/// requests. All memory must be given back each time. There are at least `request_count_min` requests.
pub(crate) fn each_refusal(what: &str, request_count_min: u64, mut run: impl FnMut(&Budget, bool)) {
    for is_lasting in [false, true] {
        for number in 0.. {
            let end = if is_lasting { u64::MAX } else { number + 1 };
            let budget = Budget::with_refusals(LIMIT, number..end);
            let _fault = Fault(format!("{what}: request {number}, and all that follow: {is_lasting}"));
            run(&budget, is_lasting);
            assert_eq!(budget.held(), 0, "all memory is given back");
            if budget.refused_count() == 0 {
                println!("{what}: {number} requests");
                assert!(number >= request_count_min, "the trace makes only {number} requests");
                break;
            }
        }
    }
}

/// Frames with times of their own.
#[derive(Default)]
pub(crate) struct Trace {
    frames: FrameBatch,
}

impl Trace {
    fn push(&mut self, data: &[u8]) {
        let timestamp = Timestamp::from_parts(1000, self.frames.len() as u64 * 100_000);
        let wire_len = data.len() as u32;
        self.frames.push(&Frame { timestamp, link_type: LinkType::ETHERNET, data, wire_len, interface: 0 });
    }

    /// Flows of all kinds: new ones without end, and some in tunnels.
    fn flows() -> Self {
        let mut trace = Self::default();
        for number in 0..600_u16 {
            let [high, low] = number.to_be_bytes();
            let mut packet = packets::udp(number % 2 == 1, 5);
            // The last octets of an address of either version.
            packet[14..16].copy_from_slice(&[high, low]);
            trace.push(&packets::ethernet(&packet));
            if number % 40 == 0 {
                trace.push(&packets::ethernet(&packets::vxlan(number.into(), &packet)));
            }
        }
        trace
    }

    /// Datagrams in fragments that wait for each other, and some of which a part never comes.
    fn fragments() -> Self {
        let mut trace = Self::default();
        let ids = 0..15_u32;
        let parts = |id: u32| {
            let packet = packets::udp(id % 3 == 1, 700 + 200 * (id as usize % 20));
            packets::fragments(&packet, id, &[9, 40, 70, 100, 300])
        };
        // The last parts first.
        for back in 1..=3 {
            for id in ids.clone() {
                let parts = parts(id);
                trace.push(&packets::ethernet(&parts[parts.len() - back]));
            }
        }
        for id in ids.filter(|id| id % 7 != 0) {
            let parts = parts(id);
            parts[..parts.len() - 3].iter().for_each(|part| trace.push(&packets::ethernet(part)));
        }
        trace
    }

    /// What captures of programs begin with. Each `every`-th frame with octets is left out, so that streams have holes.
    fn captures(every: usize, count: usize) -> Self {
        use flowgauge::source::{FileSource, Source as _};
        const HEADERS_LEN: usize = 100;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        let mut trace = Self::default();
        for name in ["web.pcap", "dns.pcap", "mail.pcap", "ssh.pcap", "lossy.pcap"] {
            let mut source = FileSource::open(folder.join(name)).unwrap();
            let mut batch = FrameBatch::new();
            assert!(source.next_batch(&mut batch).unwrap());
            let mut long_count = 0;
            for frame in batch.iter().take(count) {
                long_count += usize::from(frame.data.len() > HEADERS_LEN);
                if frame.data.len() <= HEADERS_LEN || long_count % every != 0 {
                    trace.frames.push(&frame);
                }
            }
        }
        trace
    }

    fn count(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Hands over the frames in batches, and calls `check` after each.
    fn each_batch(&self, mut take: impl FnMut(&FrameBatch)) {
        let frames: Vec<_> = self.frames.iter().collect();
        let mut batch = FrameBatch::new();
        for frames in frames.chunks(BATCH_COUNT) {
            batch.clear();
            frames.iter().for_each(|frame| batch.push(frame));
            take(&batch);
        }
    }
}

/// What flows had when they ended.
#[derive(Debug, Default)]
struct Ended {
    flow_count: u64,
    packet_count: u64,
    octet_count: u64,
}

/// The offsets at which both sides of a stream go on.
type Next = [u64; 2];

impl<S> FlowSink<S> for Ended {
    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::ENDS
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, _: S) {
        let record = view.record(reason);
        self.flow_count += 1;
        self.packet_count += record.packet_count();
        self.octet_count += record.octet_count();
    }
}

impl StreamSink<Next> for Ended {
    /// Octets and gaps follow each other without a hole.
    fn stream(&mut self, flow: &mut Flow<'_, Next>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let next = &mut flow.state[side.index()];
        match event {
            StreamEvent::Chunk(chunk) => {
                assert_eq!(chunk.offset, *next, "octets begin where the last ended");
                *next = chunk.end();
            }
            StreamEvent::Gap(gap) => {
                assert_eq!(gap.offset, *next, "a gap begins where octets ended");
                *next = gap.offset + gap.len;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Every frame is in one count, and what flows had is what was counted.
fn check_totals(stats: &PipelineStats, ended: &Ended, frame_count: u64) {
    assert_eq!(stats.frame_count, frame_count);
    let left_out = stats.dedup.duplicate_count
        + stats.skipped.total()
        + stats.filtered_count
        + stats.fragment_alone_count;
    assert_eq!(ended.packet_count - stats.enclosing_count + left_out, frame_count, "{ended:?}: {stats:?}");
    let tracker = &stats.tracker;
    assert_eq!(tracker.packet_count, ended.packet_count);
    assert_eq!(tracker.octet_count, ended.octet_count);
    assert_eq!(tracker.started_count, ended.flow_count);
    assert_eq!(tracker.ended_count(), ended.flow_count);
    assert_eq!(stats.fragments.outcome_count(), stats.fragments.fragment_count);
}

fn config(budget: &Budget) -> TrackerConfig {
    let mut config = TrackerConfig::default();
    config.budget = budget.clone();
    config
}

/// Runs a pipeline that may be refused at once.
fn run(trace: &Trace, made: Result<Pipeline<()>, ConfigError>) {
    let Ok(mut pipeline) = made else { return };
    let mut ended = Ended::default();
    trace.each_batch(|batch| {
        pipeline.batch(batch, &mut ended);
        pipeline.check_invariants();
    });
    pipeline.finish(&mut ended);
    pipeline.check_invariants();
    check_totals(&pipeline.stats(), &ended, trace.count());
}

#[test]
fn the_tracker_counts_every_packet() {
    let trace = Trace::flows();
    for decapsulation in [Decapsulation::Innermost, Decapsulation::Both] {
        each_refusal(&format!("flows, {decapsulation:?}"), 20, |budget, _| {
            let mut config = config(budget);
            config.key_policy.decapsulation = decapsulation;
            let made = Pipeline::new(config);
            run(&trace, made.map(|pipeline| pipeline.with_encapsulation(true)));
        });
    }
}

#[test]
fn the_pool_counts_every_fragment() {
    let trace = Trace::fragments();
    for handling in [FragmentHandling::Reassemble, FragmentHandling::ReassembleOrPair] {
        each_refusal(&format!("fragments, {handling:?}"), 20, |budget, _| {
            let mut pool = PoolConfig::default();
            pool.budget = budget.clone();
            let made = Pipeline::new(config(budget));
            run(&trace, made.and_then(|pipeline| pipeline.with_fragments(handling, pool)));
        });
    }
}

#[test]
fn the_window_counts_every_frame() {
    let mut trace = Trace::captures(usize::MAX, 110);
    let copies = Trace::captures(3, 110);
    copies.frames.iter().for_each(|frame| trace.frames.push(&frame));
    for verifies in [false, true] {
        each_refusal(&format!("duplicates, verified: {verifies}"), 2, |budget, _| {
            let mut dedup = DedupConfig::default();
            (dedup.budget, dedup.verifies) = (budget.clone(), verifies);
            let made = Pipeline::new(config(budget));
            run(&trace, made.and_then(|pipeline| pipeline.with_dedup(dedup)));
        });
    }
}

fn with_streams<U: Default>(budget: &Budget) -> Result<StreamPipeline<U>, ConfigError> {
    let mut streams = ReassemblerConfig::default();
    streams.budget = budget.clone();
    Pipeline::new(config(budget))?.with_streams(streams)
}

#[test]
fn streams_have_no_hole_without_a_gap() {
    let trace = Trace::captures(2, 300);
    each_refusal("streams", 5, |budget, _| {
        let Ok(mut pipeline) = with_streams(budget) else { return };
        let mut ended = Ended::default();
        trace.each_batch(|batch| {
            pipeline.batch(batch, &mut ended);
            pipeline.check_invariants();
        });
        pipeline.finish(&mut ended);
        pipeline.check_invariants();
        check_totals(&pipeline.stats(), &ended, trace.count());
    });
}

#[cfg(feature = "protocols")]
mod sessions {
    use std::num::NonZeroUsize;

    use flowgauge::pipeline::{SessionPipeline, SessionSink};
    use flowgauge::session::{About, DriverConfig, Message, Standard};

    use super::*;

    impl SessionSink<Standard, ()> for Ended {
        fn message(&mut self, _: &mut Flow<'_, ()>, about: &About, message: Message<'_>) {
            // What borrows from a buffer is looked at.
            assert!(!format!("{} {message:?}", about.protocol).is_empty());
        }
    }

    fn with_sessions(budget: &Budget) -> Result<SessionPipeline<Standard, ()>, ConfigError> {
        let mut sessions = DriverConfig::default();
        sessions.budget = budget.clone();
        Ok(with_streams(budget)?.with_sessions(&sessions))
    }

    #[test]
    fn parsers_without_memory_end_alone() {
        let trace = Trace::captures(9, 110);
        each_refusal("sessions", 30, |budget, _| {
            let Ok(mut pipeline) = with_sessions(budget) else { return };
            let mut ended = Ended::default();
            trace.each_batch(|batch| {
                pipeline.batch(batch, &mut ended);
                pipeline.check_invariants();
            });
            pipeline.finish(&mut ended);
            pipeline.check_invariants();
            check_totals(&pipeline.stats(), &ended, trace.count());
            assert_eq!(pipeline.stats().sessions.held_bytes, 0);
        });
    }

    /// Which thread makes the n-th request is not known, and need not be.
    #[test]
    fn shards_count_every_packet() {
        let trace = Trace::captures(9, 110);
        let count = NonZeroUsize::new(3).unwrap();
        each_refusal("shards", 30, |budget, _| {
            let Ok(mut shards) = SessionPipeline::shards(count, || with_sessions(budget)) else { return };
            let mut source = Batches { trace: &trace, at: 0 };
            let mut sinks = [const { Ended { flow_count: 0, packet_count: 0, octet_count: 0 } }; 3];
            shards.run(&mut source, &mut sinks).unwrap();
            let ended = sinks.iter().fold(Ended::default(), |sum, sink| Ended {
                flow_count: sum.flow_count + sink.flow_count,
                packet_count: sum.packet_count + sink.packet_count,
                octet_count: sum.octet_count + sink.octet_count,
            });
            check_totals(&shards.stats(), &ended, trace.count());
        });
    }

    #[test]
    fn merged_records_of_shards_have_every_packet() {
        let trace = Trace::flows();
        let count = NonZeroUsize::new(2).unwrap();
        each_refusal("merged records", 5, |budget, _| {
            let Ok(mut shards) = Pipeline::<()>::shards(count, || Pipeline::new(config(budget))) else {
                return;
            };
            let mut source = Batches { trace: &trace, at: 0 };
            let mut ended = Ended::default();
            let take = |record: flowgauge::record::FlowRecord| {
                ended.flow_count += 1;
                ended.packet_count += record.packet_count();
                ended.octet_count += record.octet_count();
            };
            shards.run_records(&mut source, |_| true, take).unwrap();
            check_totals(&shards.stats(), &ended, trace.count());
        });
    }

    /// A trace as a source.
    struct Batches<'a> {
        trace: &'a Trace,
        at: usize,
    }

    impl flowgauge::source::Source for Batches<'_> {
        fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, flowgauge::source::Error> {
            batch.clear();
            let end = (self.at + BATCH_COUNT).min(self.trace.frames.len());
            (self.at..end).filter_map(|at| self.trace.frames.get(at)).for_each(|frame| batch.push(&frame));
            self.at = end;
            Ok(!batch.is_empty())
        }

        fn warnings(&self) -> &[flowgauge::source::Warning] {
            &[]
        }

        fn stats(&self) -> flowgauge::source::SourceStats {
            flowgauge::source::SourceStats::default()
        }

        fn interfaces(&self) -> &[flowgauge::source::Interface] {
            &[]
        }

        fn progress(&self) -> u64 {
            0
        }
    }
}
