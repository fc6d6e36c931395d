//! Directions and durations of flows: an answer that is captured before its flow changes no direction, and a clock that is set
//! back changes no duration by more than that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use flowgauge::base::{DirectionEvidence, FlowKey, Side};
use flowgauge::decode::extractor::Packet;
use flowgauge::tracker::{Flow, Interest};
use flowgauge::{EndReason, Sessions, Sink, Standard, Timestamp};

use super::capture::{Capture, Checked, Owned};
use super::pairs::{Known, without_timeouts, write_known};
use super::relations::Outcome;

/// What is compared.
pub(crate) const DIRECTION: &str = "initiator of the flows, unless only their first packet shows it";
pub(crate) const DURATION: &str = "number of flows; durations up to the step";
pub(crate) const OUTPUTS: &str = "initiator, packets and octets in all of them";

/// All of it.
pub(crate) const EXPECTED: [&str; 3] = [DIRECTION, DURATION, OUTPUTS];

/// Differences in the corpus.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        capture: "nDPI/1kxun.pcap",
        changes: &["records, messages, transactions, events of EVE, logs of Zeek"],
        reason: "a server of DHCP answers by broadcast, in a flow that it begins",
    },
    Known {
        capture: "merged/iot-public.pcap",
        changes: &["records, messages, transactions, events of EVE, logs of Zeek"],
        reason: "the same",
    },
    Known {
        capture: "suricata-verify/tcp-split-handshake-01-4whs/split-handshake-4whs.pcap",
        changes: &["the first answer of each flow before its first packet too"],
        reason: "the server answers a SYN with a SYN, which identifies its sender as the initiator if it is the first one",
    },
    Known {
        capture: "nDPI/rtsp.pcap",
        changes: &["the first answer of each flow before its first packet too"],
        reason: "the answer is a reset, which is a flow of its own before the SYN, and no port is that of a known service",
    },
    Known {
        capture: "snabb/src/program/ipfix/tests/sanitized4k.pcap",
        changes: &["records, messages, transactions, events of EVE, logs of Zeek"],
        reason: "servers of DNS answer to anonymized addresses that are multicast addresses, which initiate nothing",
    },
    Known {
        capture: "suricata-verify/transform-base64-7296/input.pcap",
        changes: &["records, messages, transactions, events of EVE, logs of Zeek"],
        reason: "the content contradicts a service port, in a damaged packet; only sessions compare them",
    },
    Known {
        capture: "nDPI/fuzz-2006-06-26-2594.pcap",
        changes: &["records, messages, transactions, events of EVE, logs of Zeek"],
        reason: "the content contradicts service ports, in damaged packets; only sessions compare them",
    },
    Known {
        capture: "Malcolm-Test-Artifacts/protocols/STUN.pcap",
        changes: &["records, messages, transactions, events of EVE, logs of Zeek"],
        reason: "only later datagrams reveal the client, to sessions",
    },
];

/// A flow, by its packets and its record.
#[derive(Debug)]
struct Observed {
    key: FlowKey,
    /// Index of the frame of the first packet, and of the last one.
    first: usize,
    last: usize,
    /// Indices of the frames of the first packets of both sides, without fragments.
    first_of_sides: [Option<usize>; 2],
    /// Times of the first packet, and the latest time of all packets.
    times: [Timestamp; 2],
    initiator: Side,
    evidence: DirectionEvidence,
    duration: Duration,
}

/// Observes flows in the order of their first packets.
#[derive(Default)]
struct Observer {
    /// Index of the frame.
    at: usize,
    flows: Vec<Observed>,
}

impl Sink for Observer {
    /// Index of the flow.
    type State = Option<usize>;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, Option<usize>>, packet: &Packet<'_>) {
        let Self { at, flows } = self;
        let index = *flow.state.get_or_insert_with(|| {
            flows.push(Observed {
                key: packet.key,
                first: *at,
                last: *at,
                first_of_sides: [None; 2],
                times: [packet.timestamp; 2],
                initiator: packet.side,
                evidence: DirectionEvidence::default(),
                duration: Duration::ZERO,
            });
            flows.len() - 1
        });
        let observed = &mut flows[index];
        observed.last = *at;
        observed.times[1] = observed.times[1].max(packet.timestamp);
        if packet.fragment().is_none() {
            observed.first_of_sides[packet.side.index()].get_or_insert(*at);
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, Option<usize>>, reason: EndReason) {
        let record = flow.view.record(reason);
        if let Some(observed) = flow.state.and_then(|index| self.flows.get_mut(index)) {
            observed.initiator = record.initiator;
            observed.evidence = record.direction_evidence;
            observed.duration = record.end.saturating_since(record.start);
        }
    }
}

/// Returns the flows of frames, each of which is tracked with the time that it has.
fn observe(frames: &[Owned]) -> Vec<Observed> {
    let mut pipeline =
        without_timeouts().time_check(false).build(Observer::default()).expect("a valid configuration");
    for (index, owned) in frames.iter().enumerate() {
        pipeline.sink_mut().at = index;
        pipeline.frame(&owned.frame());
    }
    pipeline.finish();
    pipeline.into_sink().flows
}

/// Returns the initiators of all flows with a key.
fn initiators(flows: &[Observed]) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for flow in flows {
        let side = if flow.initiator == Side::A { "the first end" } else { "the second end" };
        all.entry(flow.key.to_string()).or_default().insert(side);
    }
    all
}

/// Captures the first packet of the responder of each flow also before the first packet of the flow.
pub(crate) fn answered_before(capture: &Capture) -> Outcome {
    let flows = observe(&capture.frames);
    let mut answers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    for flow in flows.iter().filter(|flow| flow.evidence != DirectionEvidence::FirstSeen) {
        if let Some(answer) = flow.first_of_sides[flow.initiator.other().index()]
            && answer > flow.first
        {
            answers.entry(flow.first).or_default().push(answer);
            keys.insert(flow.key.to_string());
        }
    }
    if answers.is_empty() {
        return Outcome::NotApplicable;
    }
    capture.note(|checked| checked.answer_count = answers.values().map(Vec::len).sum());
    let mut frames = Vec::new();
    for (index, frame) in capture.frames.iter().enumerate() {
        for answer in answers.get(&index).into_iter().flatten() {
            frames.push(Owned { timestamp: frame.timestamp, ..capture.frames[*answer].clone() });
        }
        frames.push(frame.clone());
    }
    let (expected, found) = (initiators(&flows), initiators(&observe(&frames)));
    let turned: Vec<_> = keys.iter().filter(|key| expected.get(*key) != found.get(*key)).collect();
    match turned.first() {
        None => Outcome::Equal,
        Some(first) => Outcome::Different(format!("{} flows, first {first}", turned.len())),
    }
}

/// Sets the clock back after half of the frames.
pub(crate) fn clock_set_back(capture: &Capture, step: Duration) -> Outcome {
    let step_ns = step.as_nanos() as u64;
    let middle = capture.frames.len() / 2;
    let flows = observe(&capture.frames);
    let divided_count = flows.iter().filter(|flow| flow.first < middle && flow.last >= middle).count();
    if divided_count == 0 || capture.frames.iter().any(|frame| frame.timestamp.as_nanos() <= step_ns) {
        return Outcome::NotApplicable;
    }
    capture.note(|checked| checked.divided_count = divided_count);
    let mut frames = capture.frames.clone();
    for frame in &mut frames[middle..] {
        frame.timestamp = Timestamp::from_nanos(frame.timestamp.as_nanos() - step_ns);
    }
    let found = observe(&frames);
    if found.len() != flows.len() {
        return Outcome::Different(format!("{} flows instead of {}", found.len(), flows.len()));
    }
    let different = |(before, after): &(&Observed, &Observed)| {
        let [first, latest] = after.times;
        before.key != after.key
            || before.duration.abs_diff(after.duration) > step
            || after.duration != latest.saturating_since(first)
    };
    match flows.iter().zip(&found).find(different) {
        None => Outcome::Equal,
        Some((before, after)) => Outcome::Different(format!(
            "{} lasts {:?} instead of {:?}",
            after.key, after.duration, before.duration
        )),
    }
}

/// Appends what was checked, and the reasons of the differences that remain.
pub(crate) fn write(page: &mut String, checked: Checked) {
    let Checked { answer_count, divided_count, record_count, row_count } = checked;
    let _ = write!(
        page,
        "\n## Directions, durations and outputs\n\n\
         {answer_count} answers are captured before their flows. {divided_count} flows have packets before and after the clock is\n\
         set back. {record_count} records have an event of EVE and a row of Zeek's `conn.log` each, and {row_count} events and rows\n\
         of transactions have the ends of their flow; these are those of whole captures.\n"
    );
    write_known(page, KNOWN);
}
