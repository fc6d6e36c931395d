//! Random senders, networks and captures: in all cases the stream is delivered once, in order and with the octets of
//! the sender, and gaps contain only octets that did not arrive.

use std::time::Duration;

use flowgauge::base::{Account, Budget, Limits, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{
    GapReason, OverflowPolicy, OverlapPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent,
};
use proptest::prelude::*;

use super::capture::{Capture, Event, capture, octet, step};

const GRACE_MS: u64 = 10;
const TIMEOUT_MS: u64 = 3000;

/// Knowledge about a stream from its captured packets.
#[derive(Clone, Default)]
struct Sent {
    /// Sender's offset of the stream's first octet.
    base: Option<usize>,
    /// Octets of the sender that were captured, and octets that were on the wire.
    arrived: Vec<bool>,
    on_wire: Vec<bool>,
    /// Acknowledged ends, with the time.
    acks: Vec<(usize, u64)>,
    fin: Option<usize>,
    /// Ends of segments, with the time.
    arrivals: Vec<(usize, u64)>,
    /// The highest end of a segment, dropped ones included.
    wire_end: usize,
    /// Position and time since which there is no progress although octets are buffered.
    is_waiting: bool,
    stuck_at: usize,
    stuck_since_ms: u64,
}

/// Delivered stream.
#[derive(Clone, Debug, Default)]
struct Delivered {
    octets: Vec<Option<u8>>,
    has_fin: bool,
    is_poisoned: bool,
}

struct Run<'c> {
    reassembler: Reassembler<usize>,
    config: ReassemblerConfig,
    resources: Resources,
    has_memory: bool,
    capture: &'c Capture,
    streams: Vec<Stream>,
    sent: Vec<Sent>,
    reported: Vec<Delivered>,
    now_ms: u64,
}

/// Applies an event to the delivered stream, and panics if the event is not valid.
fn apply(
    reported: &mut Delivered,
    sent: &Sent,
    number: usize,
    now_ms: u64,
    has_memory: bool,
    event: StreamEvent<'_>,
) {
    let base = sent.base.expect("a stream that has begun");
    assert!(!reported.is_poisoned, "no event follows poisoning");
    let at = reported.octets.len();
    match event {
        StreamEvent::Chunk(chunk) => {
            assert_eq!((chunk.offset, chunk.bytes.is_empty()), (at as u64, false), "chunks are contiguous");
            for (position, byte) in (base + at..).zip(chunk.bytes) {
                assert_eq!(*byte, octet(number, position), "octet {position} is that of the sender");
            }
            reported.octets.extend(chunk.bytes.iter().copied().map(Some));
        }
        StreamEvent::Gap(gap) => {
            assert_eq!((gap.offset, gap.len > 0), (at as u64, true), "gaps are contiguous");
            let (from, to) = (base + at, base + at + gap.len as usize);
            for position in from..to {
                let arrived = sent.arrived.get(position).copied().unwrap_or(false);
                assert!(
                    !arrived,
                    "octet {position} arrived, and is reported missing as {}",
                    gap.reason.name()
                );
            }
            let is_acked = |(end, time): &(usize, u64)| *end >= to && time + GRACE_MS <= now_ms;
            match gap.reason {
                // Without memory for buffering, there is no grace period.
                GapReason::Acknowledged if has_memory => assert!(sent.acks.iter().any(is_acked), "{gap:?}"),
                GapReason::Acknowledged => assert!(sent.acks.iter().any(|(end, _)| *end >= to)),
                GapReason::Deadline => {
                    // Octets after the gap have been buffered long enough.
                    let has_waited = |(end, time): &(usize, u64)| *end >= to && time + TIMEOUT_MS <= now_ms;
                    assert!(sent.acks.is_empty() && sent.arrivals.iter().any(has_waited), "{gap:?}");
                }
                GapReason::Truncated => assert!((from..to).all(|position| sent.on_wire[position]), "{gap:?}"),
                GapReason::Overflow => assert!(!has_memory, "{gap:?}"),
                GapReason::EndOfStream => {}
                other => panic!("{other:?}"),
            }
            reported.octets.extend((from..to).map(|_| None));
        }
        StreamEvent::Repeated { offset, len } => {
            for offset in offset as usize..(offset + len) as usize {
                let is_given_up = reported.octets.get(offset).is_some_and(Option::is_none);
                assert!(is_given_up || sent.on_wire[base + offset], "octet {offset} is not repeated");
            }
        }
        StreamEvent::Fin { offset, .. } => {
            assert_eq!((offset, sent.fin), (at as u64, Some(base + at)), "the FIN is at the end");
            assert!(!std::mem::replace(&mut reported.has_fin, true), "one FIN");
        }
        StreamEvent::Poisoned { offset } => {
            assert_eq!(offset, at as u64);
            assert!(!has_memory);
            reported.is_poisoned = true;
        }
        other => panic!("{other:?}: the sender never contradicts itself"),
    }
}

impl<'c> Run<'c> {
    fn new(
        (config, resources): &(ReassemblerConfig, Resources),
        has_memory: bool,
        capture: &'c Capture,
    ) -> Self {
        let count = capture.lens.len();
        let blank =
            |len: &usize| Sent { arrived: vec![false; *len], on_wire: vec![false; *len], ..Sent::default() };
        Self {
            reassembler: Reassembler::new(config.clone(), resources).expect("a valid configuration"),
            config: config.clone(),
            resources: resources.clone(),
            has_memory,
            capture,
            streams: (0..count).map(|_| Stream::default()).collect(),
            sent: capture.lens.iter().map(blank).collect(),
            reported: vec![Delivered::default(); count],
            now_ms: 0,
        }
    }

    fn event(&mut self, stamp_ms: u64, event: &Event) {
        self.now_ms = self.now_ms.max(stamp_ms);
        let stamp = Timestamp::from_nanos(stamp_ms * 1_000_000);
        match event {
            Event::Segment { stream, flags, start, end, captured_end } => {
                self.segment(*stream, *flags, (*start, *end, *captured_end), stamp);
            }
            Event::Ack { stream, flags, end } => {
                let segment = Segment::new(SeqNum(1), *flags, &[], stamp)
                    .with_ack(self.capture.first[*stream].add(*end as u32));
                let sent = &mut self.sent[*stream];
                if flags.contains(TcpFlags::SYN) {
                    sent.base = sent.base.or(Some(*end));
                }
                let before = sent.clone();
                if sent.base.is_some() {
                    sent.acks.push((*end, self.now_ms));
                }
                let (reported, now_ms, has_memory) =
                    (&mut self.reported[*stream], self.now_ms, self.has_memory);
                self.reassembler.acknowledgment(&mut self.streams[*stream], *stream, &segment, |event| {
                    // A gap by deadline is due before the acknowledgment.
                    let is_deadline =
                        matches!(&event, StreamEvent::Gap(gap) if gap.reason == GapReason::Deadline);
                    let sent = if is_deadline { &before } else { &*sent };
                    apply(reported, sent, *stream, now_ms, has_memory, event);
                });
                self.check(*stream);
            }
        }
    }

    fn segment(&mut self, number: usize, flags: TcpFlags, range: (usize, usize, usize), stamp: Timestamp) {
        let (start, end, captured_end) = range;
        let payload: Vec<u8> = (start..captured_end).map(|position| octet(number, position)).collect();
        let first = self.capture.first[number];
        let is_syn = flags.contains(TcpFlags::SYN);
        let seq = first.add(start as u32).add(if is_syn { u32::MAX } else { 0 });
        let segment = Segment::new(seq, flags, &payload, stamp).with_wire_len((end - start) as u32);
        let sent = &mut self.sent[number];
        if !flags.contains(TcpFlags::RST) {
            sent.base = sent.base.or(Some(start));
        }
        let before = sent.clone();
        if flags.contains(TcpFlags::FIN) {
            sent.fin = Some(end);
        }
        if !flags.contains(TcpFlags::RST) {
            sent.wire_end = sent.wire_end.max(end);
            sent.arrivals.push((end, self.now_ms));
            sent.on_wire[start..end].fill(true);
            sent.arrived[start..captured_end].fill(true);
        }
        let mut has_slid = false;
        let slid = Sent { arrived: before.arrived.clone(), ..sent.clone() };
        let (reported, now_ms, has_memory) = (&mut self.reported[number], self.now_ms, self.has_memory);
        let refused_count = self.reassembler.stats().refused_count;
        self.reassembler.segment(&mut self.streams[number], number, &segment, |event| {
            // Gaps by time or by overflow are decided before the segment is processed.
            let known = match &event {
                StreamEvent::Gap(gap) => match gap.reason {
                    GapReason::Deadline | GapReason::Acknowledged => {
                        has_slid = true;
                        &before
                    }
                    GapReason::Overflow => {
                        has_slid = true;
                        &*sent
                    }
                    GapReason::Truncated if has_slid => &slid,
                    _ => &*sent,
                },
                StreamEvent::Repeated { .. } => &before,
                _ => &*sent,
            };
            apply(reported, known, number, now_ms, has_memory, event);
        });
        if self.reassembler.stats().refused_count > refused_count {
            assert_eq!(self.config.overflow, OverflowPolicy::DropNewest);
            assert!(!self.has_memory);
            sent.arrived = before.arrived;
            sent.on_wire = before.on_wire;
        }
        self.check(number);
    }

    /// Ends all holes that are due, and checks that no hole was omitted.
    fn sweep(&mut self) {
        let now = Timestamp::from_nanos(self.now_ms * 1_000_000);
        let mut call_count = 0;
        while let Some(number) = self.reassembler.next_due(now) {
            let (reported, sent) = (&mut self.reported[number], &self.sent[number]);
            let (now_ms, has_memory) = (self.now_ms, self.has_memory);
            self.reassembler.skip(&mut self.streams[number], number, |event| {
                apply(reported, sent, number, now_ms, has_memory, event);
            });
            self.check(number);
            call_count += 1;
            assert!(call_count < 10_000, "sweeps end");
        }
        if !self.has_memory {
            return;
        }
        for (number, (sent, reported)) in self.sent.iter().zip(&self.reported).enumerate() {
            let Some(base) = sent.base else { continue };
            let at = base + reported.octets.len();
            // Only the first and the latest acknowledgment are stored, and lists are in order of arrival, not of time.
            let due = sent.acks.iter().filter(|(_, time)| time + 3 * GRACE_MS <= self.now_ms);
            let acked = due.map(|(end, _)| *end).max().unwrap_or(0).min(sent.fin.unwrap_or(usize::MAX));
            let is_fin_likely = acked == at + 1 && sent.wire_end <= at && sent.fin.is_none();
            assert!(acked <= at || is_fin_likely, "stream {number} waits at {at}, acknowledged to {acked}");
            let is_stuck = sent.wire_end.max(sent.fin.unwrap_or(0)) > at && sent.acks.is_empty();
            assert!(
                !is_stuck || sent.stuck_since_ms + 2 * TIMEOUT_MS >= self.now_ms,
                "stream {number} waits at {at} without acknowledgments since {}, at {}: {:?}",
                sent.stuck_since_ms,
                self.now_ms,
                self.capture.events
            );
        }
    }

    /// Checks the invariants that hold after each event.
    fn check(&mut self, number: usize) {
        self.reassembler.check_invariants();
        let (reported, sent) = (&self.reported[number], &mut self.sent[number]);
        let stream = &self.streams[number];
        let held_bytes = self.reassembler.held_bytes();
        assert!(held_bytes <= self.resources.limits.stream_bytes_max);
        assert_eq!(held_bytes, self.resources.budget.held_by(Account::Streams));
        assert_eq!(stream.offset(), reported.octets.len() as u64);
        assert_eq!(stream.is_poisoned(), reported.is_poisoned);
        assert_eq!(stream.has_ended(), reported.has_fin);
        let Some(base) = sent.base else { return };
        let at = base + reported.octets.len();
        let is_waiting = sent.wire_end > at || sent.fin.is_some_and(|fin| fin > at);
        let arrived = sent.arrived.get(at).copied().unwrap_or(false);
        assert!(!arrived || reported.is_poisoned, "octet {at} arrived and is not delivered");
        if !sent.is_waiting || sent.stuck_at != at {
            (sent.stuck_at, sent.stuck_since_ms) = (at, self.now_ms);
        }
        sent.is_waiting = is_waiting;
    }

    fn finish(mut self) -> Vec<Delivered> {
        for number in 0..self.streams.len() {
            let (reported, sent) = (&mut self.reported[number], &self.sent[number]);
            let (now_ms, has_memory) = (self.now_ms, self.has_memory);
            self.reassembler.finish(&mut self.streams[number], |event| {
                apply(reported, sent, number, now_ms, has_memory, event);
            });
            self.reassembler.check_invariants();
            assert!(!self.streams[number].is_held());
            let Some(base) = sent.base.filter(|_| !reported.is_poisoned) else { continue };
            let end = base + reported.octets.len();
            let acked = sent.acks.iter().map(|(end, _)| *end).max().unwrap_or(0);
            assert!(end >= sent.wire_end.max(base), "all octets that were on the wire are reported");
            assert!(end <= sent.wire_end.max(acked).max(base), "no other octets are reported");
            // If the acknowledgment arrives first, the FIN counts as an octet.
            assert!(reported.has_fin || sent.fin.is_none_or(|fin| fin < end), "the FIN is reported");
        }
        let stats = self.reassembler.stats();
        assert_eq!(self.reassembler.held_stream_count(), 0);
        assert_eq!((stats.conflict_count, stats.orphaned_count, stats.stray_count), (0, 0, 0));
        let gap_octet_count =
            self.reported.iter().flat_map(|reported| &reported.octets).filter(|octet| octet.is_none());
        assert_eq!(stats.gap_octet_count, gap_octet_count.count() as u64);
        let budget = self.resources.budget.clone();
        drop(self.reassembler);
        assert_eq!(budget.held_by(Account::Streams), 0);
        self.reported
    }
}

/// Returns the delivered streams of a capture; `sweeps` is the number of events after which due holes are ended.
fn reported(
    config: &(ReassemblerConfig, Resources),
    has_memory: bool,
    capture: &Capture,
    sweeps: Option<usize>,
) -> Vec<Delivered> {
    let mut run = Run::new(config, has_memory, capture);
    for (number, (stamp_ms, event)) in capture.events.iter().enumerate() {
        run.event(*stamp_ms, event);
        if sweeps.is_some_and(|sweeps| number % sweeps == 0) {
            run.sweep();
        }
    }
    run.finish()
}

fn configured(overlap: usize, compared_len: u32) -> ReassemblerConfig {
    let mut config = ReassemblerConfig::default();
    config.overlap = OverlapPolicy::ALL[overlap % OverlapPolicy::ALL.len()];
    config.compared_len = compared_len;
    (config.ack_grace, config.skew_max) = (Duration::from_millis(GRACE_MS), Duration::from_millis(GRACE_MS));
    config.hole_timeout = Duration::from_millis(TIMEOUT_MS);
    config
}

fn streams() -> impl Strategy<Value = Vec<(usize, bool, u32)>> {
    let len = prop_oneof![3 => 0..300_usize, 1 => 0..12_000_usize];
    let first = prop_oneof![Just(1000), Just(u32::MAX - 60), Just(0x7fff_ffe0), any::<u32>()];
    prop::collection::vec((len, any::<bool>(), first), 1..5)
}

fn compared() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(0), 1 => Just(64), 1 => Just(5000)]
}

fn cases() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 1500 } else { 20_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn segments_that_arrive_in_time_are_delivered_completely(
        steps in prop::collection::vec(step(), 1..80),
        streams in streams(),
        overlap in 0..8_usize,
        compared_len in compared(),
        sweeps in prop::option::of(1..6_usize),
    ) {
        let capture = capture(&steps, &streams, true);
        for (number, reported) in reported(&(configured(overlap, compared_len), Resources::default()), true, &capture, sweeps).iter().enumerate() {
            let whole: Vec<_> = (0..capture.lens[number]).map(|position| Some(octet(number, position))).collect();
            prop_assert!(
                reported.octets == whole && reported.has_fin,
                "stream {number}: {:?}, {:?}", reported, capture.events
            );
        }
    }

    #[test]
    fn missing_octets_are_reported_and_sweeps_do_not_change_the_result(
        steps in prop::collection::vec(step(), 1..80),
        streams in streams(),
        overlap in 0..8_usize,
        compared_len in compared(),
        sweeps in 1..6_usize,
    ) {
        let capture = capture(&steps, &streams, false);
        let config = (configured(overlap, compared_len), Resources::default());
        let swept = reported(&config, true, &capture, Some(sweeps));
        let unswept = reported(&config, true, &capture, None);
        for (number, (swept, unswept)) in swept.iter().zip(&unswept).enumerate() {
            prop_assert_eq!(&swept.octets, &unswept.octets, "stream {}: {:?}", number, capture.events);
        }
    }

    #[test]
    fn limits_hold_and_arrived_octets_are_delivered(
        steps in prop::collection::vec(step(), 1..80),
        streams in streams(),
        overflow in prop_oneof![
            2 => Just(OverflowPolicy::Slide),
            1 => Just(OverflowPolicy::Poison),
            1 => Just(OverflowPolicy::DropNewest),
        ],
        compared_len in compared(),
        caps in (0..40_000_u64, 0..12_000_u64, 0..20_u32, 0..40_000_u64),
        sweeps in prop::option::of(1..6_usize),
    ) {
        let mut config = configured(4, compared_len);
        config.overflow = overflow;
        let mut limits = Limits::DEFAULT;
        (limits.stream_bytes_max, limits.stream_side_bytes_max) = (caps.0, caps.1);
        limits.stream_side_segment_count_max = caps.2;
        let resources = Resources::new(limits).with_budget(Budget::new(caps.3));
        reported(&(config, resources), false, &capture(&steps, &streams, false), sweeps);
    }
}
