//! Comparison of packets and octets per five-tuple and direction with tshark.

use std::collections::BTreeMap;

use flowgauge::base::{FlowKey, IpProtocol, Ports, Side};
use serde_json::Value;

use super::corpus::{self, Capture, Outcome};

/// A capture for which tshark's results differ, and the reason.
struct Listed {
    capture: &'static str,
    why: &'static str,
    /// All differences, in the format that the test prints.
    differences: &'static [&'static str],
}

const LISTED: &[Listed] = &[
    Listed {
        capture: "pcapng-test-generator/output_le/basic/test017.pcapng",
        why: "tshark shows each custom block as a frame, but a custom block contains no packet",
        differences: &["0 frames, tshark 4", "0 octets, tshark 152"],
    },
    Listed {
        capture: "pcapng-test-generator/output_le/difficult/test202.pcapng",
        why: "tshark shows each custom block as a frame, but a custom block contains no packet",
        differences: &["8 frames, tshark 11", "2304 octets, tshark 2420"],
    },
    Listed {
        capture: "nDPI/fuzz-2006-06-26-2594.pcap",
        why: "a first fragment without the others (frame 642) has ports, so flowgauge counts it; tshark does not parse its transport header",
        differences: &[
            "udp 192.168.1.1:53 <-> 192.168.1.2:2823: 0+4 packets 0+344 octets, tshark 0+3 packets 0+258 octets",
        ],
    },
    Listed {
        capture: "libpcap/filter/ipv6_ext_headers.pcap",
        why: "98 extension headers exceed Limits::ip_extension_count_max, which is 16: malformed (too deep)",
        differences: &[
            "udp [2001:db8::1]:12345 <-> [2001:db8::2]:54321: none, tshark 1+0 packets 872+0 octets",
        ],
    },
    Listed {
        capture: "tcpdump/vxlan_port_8472.pcap",
        why: "flowgauge decapsulates VXLAN on Linux's former port; tests/oracle/decode_as.rs runs tshark with -d udp.port==8472,vxlan, and it agrees",
        differences: &[
            "udp 192.168.202.1:8472 <-> 192.168.203.1:45149: none, tshark 0+4 packets 0+592 octets",
            "udp 192.168.202.1:32894 <-> 192.168.203.1:8472: none, tshark 4+0 packets 592+0 octets",
        ],
    },
];

/// Packets and octets of side A and side B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    packets: [u64; 2],
    octets: [u64; 2],
}

impl std::fmt::Display for Sums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { packets: [a, b], octets: [c, d] } = self;
        write!(f, "{a}+{b} packets {c}+{d} octets")
    }
}

type Flows = BTreeMap<FlowKey, Sums>;

fn ours(outcome: &Outcome) -> Flows {
    let mut flows = Flows::new();
    for record in &outcome.records {
        let is_compared = matches!(record.protocol(), IpProtocol::TCP | IpProtocol::UDP | IpProtocol::SCTP);
        if !is_compared || record.key.ports() == Ports::None {
            continue;
        }
        let sums = flows.entry(record.key).or_default();
        for (side, of_side) in
            [(record.initiator, &record.forward), (record.initiator.other(), &record.reverse)]
        {
            sums.packets[side.index()] += of_side.counters.packet_count;
            sums.octets[side.index()] += of_side.counters.octet_count;
        }
    }
    flows
}

fn theirs(json: &Value) -> Flows {
    let mut flows = Flows::new();
    for flow in json["flows"].as_array().expect("flows") {
        let (key, side) = key_of(number(&flow["protocol"]) as u8, flow);
        let sums = flows.entry(key).or_default();
        for (position, side) in [side, side.other()].into_iter().enumerate() {
            sums.packets[side.index()] += number(&flow["packets"][position]);
            sums.octets[side.index()] += number(&flow["octets"][position]);
        }
    }
    flows
}

fn key_of(protocol: u8, flow: &Value) -> (FlowKey, Side) {
    let end = |end: &'_ Value| (end[0].as_str().expect("an address").to_owned(), number(&end[1]) as u16);
    let (source, target) = (end(&flow["a"]), end(&flow["b"]));
    corpus::key(protocol, (&source.0, source.1), (&target.0, target.1))
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn differences(outcome: &Outcome, json: &Value) -> Vec<String> {
    let (ours, theirs) = (ours(outcome), theirs(json));
    let mut keys: Vec<_> = ours.keys().chain(theirs.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut found = Vec::new();
    for key in keys {
        match (ours.get(key), theirs.get(key)) {
            (Some(own), Some(other)) if own == other => {}
            (Some(own), Some(other)) => found.push(format!("{key}: {own}, tshark {other}")),
            (Some(own), None) => found.push(format!("{key}: {own}, tshark none")),
            (None, Some(other)) => found.push(format!("{key}: none, tshark {other}")),
            (None, None) => {}
        }
    }
    let (frames, their_frames) = (outcome.stats.frame_count, number(&json["frames"]));
    if frames != their_frames {
        found.push(format!("{frames} frames, tshark {their_frames}"));
    }
    let octets = (outcome.stats.octet_count, number(&json["octets"]));
    if octets.0 != octets.1 {
        found.push(format!("{} octets, tshark {}", octets.0, octets.1));
    }
    found
}

fn derived(capture: &Capture) -> Value {
    let path = capture.derived("tshark-flows.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn packets_and_octets_of_each_five_tuple_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal, mut listed, mut failures) = (0, 0, Vec::new());
    let mut flow_count = 0;
    for capture in &captures {
        let outcome = corpus::flows_of(&capture.path());
        let stats = &outcome.stats;
        let counted = stats.tracker.packet_count + stats.skipped.total() + stats.orphan_fragment_count;
        assert_eq!(stats.frame_count, counted, "{}", capture.name);
        let json = derived(capture);
        let found = differences(&outcome, &json);
        let entry = LISTED.iter().find(|entry| entry.capture == capture.name);
        if found != entry.map_or(&[][..], |entry| entry.differences) {
            failures.push(format!("{}: {found:#?}", capture.name));
        } else {
            flow_count += number_of_flows(&json);
            equal += usize::from(entry.is_none());
            listed += usize::from(entry.is_some());
        }
    }
    for entry in LISTED {
        println!("{}: {}", entry.capture, entry.why);
        assert!(
            captures.iter().any(|capture| capture.name == entry.capture),
            "{} is not a capture of the corpus",
            entry.capture
        );
    }
    println!("{equal} captures equal, {listed} listed, {flow_count} flows");
    assert!(equal > 0 && flow_count > 0, "nothing was compared");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn number_of_flows(json: &Value) -> usize {
    json["flows"].as_array().map_or(0, Vec::len)
}

#[test]
fn community_ids_match_the_reference_package() {
    let Some(captures) = corpus::captures() else { return };
    let mut compared = 0;
    for capture in &captures {
        for flow in derived(capture)["flows"].as_array().expect("flows") {
            let Some(expected) = flow["community_id"].as_str() else { continue };
            assert_eq!(
                key_of(number(&flow["protocol"]) as u8, flow).0.community_id(0),
                expected,
                "{}: {flow}",
                capture.name
            );
            compared += 1;
        }
    }
    println!("{compared} community ids");
    assert!(compared > 0, "nothing was compared");
}

/// The combined values of the TCP streams of a five-tuple.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tcp {
    payload: [u64; 2],
    flags: [u64; 2],
    start_ns: u64,
    end_ns: u64,
}

impl Tcp {
    fn add(&mut self, side: Side, payload: u64, flags: u64) {
        self.payload[side.index()] += payload;
        self.flags[side.index()] |= flags;
    }

    fn extend_times(&mut self, start_ns: u64, end_ns: u64) {
        let is_first = self.start_ns == 0;
        self.start_ns = if is_first { start_ns } else { self.start_ns.min(start_ns) };
        self.end_ns = self.end_ns.max(end_ns);
    }
}

/// Converts a time in seconds with nine decimals to nanoseconds.
fn nanos(value: &Value) -> u64 {
    let (seconds, fraction) = value.as_str().and_then(|text| text.split_once('.')).expect("seconds");
    assert_eq!(fraction.len(), 9);
    format!("{seconds}{fraction}").parse().expect("digits")
}

fn tcp_differences(outcome: &Outcome, json: &Value) -> Vec<String> {
    let (mut ours, mut theirs) = (BTreeMap::<FlowKey, Tcp>::new(), BTreeMap::<FlowKey, Tcp>::new());
    for record in &outcome.records {
        if record.protocol() != IpProtocol::TCP || record.key.ports() == Ports::None {
            continue;
        }
        let tcp = ours.entry(record.key).or_default();
        tcp.extend_times(record.start.as_nanos(), record.end.as_nanos());
        for (side, of_side) in
            [(record.initiator, &record.forward), (record.initiator.other(), &record.reverse)]
        {
            tcp.add(side, of_side.counters.payload_octet_count, of_side.tcp_flags.0.into());
        }
    }
    for stream in json["tcp_streams"].as_array().expect("streams") {
        let (key, side) = key_of(IpProtocol::TCP.0, stream);
        let tcp = theirs.entry(key).or_default();
        tcp.extend_times(nanos(&stream["first"]), nanos(&stream["last"]));
        for (position, side) in [side, side.other()].into_iter().enumerate() {
            tcp.add(side, number(&stream["payload"][position]), number(&stream["flags"][position]));
        }
    }
    let mut found = Vec::new();
    for (key, own) in &ours {
        let missing = Tcp::default();
        let other = theirs.get(key).unwrap_or(&missing);
        let mut compare = |name: &str, own: [u64; 2], other: [u64; 2]| {
            if own != other {
                found.push(format!("{key}: {name} {own:?}, tshark {other:?}"));
            }
        };
        compare("payload", own.payload, other.payload);
        compare("flags", own.flags, other.flags);
        compare("times", [own.start_ns, own.end_ns], [other.start_ns, other.end_ns]);
    }
    found
}

const TRUNCATED_HEADER: &str =
    "the segment ends within the TCP header: flowgauge uses its ports and no other fields";

const FRAGMENT_TIMES: &str = "the flow begins with the capture time of its first fragment; tshark's streams begin with the frame that \
                              completes the datagram";

/// Captures for which tshark's TCP fields differ.
const LISTED_TCP: &[Listed] = &[
    Listed {
        capture: "suricata-verify/transform-base64-7296/input.pcap",
        why: TRUNCATED_HEADER,
        differences: &[
            "tcp 127.0.0.1:8080 <-> 127.0.0.1:57226: times [1630659999997533000, 1630660000023790000], \
             tshark [1630659999997533000, 1630659999998100000]",
            "tcp 127.0.0.1:59207 <-> 223.138.31.144:44354: flags [0, 0], tshark [3624, 0]",
        ],
    },
    Listed {
        capture: "merged/iot-public.pcap",
        why: "a record ends at the latest time of its packets, tshark's conversation with the last packet",
        differences: &[
            "tcp 10.10.10.6:80 <-> 10.10.10.30:35650: times [1473261376552109000, 1473261376583693000], \
             tshark [1473261376552109000, 1473261376583675000]",
            "tcp 10.10.10.6:80 <-> 10.10.10.30:41699: times [1473261352263515000, 1473261352280096000], \
             tshark [1473261352263515000, 1473261352280095000]",
        ],
    },
    Listed {
        capture: "nDPI/fuzz-2006-06-26-2594.pcap",
        why: TRUNCATED_HEADER,
        differences: &[
            "tcp 147.234.1.253:47645 <-> 192.168.1.2:58657: times [1120469635152721000, 1120469635152721000], tshark [0, 0]",
        ],
    },
    Listed {
        capture: "tcpflow/test1-out-of-order.pcap",
        why: "the capture time steps back: in flowgauge a flow ends with its latest packet, in tshark with the last one in the file",
        differences: &[
            "tcp 74.125.19.104:80 <-> 192.168.1.102:50955: times [1223315694711975000, 1223315694711975000], \
             tshark [1223315694711975000, 1223315694695990000]",
        ],
    },
    Listed {
        capture: "zeek/ipv4/fragmented-4.pcap",
        why: "the fragments overlap, so flowgauge discards the datagram, as RFC 5722 requires for IPv6; tshark reassembles it",
        differences: &["tcp 10.0.0.1:80 <-> 128.32.46.142:7790: payload [0, 0], tshark [0, 69]"],
    },
    Listed {
        capture: "zeek/tunnels/gtp/gtp9_unknown_or_too_short_payload.pcap",
        why: FRAGMENT_TIMES,
        differences: &[
            "tcp 10.131.119.38:55746 <-> 217.20.156.4:80: times [1333458853034733000, 1333458853108391000], \
             tshark [1333458853034734000, 1333458853108391000]",
        ],
    },
    Listed {
        capture: "zeek/tunnels/gtp/gtp_ext_header.pcap",
        why: FRAGMENT_TIMES,
        differences: &[
            "tcp 10.155.182.202:41511 <-> 10.155.186.57:6005: times [1322687387230825000, 1322687387230831000], \
             tshark [1322687387230831000, 1322687387230831000]",
        ],
    },
];

#[test]
fn payload_flags_and_times_of_each_tcp_tuple_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    for entry in LISTED_TCP {
        println!("{}: {}", entry.capture, entry.why);
    }
    let mut failures = Vec::new();
    for capture in &captures {
        let found = tcp_differences(&corpus::flows_of(&capture.path()), &derived(capture));
        let listed = LISTED_TCP
            .iter()
            .filter(|entry| entry.capture == capture.name)
            .flat_map(|entry| entry.differences);
        if !found.iter().eq(listed) {
            failures.push(format!("{}: {found:#?}", capture.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
