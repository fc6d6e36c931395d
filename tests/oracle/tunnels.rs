//! Flows in tunnels: comparison of linked levels with runs of a single level, and of encapsulations with tshark.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::Command;

use flowgauge::base::{Encapsulation, FlowKey, HeaderKind, IpProtocol, Ports, Side};
use flowgauge::decode::link::Decapsulation;
use flowgauge::pipeline::{Pipeline, Records, RunOptions};
use flowgauge::record::FlowRecord;
use flowgauge::source::FileSource;
use flowgauge::tracker::{Timeouts, TrackerConfig};

use super::corpus::{self, Capture, Outcome};

/// Processes a capture without timeouts and returns records with their encapsulations.
fn flows(capture: &Capture, decapsulation: Decapsulation) -> Outcome {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    config.key_policy.decapsulation = decapsulation;
    let mut source = FileSource::open(capture.path()).expect("a readable capture");
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    let builder = Pipeline::builder().tracker(config).encapsulation(true);
    let mut pipeline = builder.build(sink).expect("a valid configuration");
    let run = pipeline.run(&mut source, &RunOptions::default());
    drop(pipeline);
    let summary = run.unwrap_or_else(|error| panic!("{}: {error}", capture.name));
    Outcome { stats: summary.stats, records }
}

/// Returns the sums of packets and octets by key.
fn sums<'r>(records: impl Iterator<Item = &'r FlowRecord>) -> BTreeMap<FlowKey, (u64, u64)> {
    let mut sums = BTreeMap::<FlowKey, (u64, u64)>::new();
    for record in records {
        let sum = sums.entry(record.key).or_default();
        *sum = (sum.0 + record.packet_count(), sum.1 + record.octet_count());
    }
    sums
}

#[test]
fn linked_flows_match_the_runs_of_a_single_level() {
    let Some(captures) = corpus::captures() else { return };
    let (mut linked_count, mut tunnel_count) = (0, 0);
    for capture in &captures {
        let both = flows(capture, Decapsulation::Both);
        let stats = &both.stats;
        let counted = stats.tracker.packet_count + stats.skipped.total() + stats.orphan_fragment_count;
        assert_eq!(counted, stats.frame_count + stats.outer_packet_count, "{}", capture.name);

        // Without the packets that it carries, a flow equals that of the run with `Innermost`.
        let mut inner = sums(both.records.iter());
        for record in &both.records {
            if let (Some(part), Some(sum)) = (&record.encapsulation, inner.get_mut(&record.key)) {
                *sum = (sum.0 - part.carried_packet_count, sum.1 - part.carried_octet_count);
                tunnel_count += usize::from(part.carried_packet_count > 0);
            }
        }
        inner.retain(|_, sum| *sum != (0, 0));
        let innermost = flows(capture, Decapsulation::Innermost);
        assert_eq!(inner, sums(innermost.records.iter()), "{}", capture.name);

        // A flow without an outer flow equals that of the run with `Outermost`.
        let outers = |record: &FlowRecord| {
            let sides = record.encapsulation.as_ref().map(|part| [part.outer_flow, part.reverse_outer_flow]);
            sides.into_iter().flatten().flatten().map(|outer| outer.key).collect::<Vec<_>>()
        };
        let carried: BTreeSet<_> = both
            .records
            .iter()
            .filter(|record| !outers(record).is_empty())
            .map(|record| record.key)
            .collect();
        let outermost = flows(capture, Decapsulation::Outermost);
        let is_outer = |record: &&FlowRecord| !carried.contains(&record.key);
        assert_eq!(
            sums(both.records.iter().filter(is_outer)),
            sums(outermost.records.iter().filter(is_outer)),
            "{}",
            capture.name
        );

        // Each named outer flow has a record, which counts the flows that name it.
        let keys: BTreeSet<_> = both.records.iter().map(|record| record.key).collect();
        let mut named_count = 0;
        for record in &both.records {
            let names: BTreeSet<_> = outers(record).into_iter().collect();
            assert!(names.iter().all(|name| keys.contains(name)), "{}: {}", capture.name, record.key);
            named_count += names.len();
        }
        let inner_count: u32 = both
            .records
            .iter()
            .flat_map(|record| &record.encapsulation)
            .map(|part| part.inner_flow_count)
            .sum();
        assert_eq!(named_count, inner_count as usize, "{}", capture.name);
        linked_count += named_count;
    }
    println!("{linked_count} links to {tunnel_count} tunnels");
    assert!(linked_count > 0 && tunnel_count > 0, "nothing was compared");
}

/// Differences, and the reason.
const LISTED: [(&str, &str); 1] = [(
    "zeek/tunnels/gtp/gtp9_unknown_or_too_short_payload.pcap: udp 173.86.159.28:2152 <-> 213.72.147.186:2152 A: none, \
     tshark {\"GTP-U\": [\"2551382348\"]}",
    "the payload of the GTP-U header in frame 12 is not an IP packet, so flowgauge finds no tunnel",
)];

/// The headers of each kind in a frame, outermost first.
type Headers = BTreeMap<&'static str, Vec<String>>;

/// Kinds of headers, with tshark's fields for their numbers.
const NUMBERS: [(HeaderKind, &str); 8] = [
    (HeaderKind::Vlan, "vlan.id"),
    (HeaderKind::Mpls, "mpls.label"),
    (HeaderKind::Vxlan, "vxlan.vni"),
    (HeaderKind::Geneve, "geneve.vni"),
    (HeaderKind::GtpU, "gtp.teid"),
    (HeaderKind::Pppoe, "pppoe.session_id"),
    (HeaderKind::Erspan, "erspan.spanid"),
    (HeaderKind::ProviderBackbone, "ieee8021ah.isid"),
];

const ENDPOINT_FIELDS: [&str; 9] = [
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
];

/// Converts a number in tshark's notation, hexadecimal or decimal, to decimal.
fn number(text: &str) -> String {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.map_or_else(|| text.to_owned(), |number| number.to_string())
}

/// Returns the flow of a frame and its outer headers. Returns `None` if the packet is neither TCP nor UDP, or has no
/// outer headers.
fn flow_and_headers(cells: &[Vec<&str>]) -> Option<((FlowKey, Side), Headers)> {
    let [protocols, v4_source, v4_target, v6_source, v6_target, ..] = cells else { return None };
    let names: Vec<_> = protocols.first()?.split(':').collect();
    let ip = names.iter().rposition(|name| ["ip", "ipv6"].contains(name))?;
    let transport = names[ip..].iter().find(|name| ["tcp", "udp"].contains(name))?;
    // A packet that an ICMP error quotes is not in a tunnel.
    if names.iter().any(|name| name.starts_with("icmp")) {
        return None;
    }
    let mut v4: Vec<_> = v4_source.iter().zip(v4_target).collect();
    let mut v6: Vec<_> = v6_source.iter().zip(v6_target).collect();
    let (source, target) = if names[ip] == "ip" { v4.pop()? } else { v6.pop()? };
    let (protocol, from, to) = if *transport == "tcp" { (6, 5, 6) } else { (17, 7, 8) };
    let port = |position: usize| cells[position].last()?.parse().ok();
    let key = corpus::key(protocol, (source, port(from)?), (target, port(to)?));
    let mut headers = Headers::new();
    let pairs =
        |pairs: Vec<(&&str, &&str)>| pairs.iter().map(|(a, b)| format!("{a}>{b}")).collect::<Vec<_>>();
    headers.insert("IPv4", pairs(v4));
    headers.insert("IPv6", pairs(v6));
    for ((kind, _), cells) in NUMBERS.iter().zip(&cells[ENDPOINT_FIELDS.len()..]) {
        headers.insert(kind.name(), cells.iter().map(|cell| number(cell)).collect());
    }
    headers.retain(|_, list| !list.is_empty());
    let is_tagged_only = headers.keys().all(|kind| *kind == HeaderKind::Vlan.name());
    (!is_tagged_only).then_some((key, headers))
}

/// Returns tshark's outer headers of the first encapsulated packet of each side of each flow.
fn theirs(capture: &Capture) -> Option<BTreeMap<(FlowKey, Side), Headers>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args([
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=;",
    ]);
    for field in ENDPOINT_FIELDS.into_iter().chain(NUMBERS.map(|(_, field)| field)) {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let mut firsts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let cells: Vec<Vec<_>> = line
            .split('\t')
            .map(|cell| cell.split(';').filter(|value| !value.is_empty()).collect())
            .collect();
        if let Some((flow, headers)) = flow_and_headers(&cells) {
            firsts.entry(flow).or_insert(headers);
        }
    }
    Some(firsts)
}

/// Returns the outer headers in a record.
fn ours(encapsulation: &Encapsulation) -> Headers {
    let mut headers = Headers::new();
    for header in encapsulation.headers() {
        match header.endpoints {
            Some((source, target)) => {
                let kind = if matches!(source, IpAddr::V4(_)) { "IPv4" } else { "IPv6" };
                headers.entry(kind).or_default().push(format!("{source}>{target}"));
            }
            None => {
                // tshark has one field for both.
                let kind = if header.kind == HeaderKind::VxlanGpe { HeaderKind::Vxlan } else { header.kind };
                if NUMBERS.iter().any(|(other, _)| *other == kind) {
                    headers.entry(kind.name()).or_default().push(header.id().unwrap_or_default().to_string());
                }
            }
        }
    }
    headers
}

#[test]
fn the_encapsulation_matches_the_outer_headers_that_tshark_shows() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_count, mut found) = (0, Vec::new());
    for capture in &captures {
        let outcome = flows(capture, Decapsulation::Innermost);
        if outcome.records.iter().all(|record| record.encapsulation.is_none()) {
            continue;
        }
        let Some(mut theirs) = theirs(capture) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let mut compared = BTreeSet::new();
        let mut records: Vec<_> = outcome.records.iter().collect();
        records.sort_by_key(|record| record.start);
        for record in records {
            let is_read = matches!(record.protocol(), IpProtocol::TCP | IpProtocol::UDP);
            let Some(part) =
                record.encapsulation.as_ref().filter(|_| is_read && record.key.ports() != Ports::None)
            else {
                continue;
            };
            let sides = [
                (record.initiator, &part.encapsulation),
                (record.initiator.other(), &part.reverse_encapsulation),
            ];
            for (side, encapsulation) in sides {
                if encapsulation.is_empty() || !compared.insert((record.key, side)) {
                    continue;
                }
                let own = ours(encapsulation);
                match theirs.remove(&(record.key, side)) {
                    Some(other) if own == other => equal_count += 1,
                    // The stack has only headers without a number.
                    None if own.is_empty() => {}
                    other => found.push(format!(
                        "{}: {} {side:?}: {own:?}, tshark {other:?}",
                        capture.name, record.key
                    )),
                }
            }
        }
        for ((key, side), other) in theirs {
            found.push(format!("{}: {key} {side:?}: none, tshark {other:?}", capture.name));
        }
    }
    println!("{equal_count} sides of flows equal, {} not", found.len());
    assert!(equal_count > 0, "nothing was compared");
    let listed = LISTED.map(|(difference, _)| difference);
    assert!(found == listed, "{}", found.join("\n"));
}
