//! The n-th request for memory is refused, alone or with all later requests, for each n that a short trace reaches.

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

/// A budget that is large enough that only the test causes refusals.
const LIMIT: u64 = 1 << 30;

/// Number of frames in a batch; invariants are checked after each batch.
const BATCH_COUNT: usize = 64;

/// Runs a function for each n with a budget that refuses only the n-th request, and with a budget that refuses the n-th
/// and all later requests. All memory must be released each time. There must be at least `request_count_min` requests.
pub(crate) fn each_refusal(what: &str, request_count_min: u64, mut run: impl FnMut(&Budget, bool)) {
    for is_permanent in [false, true] {
        for number in 0.. {
            let end = if is_permanent { u64::MAX } else { number + 1 };
            let budget = Budget::with_refusals(LIMIT, number..end);
            let _fault = Fault(format!("{what}: request {number}, and all later requests: {is_permanent}"));
            run(&budget, is_permanent);
            assert_eq!(budget.held(), 0, "all memory is released");
            if budget.refused_count() == 0 {
                println!("{what}: {number} requests");
                assert!(number >= request_count_min, "the trace makes only {number} requests");
                break;
            }
        }
    }
}

/// Frames with increasing times.
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

    /// Returns packets of many flows, some of them in tunnels.
    fn flows() -> Self {
        let mut trace = Self::default();
        for number in 0..600_u16 {
            let [high, low] = number.to_be_bytes();
            let mut packet = packets::udp(number % 2 == 1, 5);
            // The last octets of an IPv4 address, or octets of an IPv6 address.
            packet[14..16].copy_from_slice(&[high, low]);
            trace.push(&packets::ethernet(&packet));
            if number % 40 == 0 {
                trace.push(&packets::ethernet(&packets::vxlan(number.into(), &packet)));
            }
        }
        trace
    }

    /// Returns interleaved fragments of datagrams, some of which remain incomplete.
    fn fragments() -> Self {
        let mut trace = Self::default();
        let ids = 0..15_u32;
        let parts = |id: u32| {
            let packet = packets::udp(id % 3 == 1, 700 + 200 * (id as usize % 20));
            packets::fragments(&packet, id, &[9, 40, 70, 100, 300])
        };
        // The last fragments first.
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

    /// Returns the first frames of example captures. Each `every`-th long frame is omitted, so that streams have holes.
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

    /// Calls a function with each batch of frames.
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

/// Totals of ended flows.
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

/// A sink of streams, which checks that octets and gaps are contiguous.
#[derive(Default)]
struct Gapless(Ended);

impl AsRef<Ended> for Gapless {
    fn as_ref(&self) -> &Ended {
        &self.0
    }
}

impl Sink for Gapless {
    /// The next offset of each side of a stream.
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
                assert_eq!(chunk.offset, *next, "octets begin at the end of the previous ones");
                *next = chunk.end();
            }
            StreamEvent::Gap(gap) => {
                assert_eq!(gap.offset, *next, "a gap begins at the end of the previous octets");
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

/// Checks that every frame is in exactly one counter, and that the totals of flows equal the counters.
fn check_totals(stats: &PipelineStats, ended: &Ended, frame_count: u64) {
    assert_eq!(stats.frame_count, frame_count);
    let excluded_count = stats.dedup.duplicate_count
        + stats.skipped.total()
        + stats.filtered_count
        + stats.orphan_fragment_count;
    assert_eq!(
        ended.packet_count - stats.outer_packet_count + excluded_count,
        frame_count,
        "{ended:?}: {stats:?}"
    );
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

/// Runs a pipeline over a trace, unless its creation was refused.
fn run<K: Sink + AsRef<Ended>>(trace: &Trace, created: Result<Pipeline<K>, ConfigError>) {
    let Ok(mut pipeline) = created else { return };
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
fn the_fragment_pool_counts_every_fragment() {
    let trace = Trace::fragments();
    for handling in [FragmentHandling::Reassemble, FragmentHandling::ReassembleOrPair] {
        each_refusal(&format!("fragments, {handling:?}"), 20, |budget, _| {
            run(&trace, builder(budget).fragments(handling).build(Ended::default()));
        });
    }
}

#[test]
fn the_dedup_window_counts_every_frame() {
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
fn every_hole_in_a_stream_is_reported_as_a_gap() {
    let trace = Trace::captures(2, 300);
    each_refusal("streams", 5, |budget, _| run(&trace, builder(budget).build(Gapless::default())));
}

#[cfg(feature = "protocols")]
mod sessions {
    use flowgauge::pipeline::{RunOptions, Sessions};
    use flowgauge::protocols::{Message, Standard};
    use flowgauge::record::FlowRecord;
    use flowgauge::session::MessageMeta;
    use flowgauge::source::{End, Next, Source};

    use super::super::fn_source::FnSource;
    use super::*;

    /// A sink of messages.
    #[derive(Default)]
    struct FormatMessages(Ended);

    impl AsRef<Ended> for FormatMessages {
        fn as_ref(&self) -> &Ended {
            &self.0
        }
    }

    impl Sink for FormatMessages {
        type State = ();
        type Stage = Sessions<Standard>;

        fn interest(&self) -> Interest {
            Interest::STARTS | Interest::RECORDS
        }

        fn message(&mut self, _: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Message<'_>) {
            // Formats the message, to read what it borrows from a buffer.
            assert!(!format!("{} {message:?}", meta.protocol).is_empty());
        }

        fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, (): ()) {
            self.0.take(view, reason);
        }
    }

    #[test]
    fn refused_memory_stops_only_the_affected_parser() {
        let trace = Trace::captures(9, 110);
        each_refusal("sessions", 30, |budget, _| {
            run(&trace, builder(budget).build(FormatMessages::default()))
        });
    }

    /// Any thread can make the n-th request.
    #[test]
    fn shards_count_every_packet() {
        let trace = Trace::captures(9, 110);
        each_refusal("shards", 30, |budget, _| {
            let mut sinks: [FormatMessages; 3] = Default::default();
            let options = RunOptions::default();
            let Ok(summary) = builder(budget).run_shards(&mut sinks, &mut batches(&trace), &options) else {
                return;
            };
            let ended = sinks.iter().fold(Ended::default(), |sum, FormatMessages(ended)| Ended {
                flow_count: sum.flow_count + ended.flow_count,
                packet_count: sum.packet_count + ended.packet_count,
                octet_count: sum.octet_count + ended.octet_count,
            });
            check_totals(&summary.stats, &ended, trace.count());
        });
    }

    #[test]
    fn merged_records_of_shards_count_every_packet() {
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

    /// Returns a source of the batches of a trace.
    fn batches(trace: &Trace) -> impl Source {
        let mut at = 0;
        FnSource(move |batch: &mut FrameBatch| {
            let end = (at + BATCH_COUNT).min(trace.frames.len());
            (at..end).filter_map(|at| trace.frames.get(at)).for_each(|frame| batch.push(&frame));
            at = end;
            Ok(if batch.is_empty() { Next::End(End::Complete) } else { Next::Frames })
        })
    }
}
