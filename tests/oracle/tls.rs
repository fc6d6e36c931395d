//! What is said in the handshakes of TLS and DTLS, as tshark reads it, and JA4 as FoxIO, nDPI and Arkime compute it.
//!
//! Of each direction of each five-tuple the lists of server names, JA3 and JA3S must be the same, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::process::Command;

use flowgauge::base::IpProtocol;
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::tls::{self, DtlsParser, Message, TlsParser};
use flowgauge::session::{Fault, MessageMeta, SessionEvent};
use flowgauge::tracker::Flow;
use serde_json::Value;

use super::corpus::{self, Capture};
use super::support::run_without_timeouts;

flowgauge::protocols! {
    /// The parsers at hand.
    #[derive(Debug)]
    enum Set;
    /// What they say.
    #[derive(Debug)]
    enum Said;
    parsers { Tls: TlsParser = &tls::PROTOCOL, Dtls: DtlsParser = &tls::DTLS }
    recognized {}
}

/// Directions that differ, by their ports, and why.
const LISTED: &[(&str, &str, &str)] = &[
    ("ja4/chrome-cloudflare-quic-with-secrets.pcapng", "443>57098", DECRYPTED),
    ("Malcolm-Test-Artifacts/protocols/STUN.pcap", "43044>51462", BEHIND_STUN),
    ("Malcolm-Test-Artifacts/protocols/STUN.pcap", "51462>43044", BEHIND_STUN),
    ("nDPI/KakaoTalk_talk.pcap", "32968>8080", OTHERWISE),
    ("nDPI/KakaoTalk_talk.pcap", "8080>32968", OTHERWISE),
    ("nDPI/mysql.pcapng", "3306>36272", HANDED_OVER),
    ("nDPI/mysql.pcapng", "36272>3306", HANDED_OVER),
    ("nDPI/pop3_stls.pcap", "110>50583", HANDED_OVER),
    ("nDPI/pop3_stls.pcap", "50583>110", HANDED_OVER),
    ("merged/iot-public.pcap", "3671>8443", OTHERWISE),
    ("merged/iot-public.pcap", "8443>3671", OTHERWISE),
    ("merged/iot-public.pcap", "4730>8443", OTHERWISE),
    ("merged/iot-public.pcap", "8443>4730", OTHERWISE),
    ("merged/iot-public.pcap", "3452>8443", OTHERWISE),
    ("merged/iot-public.pcap", "8443>3452", OTHERWISE),
];
const DECRYPTED: &str = "tshark has the keys, and sees the certificates of TLS 1.3";
const BEHIND_STUN: &str = "the handshake comes behind as many datagrams of STUN as probes look at";
const OTHERWISE: &str =
    "tshark takes it for the protocol of a port: HTTP, gearman, SABP, or a pending message of them";
const HANDED_OVER: &str =
    "behind the first octets of another protocol, whose parser hands over; there is none in this set";

/// Who sends to whom: protocol, source, destination.
type Direction = (u8, (IpAddr, u16), (IpAddr, u16));

/// What a direction said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lists {
    server_names: Vec<String>,
    ja3: Vec<String>,
    ja3s: Vec<String>,
    dns_names: Vec<String>,
    serials: Vec<String>,
    alerts: Vec<String>,
    groups: Vec<String>,
}

#[derive(Default)]
struct Collect {
    lists: BTreeMap<Direction, Lists>,
    ja4: BTreeMap<Direction, Vec<String>>,
    faults: Vec<(Direction, Fault)>,
}

fn direction(flow: &Flow<'_, ()>, side: flowgauge::base::Side) -> Direction {
    let key = flow.view.key();
    let end = |side| (key.address(side), key.port(side).expect("a port"));
    (key.protocol().0, end(side), end(side.other()))
}

impl Sink for Collect {
    type State = ();
    type Stage = Sessions<Set>;

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &Said<'_>) {
        let direction = direction(flow, meta.side);
        let lists = self.lists.entry(direction).or_default();
        let (Said::Tls(message) | Said::Dtls(message)) = message;
        match message {
            Message::ClientHello(hello) => {
                lists.server_names.extend(hello.server_name().map(|name| name.to_string()));
                lists.ja3.push(hello.ja3().to_string());
                self.ja4.entry(direction).or_default().push(hello.ja4().to_string());
            }
            Message::ServerHello(hello) => lists.ja3s.push(hello.ja3s().to_string()),
            Message::CertificateChain(chain) => {
                let names = chain.iter().flat_map(|certificate| certificate.dns_names().collect::<Vec<_>>());
                lists.dns_names.extend(names.map(|name| name.to_string()));
                lists.serials.extend(chain.iter().map(|certificate| certificate.serial.to_string()));
            }
            Message::ServerKeyExchange(key) => lists.groups.push(key.group.0.to_string()),
            Message::Alert(alert) => lists.alerts.push(alert.description.0.to_string()),
            _ => {}
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault, .. } = event {
            self.faults.push((direction(flow, flow.view.initiator()), *fault));
        }
    }
}

fn ours(capture: &Capture) -> Collect {
    run_without_timeouts(&capture.path(), Collect::default())
}

/// The columns that are asked of tshark, after the names of the protocols.
const ENDS: [&str; 8] =
    ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"];
const SAID: [&str; 12] = [
    "tls.handshake.extensions_server_name",
    "dtls.handshake.extensions_server_name",
    "tls.handshake.ja3",
    "dtls.handshake.ja3",
    "tls.handshake.ja3s",
    "dtls.handshake.ja3s",
    "x509ce.dNSName",
    "x509af.serialNumber",
    "tls.alert_message.desc",
    "dtls.alert_message.desc",
    "tls.handshake.server_named_curve",
    "dtls.handshake.server_named_curve",
];

/// What tshark says; `None` if it is not installed. QUIC and what is inside of EAP are left out.
fn tsharks(capture: &Capture) -> Option<BTreeMap<Direction, Lists>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args([
        "-Y",
        "(tls.handshake || dtls.handshake || tls.alert_message || dtls.alert_message) && !quic && !eap",
    ]);
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", "-e", "frame.protocols"]);
    for field in ENDS.iter().chain(&SAID) {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let mut all = BTreeMap::<Direction, Lists>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let protocols = columns[0];
        let [ip_source, ip_target, ipv6_source, ipv6_target, tcp_source, tcp_target, udp_source, udp_target] =
            [1, 2, 3, 4, 5, 6, 7, 8].map(|position| columns[position].rsplit('|').next().unwrap_or_default());
        let is_ipv6 = protocols.split(':').rfind(|name| matches!(*name, "ip" | "ipv6")) == Some("ipv6");
        let is_tcp = protocols.split(':').rfind(|name| matches!(*name, "tcp" | "udp")) == Some("tcp");
        let end =
            |address: &str, port: &str| (address.parse().expect("an address"), port.parse().expect("a port"));
        let addresses = if is_ipv6 { [ipv6_source, ipv6_target] } else { [ip_source, ip_target] };
        let ports = if is_tcp { [tcp_source, tcp_target] } else { [udp_source, udp_target] };
        let protocol = if is_tcp { IpProtocol::TCP.0 } else { IpProtocol::UDP.0 };
        let [source, target] = [0, 1].map(|position| end(addresses[position], ports[position]));
        let lists = all.entry((protocol, source, target)).or_default();
        let values = |position: usize| {
            columns[position].split('|').filter(|value| !value.is_empty()).map(str::to_owned)
        };
        lists.server_names.extend(values(9).chain(values(10)));
        lists.ja3.extend(values(11).chain(values(12)));
        lists.ja3s.extend(values(13).chain(values(14)));
        lists.dns_names.extend(values(15));
        lists.serials.extend(values(16).map(|serial| serial.trim_start_matches("0x").replace(':', "")));
        lists.alerts.extend(values(17).chain(values(18)));
        let number = |hex: String| u16::from_str_radix(hex.trim_start_matches("0x"), 16).expect("a number");
        lists.groups.extend(values(19).chain(values(20)).map(|group| number(group).to_string()));
    }
    Some(all)
}

#[test]
fn names_and_fingerprints_are_those_of_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_count, mut value_counts, mut differing) = (0, [0; 7], Vec::new());
    let mut used = BTreeSet::new();
    for capture in &captures {
        let Some(tsharks) = tsharks(capture) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let own = ours(capture);
        for (direction, fault) in &own.faults {
            println!("{}: {direction:?} stopped: {fault}", capture.name);
        }
        let directions: BTreeSet<_> = own.lists.keys().chain(tsharks.keys()).collect();
        for direction in directions {
            let of = |all: &BTreeMap<Direction, Lists>| all.get(direction).cloned().unwrap_or_default();
            let (own, other) = (of(&own.lists), of(&tsharks));
            if own == other {
                let is_something = own != Lists::default();
                equal_count += usize::from(is_something);
                let lists =
                    [own.server_names, own.ja3, own.ja3s, own.dns_names, own.serials, own.alerts, own.groups];
                let lens = lists.map(|list| list.len());
                value_counts.iter_mut().zip(lens).for_each(|(count, len)| *count += len);
                continue;
            }
            let (_, (_, source_port), (_, target_port)) = direction;
            let ports = format!("{source_port}>{target_port}");
            match LISTED.iter().position(|(name, listed, _)| *name == capture.name && *listed == ports) {
                Some(position) => {
                    used.insert(position);
                }
                None => differing.push(format!("{} {ports}\n  {own:?}\n  {other:?}", capture.name)),
            }
        }
    }
    let [names, ja3, ja3s, dns_names, serials, alerts, groups] = value_counts;
    println!(
        "{equal_count} directions equal: {names} server names, {ja3} JA3, {ja3s} JA3S, {dns_names} names of certificates,"
    );
    println!("{serials} serial numbers, {alerts} alerts, {groups} groups of servers' keys");
    println!("{} directions listed", used.len());
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert_eq!(used.len(), LISTED.len(), "entries that nothing needs any more");
    assert!(equal_count > 100, "few directions");
}

/// JA4 of a capture's flows over TCP and UDP by their ports, as others computed it.
fn ja4_of_others(capture: &Capture) -> Vec<(String, (u16, u16), String)> {
    let mut all = Vec::new();
    let ports = |source: &Value, target: &Value| {
        let port = |value: &Value| {
            value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_default() as u16
        };
        (port(source), port(target))
    };
    for path in capture.oracles("ja4").filter(|path| path.extension().is_some_and(|ending| ending == "json"))
    {
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("text")).expect("JSON");
        for stream in json.as_array().into_iter().flatten() {
            let fingerprints = ["JA4", "JA4.1", "JA4.2"].map(|key| stream[key].as_str());
            for fingerprint in fingerprints.into_iter().flatten() {
                all.push((
                    "FoxIO, Python".to_owned(),
                    ports(&stream["srcport"], &stream["dstport"]),
                    fingerprint.to_owned(),
                ));
            }
        }
    }
    for path in capture.oracles("ja4").filter(|path| path.extension().is_some_and(|ending| ending == "snap"))
    {
        let text = std::fs::read_to_string(&path).expect("text");
        let mut ends = [0; 2];
        for line in text.lines() {
            let (key, value) = line.trim_start().split_once(": ").unwrap_or_default();
            match key {
                "src_port" => ends[0] = value.parse().expect("a port"),
                "dst_port" => ends[1] = value.parse().expect("a port"),
                "ja4" => all.push(("FoxIO, Rust".to_owned(), (ends[0], ends[1]), value.to_owned())),
                _ => {}
            }
        }
    }
    for path in capture.oracles("arkime") {
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("text")).expect("JSON");
        for session in json["sessions3"].as_array().into_iter().flatten() {
            let body = &session["body"];
            for fingerprint in body["tls"]["ja4"].as_array().into_iter().flatten() {
                let ports = ports(&body["source"]["port"], &body["destination"]["port"]);
                all.push(("Arkime".to_owned(), ports, fingerprint.as_str().expect("text").to_owned()));
            }
        }
    }
    for path in capture.oracles("ndpi") {
        for line in std::fs::read_to_string(&path).expect("text").lines() {
            let Some((_, fingerprint)) = line.split_once("[JA4: ") else { continue };
            let mut words =
                line.split_whitespace().skip_while(|word| !matches!(*word, "TCP" | "UDP")).skip(1);
            let mut port = || words.next()?.rsplit_once(':')?.1.parse().ok();
            let source = port();
            let mut target = || words.nth(1)?.rsplit_once(':')?.1.parse().ok();
            let (Some(source), Some(target)) = (source, target()) else { panic!("two ends: {line}") };
            let fingerprint = fingerprint.split(']').next().unwrap_or_default().to_owned();
            all.push(("nDPI".to_owned(), (source, target), fingerprint));
        }
    }
    all.retain(|(_, _, fingerprint)| !fingerprint.starts_with('q'));
    all
}

/// nDPI goes by whether the server's name is an address, or knows a name from elsewhere, and takes the first two characters of
/// the protocol. FoxIO goes by whether the extension is there, and takes the first and the last character.
fn differs_as_ndpi_does(own: &str, ndpi: &str) -> bool {
    // Transport and version, whether a server is named, counts, protocol, hashes.
    let parts =
        |text: &str| [0..3, 4..8, 8..10, 10..36].map(|range| text.get(range).unwrap_or_default().to_owned());
    let ([version, counts, protocol, hashes], others) = (parts(own), parts(ndpi));
    let is_same_protocol = protocol == others[2]
        || [["h1", "ht"], ["s1", "sp"]].contains(&[protocol.as_str(), others[2].as_str()]);
    [version, counts, hashes] == [&others[0], &others[1], &others[3]].map(String::clone) && is_same_protocol
}

#[test]
fn ja4_is_what_others_compute() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_counts, mut differing) = (BTreeMap::<String, usize>::new(), Vec::new());
    for capture in &captures {
        let wanted = ja4_of_others(capture);
        if wanted.is_empty() {
            continue;
        }
        let own = ours(capture);
        for (program, ports, fingerprint) in wanted {
            let of_ports = own.ja4.iter().filter(|((_, source, target), _)| (source.1, target.1) == ports);
            let found: Vec<&String> = of_ports.flat_map(|(_, fingerprints)| fingerprints).collect();
            let is_handed_over = LISTED.iter().any(|(name, listed, why)| {
                *name == capture.name && *listed == format!("{}>{}", ports.0, ports.1) && *why == HANDED_OVER
            });
            if found.contains(&&fingerprint) {
                *equal_counts.entry(program).or_default() += 1;
            } else if program == "nDPI" && found.iter().any(|own| differs_as_ndpi_does(own, &fingerprint)) {
                *equal_counts.entry("nDPI, but for its own rules".to_owned()).or_default() += 1;
            } else if is_handed_over {
                *equal_counts.entry("handed over, not compared".to_owned()).or_default() += 1;
            } else {
                let found: Vec<_> =
                    own.ja4.iter().filter(|((_, source, _), _)| source.1 == ports.0).collect();
                differing
                    .push(format!("{} {program} {ports:?}: {fingerprint}, and here {found:?}", capture.name));
            }
        }
    }
    println!("equal: {equal_counts:?}");
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(!equal_counts.is_empty());
}
