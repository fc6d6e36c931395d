//! Comparison of names, types and data of answers in all DNS, mDNS and LLMNR messages with tshark: frame by frame for
//! UDP, direction by direction for TCP. `dns_listed.tsv` lists each frame or direction that differs, with the reason
//! from [`LISTED`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::Command;

use flowgauge::base::IpProtocol;
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::dns::{
    DnsMessage, DnsParser, LLMNR, LlmnrParser, MDNS, MdnsParser, Message, Name, PROTOCOL, Value,
};
use flowgauge::session::MessageMeta;
use flowgauge::tracker::Flow;

use super::corpus::{self, Capture};
use super::layers;
use super::support::run_without_timeouts;

/// The separator between values of one field.
const SEPARATOR: char = '\u{1}';

/// The name of a capture, the beginning of its differences, and the reason.
const LISTED: &[(&str, &str, &str)] = &[
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "only in tshark",
        "this capture has flipped bits: the flow's first datagram has impossible counts or an impossible question, so the flow is not recognized as DNS",
    ),
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "dns.resp.name 2",
        "flipped bits: tshark stops within the data of a record; flowgauge continues with the next one, which the record's length locates",
    ),
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "dns.",
        "flipped bits: a label has an undefined type, at which flowgauge stops; tshark continues after it",
    ),
    ("nDPI/someip_sd_sample.pcap", "only in tshark", "SOME/IP on port 30490, which tshark identifies as DNS"),
    (
        "snabb/src/program/ipfix/tests/sanitized4k.pcap",
        "dns.id 10",
        "all payloads and all times are zero; a header in which all counts are zero is not DNS",
    ),
    ("tcpdump/rtp-seg-fault-1.pcapng", "only in tshark", "RTP to port 53: a header with 58,224 questions"),
];

flowgauge::protocols! {
    /// The parsers of DNS, mDNS and LLMNR.
    #[derive(Debug)]
    enum Set;
    /// Their messages.
    #[derive(Debug)]
    enum SetMessage;
    parsers {
        Dns: DnsParser = &PROTOCOL,
        Mdns: MdnsParser = &MDNS,
        Llmnr: LlmnrParser = &LLMNR,
    }
}

/// The fields that are compared.
const FIELDS: [&str; 14] = [
    "dns.id",
    "dns.flags.response",
    "dns.qry.name",
    "dns.qry.type",
    "dns.resp.name",
    "dns.resp.type",
    "dns.a",
    "dns.aaaa",
    "dns.cname",
    "dns.ns",
    "dns.ptr.domain_name",
    "dns.mx.mail_exchange",
    "dns.srv.target",
    "dns.soa.mname",
];

/// The values of each field, in order.
type Values = [Vec<String>; FIELDS.len()];

/// Values by location: a capture time for UDP, ports for TCP.
type Locations = BTreeMap<String, Values>;

#[derive(Default)]
struct Collect {
    locations: Locations,
    message_count: usize,
}

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Set>;

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &SetMessage<'_>) {
        let (SetMessage::Dns(message) | SetMessage::Mdns(message) | SetMessage::Llmnr(message)) = message;
        let (Message::Query(message) | Message::Response(message)) = message else { return };
        let key = flow.view.key();
        let location = if key.protocol() == IpProtocol::TCP {
            let port = |side| key.port(side).expect("a port");
            format!("tcp {} {}", port(meta.side), port(meta.side.other()))
        } else {
            let now = meta.timestamp.as_nanos();
            format!("udp {}.{:09}", now / 1_000_000_000, now % 1_000_000_000)
        };
        self.message_count += 1;
        add(self.locations.entry(location).or_default(), message);
    }
}

/// Returns a name in tshark's notation.
fn shown(name: &Name<'_>) -> String {
    if name.is_root() {
        return "<Root>".to_owned();
    }
    let labels: Vec<_> = name.labels().collect();
    let mut text = String::new();
    for character in String::from_utf8_lossy(&labels.join(&b'.')).chars() {
        match character {
            '\r' => text.push_str("\\r"),
            control if control.is_ascii_control() => {
                write!(text, "\\{:03o}", u32::from(control)).expect("memory");
            }
            plain => text.push(plain),
        }
    }
    text
}

fn add(values: &mut Values, message: &DnsMessage<'_>) {
    let mut push = |field: &str, value: String| {
        let position = FIELDS.iter().position(|known| *known == field).expect("a field");
        values[position].push(value);
    };
    push("dns.id", format!("0x{:04x}", message.header.id));
    push("dns.flags.response", u8::from(message.header.flags.is_response()).to_string());
    for question in message.questions() {
        push("dns.qry.name", shown(&question.name));
        push("dns.qry.type", question.record_type.0.to_string());
    }
    for (_, record) in message.records() {
        // tshark splits the names of SRV records into service, protocol and domain, in other fields.
        if record.record_type.0 != 33 {
            push("dns.resp.name", shown(&record.name));
        }
        push("dns.resp.type", record.record_type.0.to_string());
        for value in record.data.values().into_iter().flatten() {
            if let Value::Types(set) = value {
                set.types().for_each(|record_type| push("dns.resp.type", record_type.0.to_string()));
            }
        }
        let field = match record.record_type.0 {
            5 => "dns.cname",
            2 => "dns.ns",
            12 => "dns.ptr.domain_name",
            15 => "dns.mx.mail_exchange",
            33 => "dns.srv.target",
            6 => "dns.soa.mname",
            _ => "",
        };
        match record.data.address() {
            Some(IpAddr::V4(address)) => push("dns.a", address.to_string()),
            Some(IpAddr::V6(address)) => push("dns.aaaa", address.to_string()),
            None => {}
        }
        if let Some(name) = record.data.name().filter(|_| !field.is_empty()) {
            push(field, shown(&name));
        }
    }
}

fn ours(capture: &Capture) -> Collect {
    run_without_timeouts(&capture.path(), Collect::default())
}

/// Returns tshark's values, or `None` if it is not installed.
fn theirs(capture: &Capture) -> Option<Locations> {
    if !layers::has_any(capture, &["dns", "mdns", "llmnr"]) {
        return Some(Locations::new());
    }
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    // ICMP errors quote messages that other frames already contain.
    command.args(["-Y", "(dns or mdns or llmnr) and not icmp and not icmpv6", "-T", "fields"]);
    command.args(["-E", "separator=/t", "-E", "occurrence=a", "-E", &format!("aggregator={SEPARATOR}")]);
    command.args(["-e", "frame.time_epoch", "-e", "tcp.srcport", "-e", "tcp.dstport"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let mut locations = Locations::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let columns: Vec<_> = line.split('\t').collect();
        let (Some([time, source, destination]), Some(columns)) = (columns.get(..3), columns.get(3..)) else {
            panic!("{}: {line}", capture.name);
        };
        let location =
            if source.is_empty() { format!("udp {time}") } else { format!("tcp {source} {destination}") };
        let values = locations.entry(location).or_default();
        assert_eq!(columns.len(), FIELDS.len(), "{}: {line}", capture.name);
        for (values, column) in values.iter_mut().zip(columns) {
            values.extend(column.split(SEPARATOR).filter(|value| !value.is_empty()).map(str::to_owned));
        }
    }
    Some(locations)
}

/// Returns the fields that differ, each with the first different values.
fn differences(own: Option<&Values>, other: Option<&Values>) -> String {
    let (Some(own), Some(other)) = (own, other) else {
        return if own.is_none() { "only in tshark".to_owned() } else { "only in flowgauge".to_owned() };
    };
    let differing = FIELDS.iter().zip(own.iter().zip(other)).filter(|(_, (own, other))| own != other);
    let described = differing.map(|(field, (own, other))| {
        let first = own.iter().zip(other).position(|(own, other)| own != other);
        let first = first.unwrap_or(own.len().min(other.len()));
        let at = |values: &[String]| values.get(first).cloned().unwrap_or("nothing".to_owned());
        format!("{field} {first}: {:?}, tshark {:?}", at(own), at(other))
    });
    described.collect::<Vec<_>>().join("; ")
}

#[test]
fn messages_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let mut found = String::from("capture\tlocation\tdifferences\twhy\n");
    let (mut location_count, mut equal_count, mut message_count) = (0, 0, 0);
    let (mut value_counts, mut equal_values) = ([0; FIELDS.len()], [0; FIELDS.len()]);
    let mut capture_count = 0;
    for capture in &captures {
        let Some(theirs) = theirs(capture) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let own = ours(capture);
        message_count += own.message_count;
        capture_count += usize::from(!theirs.is_empty());
        let own = own.locations;
        let mut locations: Vec<_> = own.keys().chain(theirs.keys()).collect();
        locations.sort();
        locations.dedup();
        for location in locations {
            let pair = (own.get(location), theirs.get(location));
            location_count += 1;
            for (field, count) in value_counts.iter_mut().enumerate() {
                let others = pair.1.map(|values| values[field].as_slice()).unwrap_or_default();
                let owns = pair.0.map(|values| values[field].as_slice()).unwrap_or_default();
                *count += others.len();
                equal_values[field] += if owns == others { others.len() } else { 0 };
            }
            if pair.0 == pair.1 {
                equal_count += 1;
                continue;
            }
            let differences = differences(pair.0, pair.1);
            let is_listed = |(name, begins, _): &&(&str, &str, &str)| {
                *name == capture.name && differences.starts_with(begins)
            };
            let why = LISTED.iter().find(is_listed).map_or("?", |(_, _, why)| *why);
            writeln!(found, "{}\t{location}\t{differences}\t{why}", capture.name).expect("memory");
        }
    }
    println!(
        "{message_count} messages, {equal_count} of {location_count} frames and directions equal, {capture_count} captures"
    );
    for (position, field) in FIELDS.iter().enumerate() {
        println!("{field}: {} of {} values in equal lists", equal_values[position], value_counts[position]);
    }
    if found != include_str!("dns_listed.tsv") {
        let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/dns_listed.tsv");
        std::fs::write(path, &found).expect("a writable folder");
        panic!("the differences are not those of dns_listed.tsv: compare it with {path}");
    }
    assert!(equal_count > 0, "nothing was compared");
}
