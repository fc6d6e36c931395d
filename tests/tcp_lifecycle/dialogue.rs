//! Segments and the resulting events as text.

use std::fmt::Write as _;
use std::time::Duration;

use flowgauge::base::{EndReason, FlowKey, IpProtocol, SeqNum, Side, TcpFlags, Timestamp};
use flowgauge::decode::extractor::{Packet, Transport};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Anomaly, Flow, FlowEvent, FlowView, Observer, Tracker};

/// The client's side of the key. Its address is the lower one.
pub(crate) const CLIENT: Side = Side::A;

#[derive(Default)]
pub(crate) struct Log {
    text: String,
    pub(crate) records: Vec<FlowRecord>,
}

impl Log {
    fn add(&mut self, word: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text += word;
    }
}

impl Observer<()> for Log {
    fn started(&mut self, _: &mut Flow<'_, ()>) {
        self.add("start");
    }

    fn event(&mut self, _: &mut Flow<'_, ()>, event: &FlowEvent) {
        let word = match event {
            FlowEvent::Established { handshake_rtt: Some(rtt) } => format!("est:{}", rtt.as_millis()),
            FlowEvent::Established { handshake_rtt: None } => "est:?".to_owned(),
            FlowEvent::StateChanged { to, .. } => format!("to:{to}"),
            FlowEvent::DirectionChanged { initiator, evidence } => {
                format!("dir:{}:{evidence}", if *initiator == CLIENT { '>' } else { '<' })
            }
            FlowEvent::Anomaly(Anomaly::ResetOutOfWindow) => "!reset".to_owned(),
            FlowEvent::Anomaly(Anomaly::SynOnOpenFlow) => "!syn".to_owned(),
            FlowEvent::Anomaly(Anomaly::AckedUnseen) => "!unseen".to_owned(),
            other => format!("{other:?}"),
        };
        self.add(&word);
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        match reason {
            EndReason::ActiveTimeout => self.add("active"),
            reason => {
                self.add(&format!("record:{reason}"));
                self.records.push(flow.view.record(reason));
            }
        }
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.add(&format!("end:{reason}:{}", flow.history()));
        self.records.push(flow.record(reason));
    }
}

fn flags_of(letters: &str) -> TcpFlags {
    letters.chars().fold(TcpFlags(0), |flags, letter| {
        flags
            | match letter {
                'S' => TcpFlags::SYN,
                'A' => TcpFlags::ACK,
                'F' => TcpFlags::FIN,
                'R' => TcpFlags::RST,
                'P' => TcpFlags::PSH,
                other => panic!("no control bit {other}"),
            }
    })
}

/// Returns a header with a window scale option, without options (`-`), or no header (`?`).
fn header(scale: &str) -> &'static [u8] {
    const PLAIN: [u8; 20] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0];
    match scale {
        "?" => &[],
        "-" => &PLAIN,
        scale => {
            let mut header = PLAIN.to_vec();
            header[12] = 0x60;
            header.extend([3, 3, scale.parse().expect("a shift"), 0]);
            header.leak()
        }
    }
}

/// Parses the notation of a segment.
pub(crate) fn segment(text: &str, now: &mut Timestamp) -> Packet<'static> {
    let mut words = text.split(' ');
    let is_client = words.next() == Some(">");
    let ends = (([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), 40_001));
    let (source, target) = if is_client { ends } else { (ends.1, ends.0) };
    let (key, side) = FlowKey::new(IpProtocol::TCP, source, target);
    let mut packet = Packet::new(key, side, Timestamp::ZERO, header("-"));
    packet.transport = Transport::Tcp;
    packet.tcp.flags = flags_of(words.next().expect("control bits"));
    let number = |digits: &str| digits.parse::<u32>().unwrap_or_else(|_| panic!("{digits} in {text}"));
    packet.tcp.seq = SeqNum(number(words.next().expect("a sequence number")));
    packet.tcp.window = 1000;
    for word in words {
        let (kind, value) = word.split_at(1);
        match kind {
            "a" => packet.tcp.ack = SeqNum(number(value)),
            "l" => packet.payload_len = number(value),
            "w" => packet.tcp.window = number(value) as u16,
            "s" => packet.frame = header(value),
            "@" => *now = now.saturating_add(Duration::from_millis(number(value).into())),
            _ => panic!("{word} in {text}"),
        }
    }
    packet.timestamp = *now;
    packet.wire_len = 54 + packet.payload_len;
    packet.ip_len = 40 + packet.payload_len;
    packet
}

/// Runs steps and panics with the whole dialogue if any result differs. The step `end` is the end of input.
pub(crate) fn run(steps: &[(&str, &str)]) -> Vec<FlowRecord> {
    run_with(Tracker::default(), steps)
}

/// Same as [`run`], with a tracker.
pub(crate) fn run_with(mut tracker: Tracker<()>, steps: &[(&str, &str)]) -> Vec<FlowRecord> {
    let mut log = Log::default();
    let mut now = Timestamp::from_parts(1000, 0);
    let mut dialogue = String::new();
    let mut all_match = true;
    for (step, expected) in steps {
        if *step == "end" {
            tracker.finish(&mut log);
        } else {
            tracker.track(&segment(step, &mut now), &mut log);
        }
        tracker.check_invariants();
        let found = std::mem::take(&mut log.text);
        let mark = if found == *expected { ' ' } else { 'X' };
        all_match &= found == *expected;
        let _ = writeln!(dialogue, "{mark} {step:<32} {found:<50} expected: {expected}");
    }
    tracker.finish(&mut log);
    assert!(all_match, "\n{dialogue}");
    log.records
}
