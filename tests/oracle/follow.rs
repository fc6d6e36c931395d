//! Comparison of TCP streams, octet for octet, with the streams that tshark follows. `follow_listed.tsv` lists each
//! direction that differs and the reason: a [`Class`], which the test verifies, or an entry of [`LISTED`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use flowgauge::base::{FlowKey, IpProtocol, Side};
use flowgauge::pipeline::{Sink, Streams};
use flowgauge::reassembler::StreamEvent;
use flowgauge::tracker::{Flow, Interest};
use serde_json::Value;

use super::corpus::{self, Capture};
use super::support::run_without_timeouts;

/// Number of streams that tshark follows in one run. It compares each packet with each of them, so that a run reads a file
/// with the packets of these streams only.
const STREAMS_PER_RUN: usize = 1000;

const LISTED: &[(&str, &str)] = &[
    (
        "FlowTest/ipv6-routing-header.pcap",
        "the key contains the last destination of the routing header, which the TCP checksum covers",
    ),
    (
        "suricata-verify/tcp-rst-unacked-stream-03-gap/input.pcap",
        "the payload of a RST is diagnostic text (RFC 9293 section 3.5.3) and does not belong to the stream",
    ),
    (
        "suricata-verify/transform-base64-7296/input.pcap",
        "this capture has flipped bits; tshark starts a new stream at frame 36, which has all control bits set",
    ),
    (
        "nDPI/KakaoTalk_talk.pcap",
        "a middlebox changed the sequence numbers, so SYN-ACK and data do not match; tshark waits for octets after the SYN-ACK",
    ),
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "a corrupted sequence number places octets after the FIN, where no receiver reads them",
    ),
    (
        "skydive/eth-ipv4-tcp-http-ooo.pcap",
        "the capture has acknowledgments before the segments; flowgauge waits for the segments, tshark shows a gap and then octets at the wrong offset",
    ),
    (
        "tcpdump/of13_ericsson.pcapng",
        "OpenFlow messages contain frames; tshark follows the streams in these frames",
    ),
    (
        "zeek/ipv4/fragmented-4.pcap",
        "the datagram's fragments overlap with different octets, so it is discarded by default",
    ),
];

/// The content of a direction: octets, and gaps with their lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Text(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Gap(u64),
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Part::Bytes(all)) => all.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => self.0.push(Part::Bytes(bytes.to_owned())),
        }
    }

    fn push_gap(&mut self, len: u64) {
        match self.0.last_mut() {
            Some(Part::Gap(all)) => *all += len,
            _ => self.0.push(Part::Gap(len)),
        }
    }

    fn append(&mut self, other: &Self) {
        for part in &other.0 {
            match part {
                Part::Bytes(bytes) => self.push(bytes),
                Part::Gap(len) => self.push_gap(*len),
            }
        }
    }

    fn octet_count(&self) -> usize {
        let len = |part: &Part| if let Part::Bytes(bytes) = part { bytes.len() } else { 0 };
        self.0.iter().map(len).sum()
    }

    /// Returns the octets of the first parts.
    fn bytes(&self, part_count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for part in self.0.iter().take(part_count) {
            if let Part::Bytes(bytes) = part {
                all.extend_from_slice(bytes);
            }
        }
        all
    }

    /// Returns the lengths of the first parts, with gaps in brackets. If there are more parts, states their number.
    fn outline(&self) -> String {
        let part = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.len().to_string(),
            Part::Gap(len) => format!("[{len}]"),
        };
        let mut parts: Vec<_> = self.0.iter().take(8).map(part).collect();
        if self.0.len() > parts.len() {
            parts.push(format!("... {} parts, {} octets", self.0.len(), self.octet_count()));
        }
        parts.join(" ")
    }
}

/// The streams of each five-tuple in the order in which they began, both sides.
type ByKey = BTreeMap<FlowKey, Vec<[Text; 2]>>;

/// Collects the streams of each five-tuple.
#[derive(Default)]
struct Collect(ByKey);

impl Sink for Collect {
    type State = ();
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, ()>) {
        if flow.view.key().protocol() == IpProtocol::TCP {
            self.0.entry(*flow.view.key()).or_default().push(<[Text; 2]>::default());
        }
    }

    fn stream(&mut self, flow: &mut Flow<'_, ()>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let streams = self.0.get_mut(flow.view.key());
        // Only one flow of a key is open at a time.
        let texts = streams.and_then(|streams| streams.last_mut()).expect("a flow that has started");
        match event {
            StreamEvent::Chunk(chunk) => texts[side.index()].push(chunk.bytes),
            StreamEvent::Gap(gap) => texts[side.index()].push_gap(gap.len),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn ours(capture: &Capture) -> ByKey {
    let sink = run_without_timeouts(&capture.path(), Collect::default());
    sink.0
}

/// Returns tshark's streams with these numbers, or `None` if it is not installed.
fn theirs(capture: &Capture, numbers: &[u64]) -> Option<ByKey> {
    let mut streams = ByKey::new();
    if numbers.len() <= STREAMS_PER_RUN {
        follow(&capture.path(), numbers.iter().copied(), &mut streams)?;
        return Some(streams);
    }
    let part = Path::new(env!("CARGO_TARGET_TMPDIR")).join("followed.pcap");
    for numbers in numbers.chunks(STREAMS_PER_RUN) {
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        let mut command = Command::new("tshark");
        command.args(["-n", "-r"]).arg(capture.path()).args(["-F", "pcap", "-w"]).arg(&part);
        command.args(["-Y", &format!("tcp.stream >= {first} && tcp.stream <= {last}")]);
        assert!(command.output().ok()?.status.success(), "tshark cannot write the streams");
        // tshark counts the streams of each file from zero.
        follow(&part, 0..last - first + 1, &mut streams)?;
    }
    Some(streams)
}

/// Adds the streams with these numbers of a file. Returns `None` if tshark is not installed.
fn follow(path: &Path, numbers: impl Iterator<Item = u64>, streams: &mut ByKey) -> Option<()> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-q", "-r"]).arg(path).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    for number in numbers {
        command.args(["-z", &format!("follow,tcp,raw,{number}")]);
    }
    let output = command.output().ok()?;
    parse(&String::from_utf8_lossy(&output.stdout), streams);
    Some(())
}

fn parse(text: &str, streams: &mut ByKey) {
    let mut nodes = Vec::new();
    // tshark prints the taps of one run in reverse order.
    let mut found: Vec<(u64, FlowKey, [Text; 2])> = Vec::new();
    let (mut number, mut sides) = (0, [Side::A, Side::B]);
    for line in text.lines() {
        if let Some(filter) = line.strip_prefix("Filter: tcp.stream eq ") {
            number = filter.parse().expect("a number");
            nodes.clear();
        } else if let Some(node) = line.strip_prefix("Node 0: ").or(line.strip_prefix("Node 1: ")) {
            let (address, port) = node.rsplit_once(':').expect("an address and a port");
            let address = address.trim_start_matches('[').trim_end_matches(']');
            nodes.push((address.to_owned(), port.parse().expect("a port")));
            if let [a, b] = &nodes[..]
                && !a.0.is_empty()
            {
                let (key, side) = corpus::key(IpProtocol::TCP.0, (&a.0, a.1), (&b.0, b.1));
                sides = [side, side.other()];
                found.push((number, key, <[Text; 2]>::default()));
            }
        } else if let Some((_, _, texts)) = found.last_mut()
            && !line.starts_with(['=', 'F'])
            && !line.is_empty()
        {
            let text = &mut texts[sides[usize::from(line.starts_with('\t'))].index()];
            let bytes = unhex(line.trim_start());
            match missing(&bytes) {
                Some(len) => text.push_gap(len),
                None => text.push(&bytes),
            }
        }
    }
    found.sort_by_key(|(number, ..)| *number);
    for (_, key, texts) in found {
        streams.entry(key).or_default().push(texts);
    }
}

fn unhex(line: &str) -> Vec<u8> {
    let digits = line.as_bytes().chunks_exact(2);
    digits
        .map(|pair| {
            u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("a hexadecimal number")
        })
        .collect()
}

/// Returns the length of a gap if the octets are tshark's text for a gap.
fn missing(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\0')?;
    text.strip_prefix('[')?.strip_suffix(" bytes missing in capture file]")?.parse().ok()
}

fn numbers(capture: &Capture) -> Vec<u64> {
    let text = std::fs::read_to_string(capture.derived("tshark-flows.json")).expect("a derived file");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let streams = json["tcp_streams"].as_array().expect("streams");
    streams.iter().filter_map(|stream| stream["stream"].as_u64()).collect()
}

/// A common reason for which two directions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The octets are the same. tshark shows no gap at the end of a stream, and a gap due to the snap length only if
    /// later segments were acknowledged.
    UnreportedGap,
    /// tshark's octets equal ours up to a gap. It omits the octets after missing octets that were never acknowledged.
    OmittedOctets,
    /// The capture lacks the beginning of the connection, and the side sent only the octet of its keep-alives. tshark
    /// recognizes keep-alives from the second one on.
    KeepAlive,
}

impl Class {
    fn of(own: &Text, other: &Text) -> Option<Self> {
        let written = other.bytes(other.0.len());
        if own.0.is_empty() && written.len() == 1 && other.0.len() == 1 {
            return Some(Self::KeepAlive);
        }
        if own.bytes(own.0.len()) == written {
            return Some(Self::UnreportedGap);
        }
        let mut gaps = own.0.iter().enumerate().filter(|(_, part)| matches!(part, Part::Gap(_)));
        gaps.any(|(position, _)| own.bytes(position) == written).then_some(Self::OmittedOctets)
    }
}

/// Returns one side of all streams of a five-tuple.
fn side_of(streams: Option<&Vec<[Text; 2]>>, side: Side) -> Vec<Text> {
    streams.into_iter().flatten().map(|texts| texts[side.index()].clone()).collect()
}

fn joined(texts: &[Text]) -> Text {
    let mut all = Text::default();
    texts.iter().for_each(|text| all.append(text));
    all
}

/// Returns the classes of the differences between the streams of a five-tuple, or `None` if a difference has no class.
fn classes(own: &[Text], other: &[Text]) -> Option<String> {
    if own.len() != other.len() {
        return None;
    }
    let differing = own.iter().zip(other).filter(|(own, other)| own != other);
    let mut classes = differing.map(|(own, other)| Class::of(own, other)).collect::<Option<Vec<_>>>()?;
    classes.sort();
    classes.dedup();
    let names: Vec<_> = classes.iter().map(|class| format!("{class:?}")).collect();
    Some(names.join(", "))
}

#[test]
fn streams_match_those_that_tshark_follows() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_count, mut octet_count) = (0, 0);
    let mut found = String::from("capture\tdirection\tflowgauge\ttshark\twhy\n");
    for capture in &captures {
        let numbers = numbers(capture);
        if numbers.is_empty() {
            continue;
        }
        let Some(theirs) = theirs(capture, &numbers) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let own = ours(capture);
        let mut keys: Vec<_> = own.keys().chain(theirs.keys()).collect();
        keys.sort();
        keys.dedup();
        for (key, side) in keys.into_iter().flat_map(|key| [(key, Side::A), (key, Side::B)]) {
            let (own, other) = (side_of(own.get(key), side), side_of(theirs.get(key), side));
            let (whole, others_whole) = (joined(&own), joined(&other));
            if whole == others_whole {
                (equal_count, octet_count) = (equal_count + 1, octet_count + whole.octet_count());
                continue;
            }
            let listed = || {
                let entry = LISTED.iter().find(|(name, _)| *name == capture.name)?;
                Some(entry.1.to_owned())
            };
            let why = classes(&own, &other).or_else(listed).unwrap_or("?".to_owned());
            let (own, other) = (whole.outline(), others_whole.outline());
            let name = &capture.name;
            writeln!(found, "{name}\t{key} {side:?}\t{own}\t{other}\t{why}").expect("memory");
        }
    }
    println!("{equal_count} directions equal, {octet_count} octets");
    if found != include_str!("follow_listed.tsv") {
        let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/follow_listed.tsv");
        std::fs::write(path, &found).expect("a writable folder");
        panic!("the differences are not those of follow_listed.tsv: compare it with {path}");
    }
    assert!(equal_count > 0, "nothing was compared");
}
