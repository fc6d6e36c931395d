//! Names, types and what answers point to, of every DNS, mDNS and LLMNR message that tshark finds: of UDP frame by frame, of TCP
//! direction by direction. `dns_listed.tsv` has each frame or direction that differs, with the reason of [`LISTED`].

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
use super::support::run_without_timeouts;

/// What stands between values of one field.
const BETWEEN: char = '\u{1}';

/// The name of a capture, how its differences begin, and why.
const LISTED: &[(&str, &str, &str)] = &[
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "tshark alone",
        "bits were flipped in this capture: the flow's first datagram has counts or a question that cannot be, so that it is none of DNS",
    ),
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "dns.resp.name 2",
        "bits were flipped: tshark gives up inside the data of a record, whose length tells where the next one begins",
    ),
    (
        "nDPI/fuzz-2006-06-26-2594.pcap",
        "dns.",
        "bits were flipped: a label of a kind that does not exist, at which reading stops; tshark reads on behind it",
    ),
    ("nDPI/someip_sd_sample.pcap", "tshark alone", "SOME/IP on port 30490, which tshark takes for DNS"),
    (
        "snabb/src/program/ipfix/tests/sanitized4k.pcap",
        "dns.id 10",
        "all payloads are zeros behind the ports, and all times are zero; a header without any count is no DNS",
    ),
    ("tcpdump/rtp-seg-fault-1.pcapng", "tshark alone", "RTP to port 53: a header with 58,224 questions"),
];

flowgauge::protocols! {
    /// The three.
    #[derive(Debug)]
    enum Set;
    /// What they say.
    #[derive(Debug)]
    enum Said;
    parsers {
        Dns: DnsParser = &PROTOCOL,
        Mdns: MdnsParser = &MDNS,
        Llmnr: LlmnrParser = &LLMNR,
    }
    recognized {}
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

/// The values of each field in their order.
type Values = [Vec<String>; FIELDS.len()];

/// Values by where they were said: a time for UDP, ports for TCP.
type Places = BTreeMap<String, Values>;

#[derive(Default)]
struct Collect {
    places: Places,
    message_count: usize,
}

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Set>;

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Said<'_>) {
        let (Said::Dns(message) | Said::Mdns(message) | Said::Llmnr(message)) = message;
        let (Message::Query(message) | Message::Response(message)) = message else { return };
        let key = flow.view.key();
        let position = if key.protocol() == IpProtocol::TCP {
            let port = |side| key.port(side).expect("a port");
            format!("tcp {} {}", port(meta.side), port(meta.side.other()))
        } else {
            let now = meta.timestamp.as_nanos();
            format!("udp {}.{:09}", now / 1_000_000_000, now % 1_000_000_000)
        };
        self.message_count += 1;
        add(self.places.entry(position).or_default(), message);
    }
}

/// The name as tshark shows it.
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
        // tshark cuts the names of SRV records into a service, a protocol and a domain, in other fields.
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

/// What tshark says; `None` if it is not installed.
fn tsharks(capture: &Capture) -> Option<Places> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    // Messages that an ICMP error quotes were said before.
    command.args(["-Y", "(dns or mdns or llmnr) and not icmp and not icmpv6", "-T", "fields"]);
    command.args(["-E", "separator=/t", "-E", "occurrence=a", "-E", &format!("aggregator={BETWEEN}")]);
    command.args(["-e", "frame.time_epoch", "-e", "tcp.srcport", "-e", "tcp.dstport"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let mut places = Places::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let columns: Vec<_> = line.split('\t').collect();
        let (Some([time, source, destination]), Some(columns)) = (columns.get(..3), columns.get(3..)) else {
            panic!("{}: {line}", capture.name);
        };
        let position =
            if source.is_empty() { format!("udp {time}") } else { format!("tcp {source} {destination}") };
        let values = places.entry(position).or_default();
        assert_eq!(columns.len(), FIELDS.len(), "{}: {line}", capture.name);
        for (values, column) in values.iter_mut().zip(columns) {
            values.extend(column.split(BETWEEN).filter(|value| !value.is_empty()).map(str::to_owned));
        }
    }
    Some(places)
}

/// The fields that differ, each with both lists.
fn differences(own: Option<&Values>, other: Option<&Values>) -> String {
    let (Some(own), Some(other)) = (own, other) else {
        return if own.is_none() { "tshark alone".to_owned() } else { "flowgauge alone".to_owned() };
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
fn messages_are_those_that_tshark_finds() {
    let Some(captures) = corpus::captures() else { return };
    let mut found = String::from("capture\tplace\tdifferences\twhy\n");
    let (mut place_count, mut equal_count, mut message_count) = (0, 0, 0);
    let (mut value_counts, mut equal_values) = ([0; FIELDS.len()], [0; FIELDS.len()]);
    let mut capture_count = 0;
    for capture in &captures {
        let Some(tsharks) = tsharks(capture) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let own = ours(capture);
        message_count += own.message_count;
        capture_count += usize::from(!tsharks.is_empty());
        let own = own.places;
        let mut places: Vec<_> = own.keys().chain(tsharks.keys()).collect();
        places.sort();
        places.dedup();
        for position in places {
            let pair = (own.get(position), tsharks.get(position));
            place_count += 1;
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
            writeln!(found, "{}\t{position}\t{differences}\t{why}", capture.name).expect("memory");
        }
    }
    println!(
        "{message_count} messages, {equal_count} of {place_count} frames and directions equal, {capture_count} captures"
    );
    for (position, field) in FIELDS.iter().enumerate() {
        println!("{field}: {} of {} values in equal lists", equal_values[position], value_counts[position]);
    }
    if found != include_str!("dns_listed.tsv") {
        let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/dns_listed.tsv");
        std::fs::write(path, &found).expect("a folder to write to");
        panic!("other differences than in dns_listed.tsv: compare it with {path}");
    }
    assert!(equal_count > 0, "nothing was compared");
}
