//! The n-th request for memory is refused, for each n that a short trace has, alone or with all that follow.

use std::ops::ControlFlow;

use flowgauge::base::{
    Budget, ConfigError, EndReason, Frame, FrameBatch, LinkType, Resources, Side, Timestamp,
};
use flowgauge::decode::extractor::KeyPolicy;
use flowgauge::decode::link::Decapsulation;
use flowgauge::dedup::DedupConfig;
use flowgauge::pipeline::{Builder, Flows, FragmentHandling, Pipeline, PipelineStats, Sink, Streams};
use flowgauge::reassembler::StreamEvent;
use flowgauge::tracker::{Flow, FlowView, Interest};

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
        use flowgauge::source::{FileSource, Next, Source as _};
        const HEADERS_LEN: usize = 100;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        let mut trace = Self::default();
        for name in ["web.pcap", "dns.pcap", "mail.pcap", "ssh.pcap", "lossy.pcap"] {
            let mut source = FileSource::open(folder.join(name)).unwrap();
            let mut batch = FrameBatch::new();
            assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
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

impl Ended {
    fn take(&mut self, view: &FlowView<'_>, reason: EndReason) {
        let record = view.record(reason);
        self.flow_count += 1;
        self.packet_count += record.packet_count();
        self.octet_count += record.octet_count();
    }
}

impl AsRef<Ended> for Ended {
    fn as_ref(&self) -> &Ended {
        self
    }
}

impl Sink for Ended {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::RECORDS
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, (): ()) {
        self.take(view, reason);
    }
}

/// The same with streams, whose octets and gaps follow each other without a hole.
#[derive(Default)]
struct Gapless(Ended);

impl AsRef<Ended> for Gapless {
    fn as_ref(&self) -> &Ended {
        &self.0
    }
}

impl Sink for Gapless {
    /// The offsets at which both sides of a stream go on.
    type State = [u64; 2];
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::RECORDS
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, [u64; 2]>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
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

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, _: [u64; 2]) {
        self.0.take(view, reason);
    }
}

/// Every frame is in one count, and what flows had is what was counted.
fn check_totals(stats: &PipelineStats, ended: &Ended, frame_count: u64) {
    assert_eq!(stats.frame_count, frame_count);
    let left_out = stats.dedup.duplicate_count
        + stats.skipped.total()
        + stats.filtered_count
        + stats.orphan_fragment_count;
    assert_eq!(ended.packet_count - stats.outer_packet_count + left_out, frame_count, "{ended:?}: {stats:?}");
    let tracker = &stats.tracker;
    assert_eq!(tracker.packet_count, ended.packet_count);
    assert_eq!(tracker.octet_count, ended.octet_count);
    assert_eq!(tracker.started_count, ended.flow_count);
    assert_eq!(tracker.ended_count(), ended.flow_count);
    assert_eq!(stats.fragments.outcome_count(), stats.fragments.fragment_count);
}

fn builder(budget: &Budget) -> Builder {
    Pipeline::builder().resources(Resources::default().with_budget(budget.clone()))
}

/// Runs a pipeline that may be refused at once.
fn run<K: Sink + AsRef<Ended>>(trace: &Trace, made: Result<Pipeline<K>, ConfigError>) {
    let Ok(mut pipeline) = made else { return };
    trace.each_batch(|batch| {
        let _ = pipeline.batch(batch);
        pipeline.check_invariants();
    });
    pipeline.finish();
    pipeline.check_invariants();
    check_totals(&pipeline.stats(), pipeline.sink().as_ref(), trace.count());
    assert_eq!(pipeline.stats().sessions.held_bytes, 0);
}

#[test]
fn the_tracker_counts_every_packet() {
    let trace = Trace::flows();
    for decapsulation in [Decapsulation::Innermost, Decapsulation::Both] {
        let mut policy = KeyPolicy::DEFAULT;
        policy.decapsulation = decapsulation;
        each_refusal(&format!("flows, {decapsulation:?}"), 20, |budget, _| {
            run(&trace, builder(budget).key_policy(policy).encapsulation(true).build(Ended::default()));
        });
    }
}

#[test]
fn the_pool_counts_every_fragment() {
    let trace = Trace::fragments();
    for handling in [FragmentHandling::Reassemble, FragmentHandling::ReassembleOrPair] {
        each_refusal(&format!("fragments, {handling:?}"), 20, |budget, _| {
            run(&trace, builder(budget).fragments(handling).build(Ended::default()));
        });
    }
}

#[test]
fn the_window_counts_every_frame() {
    let mut trace = Trace::captures(usize::MAX, 110);
    let copies = Trace::captures(3, 110);
    copies.frames.iter().for_each(|frame| trace.frames.push(&frame));
    for verifies in [false, true] {
        let mut dedup = DedupConfig::default();
        dedup.verifies = verifies;
        each_refusal(&format!("duplicates, verified: {verifies}"), 2, |budget, _| {
            run(&trace, builder(budget).dedup(dedup).build(Ended::default()));
        });
    }
}

#[test]
fn streams_have_no_hole_without_a_gap() {
    let trace = Trace::captures(2, 300);
    each_refusal("streams", 5, |budget, _| run(&trace, builder(budget).build(Gapless::default())));
}

#[cfg(feature = "protocols")]
mod sessions {
    use flowgauge::pipeline::{RunOptions, Sessions};
    use flowgauge::protocols::{Message, Standard};
    use flowgauge::record::FlowRecord;
    use flowgauge::session::MessageMeta;
    use flowgauge::source::{Next, Source};

    use super::super::fn_source::FnSource;
    use super::*;

    /// The same with messages.
    #[derive(Default)]
    struct Shown(Ended);

    impl AsRef<Ended> for Shown {
        fn as_ref(&self) -> &Ended {
            &self.0
        }
    }

    impl Sink for Shown {
        type State = ();
        type Stage = Sessions<Standard>;

        fn interest(&self) -> Interest {
            Interest::STARTS | Interest::RECORDS
        }

        fn message(&mut self, _: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Message<'_>) {
            // What borrows from a buffer is looked at.
            assert!(!format!("{} {message:?}", meta.protocol).is_empty());
        }

        fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, (): ()) {
            self.0.take(view, reason);
        }
    }

    #[test]
    fn parsers_without_memory_end_alone() {
        let trace = Trace::captures(9, 110);
        each_refusal("sessions", 30, |budget, _| run(&trace, builder(budget).build(Shown::default())));
    }

    /// Which thread makes the n-th request is not known, and need not be.
    #[test]
    fn shards_count_every_packet() {
        let trace = Trace::captures(9, 110);
        each_refusal("shards", 30, |budget, _| {
            let mut sinks: [Shown; 3] = Default::default();
            let options = RunOptions::default();
            let Ok(summary) = builder(budget).run_shards(&mut sinks, &mut batches(&trace), &options) else {
                return;
            };
            let ended = sinks.iter().fold(Ended::default(), |sum, Shown(ended)| Ended {
                flow_count: sum.flow_count + ended.flow_count,
                packet_count: sum.packet_count + ended.packet_count,
                octet_count: sum.octet_count + ended.octet_count,
            });
            check_totals(&summary.stats, &ended, trace.count());
        });
    }

    #[test]
    fn merged_records_of_shards_have_every_packet() {
        let trace = Trace::flows();
        each_refusal("merged records", 5, |budget, _| {
            let mut ended = Ended::default();
            let take = |record: FlowRecord| {
                ended.flow_count += 1;
                ended.packet_count += record.packet_count();
                ended.octet_count += record.octet_count();
            };
            let (mut source, options) = (batches(&trace), RunOptions::default());
            let run = builder(budget).run_records::<Flows>(2, &mut source, &options, |_| true, take);
            let Ok(summary) = run else { return };
            check_totals(&summary.stats, &ended, trace.count());
        });
    }

    /// A trace as a source.
    fn batches(trace: &Trace) -> impl Source {
        let mut at = 0;
        FnSource(move |batch: &mut FrameBatch| {
            let end = (at + BATCH_COUNT).min(trace.frames.len());
            (at..end).filter_map(|at| trace.frames.get(at)).for_each(|frame| batch.push(&frame));
            at = end;
            Ok(if batch.is_empty() { Next::End } else { Next::Frames })
        })
    }
}
