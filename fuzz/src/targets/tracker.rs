//! Packets and calls for a tracker. Without limits, the records equal those of a naive model, regardless of the batches
//! and of clock advances. With limits, removals and mutes, every state is returned once, and the counts of all records
//! add up.

use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::{
    EndReason, FlowKey, IpProtocol, Limits, NANOS_PER_SECOND, Resources, SeqNum, Side, TcpFlags, Timestamp,
};
use flowgauge::decode::extractor::{Packet, Transport};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Flow, FlowEvent, FlowView, Interest, Observer, Tracker, TrackerConfig};

use super::compare::assert_same;
use super::input::{items, structured};
use model::{Model, Record};

#[path = "../../../tests/model/naive.rs"]
mod model;

const STEP_COUNT_MAX: usize = 300;

/// A packet or another call, encoded as numbers.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Step {
    /// Conversation in bits 0 to 3, sent by the second endpoint in bit 4; another call from 0xe0 on.
    what: u8,
    flags: u8,
    /// Offsets of the sequence and acknowledgment numbers in the nibbles.
    numbers: u8,
    /// Length in bits 0 and 1, window in bits 2 and 3, header in bits 4 and 5.
    shape: u8,
    time: u8,
    odd: u8,
}

#[derive(Debug)]
struct Input {
    /// Active timeout in bits 0 and 1, sequence numbers near their wraparound in bit 2, lookups in stages in bit 3.
    setup: u8,
    /// Choice of limits; zero for no limits.
    limit_choice: u8,
    /// Number of packets in a batch.
    batch_len: u8,
    steps: Vec<Step>,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (setup, limit_choice, batch_len) = Arbitrary::arbitrary(u)?;
        Ok(Self { setup, limit_choice, batch_len, steps: items(u, STEP_COUNT_MAX)? })
    }
}

const OFFSETS: [u32; 16] = [0, 0, 0, 1, 1, 1, 1, 2, 2, 101, 101, 102, 202, 5000, 70_000, 2_000_000];
const LENS: [u32; 4] = [0, 1, 100, 1400];
const WINDOWS: [u16; 4] = [0, 100, 1000, 65_535];
const NO_OPTIONS: [u8; 20] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0];
const SCALE_2: [u8; 24] = {
    let mut header = [0; 24];
    (header[12], header[13]) = (0x60, 2);
    (header[20], header[21], header[22]) = (3, 3, 2);
    header
};

/// Waits: the timeouts of the classes, times just below them, and shorter times.
const JUMPS_MS: [u64; 16] =
    [0, 0, 0, 1, 1, 10, 100, 999, 1000, 4999, 5000, 30_000, 60_000, 64_999, 65_000, 300_000];

struct Clock(u64);

impl Clock {
    fn advance(&mut self, step: &Step) -> Timestamp {
        let fine = u64::from(step.odd);
        self.0 +=
            JUMPS_MS[usize::from(step.time & 15)] * 1_000_000 + if step.time & 16 == 0 { 0 } else { fine };
        let back = match step.time >> 5 {
            7 => NANOS_PER_SECOND * fine,
            6 => fine,
            _ => 0,
        };
        Timestamp::from_nanos(self.0 - back)
    }
}

/// Creates a packet. `is_modeled` excludes combinations of flags that the model does not support and no host sends.
fn packet(step: &Step, setup: u8, is_modeled: bool, clock: &mut Clock) -> Packet<'static> {
    let timestamp = clock.advance(step);
    let conversation = step.what & 15;
    let (protocol, ports) = match conversation {
        0..4 => (IpProtocol::TCP, [40_000 + u16::from(conversation), 80]),
        4..8 => (IpProtocol::TCP, [40_000, 50_000 + u16::from(conversation)]),
        8..12 => (IpProtocol::UDP, [40_000 + u16::from(conversation), 53]),
        12 | 13 => (IpProtocol::UDP, [40_000, 40_001 + u16::from(conversation)]),
        _ => (IpProtocol::ESP, [0, 0]),
    };
    let from_second = step.what & 16 != 0;
    let (source, target) = if from_second { (1, 0) } else { (0, 1) };
    let last = if conversation == 15 { 3 } else { 1 };
    let end = |number: usize| ([10, 0, 0, last + number as u8].into(), ports[number]);
    let (key, side) = FlowKey::new(protocol, end(source), end(target));
    let mut packet = Packet::new(key, side, timestamp, &[]);
    packet.payload_len = LENS[usize::from(step.shape & 3)];
    packet.ip_len = 40 + packet.payload_len;
    packet.wire_len = 60 + packet.payload_len + u32::from(step.odd & 1);
    match protocol {
        IpProtocol::TCP => {
            let bases = if setup & 4 == 0 { [1000, 77_000] } else { [u32::MAX - 50, 0] };
            let mut flags = TcpFlags(u16::from(step.flags & 0x3f));
            if is_modeled && flags.contains(TcpFlags::RST) {
                flags = TcpFlags(flags.0 & (TcpFlags::RST.0 | TcpFlags::ACK.0));
            } else if is_modeled && flags.contains(TcpFlags::SYN) {
                flags = TcpFlags(flags.0 & (TcpFlags::SYN.0 | TcpFlags::ACK.0));
            }
            packet.transport = Transport::Tcp;
            packet.tcp.flags = flags;
            packet.tcp.seq = SeqNum(bases[source].wrapping_add(OFFSETS[usize::from(step.numbers & 15)]));
            packet.tcp.ack = SeqNum(bases[target].wrapping_add(OFFSETS[usize::from(step.numbers >> 4)]));
            packet.tcp.window = WINDOWS[usize::from(step.shape >> 2 & 3)];
            if flags.intersects(TcpFlags(TcpFlags::SYN.0 | TcpFlags::RST.0)) {
                packet.payload_len = 0;
            }
            packet.frame = match step.shape >> 4 & 3 {
                _ if !flags.contains(TcpFlags::SYN) => &[],
                0 => &[],
                1 => &NO_OPTIONS,
                _ => &SCALE_2,
            };
        }
        IpProtocol::UDP => packet.transport = Transport::Udp,
        _ => {}
    }
    packet
}

/// Keeps records, and checks that each state has one start and one end.
#[derive(Default)]
struct Sink {
    records: Vec<FlowRecord>,
    open_count: u64,
    ended_count: u64,
    mutes_next: bool,
}

/// State of a flow: whether it has started, and whether it was muted.
#[derive(Default)]
struct State {
    has_started: bool,
    is_muted: bool,
}

impl Sink {
    fn check_call(&mut self, flow: &mut Flow<'_, State>) {
        assert!(flow.state.has_started && !flow.state.is_muted);
        if std::mem::take(&mut self.mutes_next) {
            flow.state.is_muted = true;
            flow.mute();
        }
    }
}

impl Observer<State> for Sink {
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        assert!(!std::mem::replace(&mut flow.state.has_started, true));
        self.open_count += 1;
        self.check_call(flow);
    }

    fn packet(&mut self, flow: &mut Flow<'_, State>, packet: &Packet<'_>) {
        assert_eq!(*flow.view.key(), packet.key);
        self.check_call(flow);
    }

    fn event(&mut self, flow: &mut Flow<'_, State>, _: &FlowEvent) {
        self.check_call(flow);
    }

    fn record(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        self.records.push(flow.view.record(reason));
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: State) {
        assert!(state.has_started);
        (self.open_count, self.ended_count) = (self.open_count - 1, self.ended_count + 1);
        // There is no record after an active timeout without further packets.
        if !view.is_empty() {
            self.records.push(view.record(reason));
        }
    }
}

fn summary(record: &FlowRecord) -> Record {
    let counts = [&record.forward, &record.reverse].map(|side| {
        let counters = side.counters;
        [counters.packet_count, counters.octet_count, counters.ip_octet_count, counters.payload_octet_count]
    });
    Record {
        key: record.key,
        start: record.start.as_nanos(),
        sequence_number: record.sequence_number,
        end: record.end.as_nanos(),
        reason: record.flow_end_reason,
        initiator: record.initiator,
        counts: if record.initiator == Side::A { counts } else { [counts[1], counts[0]] },
    }
}

fn active_timeout(setup: u8) -> Option<Duration> {
    match setup & 3 {
        0 | 1 => None,
        2 => Some(Duration::from_secs(10)),
        _ => Some(Duration::from_secs(100)),
    }
}

fn tracker(input: &Input) -> Tracker<State> {
    let mut config = TrackerConfig::default();
    config.active_timeout = active_timeout(input.setup);
    let mut limits = Limits::DEFAULT;
    config.staged_flow_count_min = if input.setup & 8 == 0 { 0 } else { u32::MAX };
    // Rarely, because the kernel clears some pages for each tracker.
    config.huge_pages = input.setup >> 4 == 1;
    if input.limit_choice != 0 {
        limits.flow_count_max = u32::from(input.limit_choice & 15) + 1;
        limits.tcp_extra_count_max = u32::from(input.limit_choice >> 4 & 3);
        if input.limit_choice >> 7 != 0 {
            let short = config.add_class(Some(Duration::from_secs(1))).expect("a further timeout class");
            config.classify(move |key| {
                [Side::A, Side::B].iter().any(|side| key.port(*side) == Some(53)).then_some(short)
            });
        }
    }
    Tracker::new(config, &Resources::new(limits).with_seeds([1, 2, 3, 4])).expect("a valid configuration")
}

fn sorted(mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    records.sort_by_cached_key(summary);
    records
}

fn finished(mut tracker: Tracker<State>, mut sink: Sink) -> Sink {
    tracker.finish(&mut sink);
    tracker.check_invariants();
    assert!(tracker.is_empty());
    assert_eq!((sink.open_count, sink.ended_count), (0, tracker.stats().started_count));
    let budget = tracker.budget().clone();
    drop(tracker);
    assert_eq!(budget.held(), 0);
    sink
}

/// Compares packets one by one, in batches, and in batches with clock advances between them with the model.
fn compared(input: &Input, packets: &[Packet<'_>]) {
    let mut model = Model::new(active_timeout(input.setup));
    packets.iter().for_each(|packet| model.packet(packet));
    let expected = model.finish();

    let (mut single, mut sink) = (tracker(input), Sink::default());
    for packet in packets {
        single.track(packet, &mut sink);
        single.check_invariants();
    }
    let records = sorted(finished(single, sink).records);
    let found: Vec<_> = records.iter().map(summary).collect();
    assert_same(&found, &expected, "the tracker and the model");

    for has_ticks in [false, true] {
        let (mut batched, mut sink) = (tracker(input), Sink::default());
        let batch_len = usize::from(input.batch_len) + 1;
        let mut rest = packets;
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(batch_len.min(rest.len()));
            batched.track_batch(batch, &mut sink);
            rest = behind;
            if let Some(next) = rest.first().filter(|_| has_ticks) {
                // The clock may advance beyond the batch, but not beyond the next packet.
                let now = batched.now().as_nanos();
                let ahead = next.timestamp.as_nanos().saturating_sub(now);
                let share = u64::from(input.setup >> 4);
                batched.advance(Timestamp::from_nanos(now + ahead / 15 * share), &mut sink);
            }
            batched.check_invariants();
        }
        let in_batches = sorted(finished(batched, sink).records);
        assert_same(&in_batches, &records, "in batches, and one by one");
    }
}

/// Passes packets and other calls to a tracker with limits.
fn bounded(input: &Input) {
    let (mut tracker, mut sink) = (tracker(input), Sink::default());
    let mut clock = Clock(1_000_000 * NANOS_PER_SECOND);
    let mut packet_count = 0;
    for step in &input.steps {
        match step.what {
            0xf8.. => {
                let count = tracker.len();
                let number = usize::from(step.odd).checked_rem(count);
                let id = number.and_then(|number| tracker.iter().nth(number)).map(|(view, _)| view.id());
                assert!(id.is_none_or(|id| tracker.remove(id, &mut sink) && !tracker.remove(id, &mut sink)));
            }
            0xf0.. => sink.mutes_next = true,
            0xe0.. => tracker.advance(clock.advance(step), &mut sink),
            _ => {
                packet_count += 1;
                tracker.track(&packet(step, input.setup, false, &mut clock), &mut sink);
            }
        }
        tracker.check_invariants();
        assert_eq!(sink.open_count, tracker.len() as u64);
        assert!(input.limit_choice == 0 || tracker.len() <= usize::from(input.limit_choice & 15) + 1);
    }
    let sink = finished(tracker, sink);
    assert_eq!(sink.records.iter().map(FlowRecord::packet_count).sum::<u64>(), packet_count);
}

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input>(data) else { return };
    bounded(&input);
    if input.limit_choice == 0 {
        let mut clock = Clock(1_000_000 * NANOS_PER_SECOND);
        let packets: Vec<_> =
            input.steps.iter().map(|step| packet(step, input.setup, true, &mut clock)).collect();
        compared(&input, &packets);
    }
}
