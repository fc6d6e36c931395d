//! Comparison of TLS and DTLS handshakes with tshark, and of JA4 with FoxIO, nDPI and Arkime.
//!
//! For each direction of each five-tuple, the lists of server names, JA3, JA3S and other values must be equal.

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
use super::layers;
use super::support::run_without_timeouts;

flowgauge::protocols! {
    /// The parsers of TLS and DTLS.
    #[derive(Debug)]
    enum Set;
    /// Their messages.
    #[derive(Debug)]
    enum SetMessage;
    parsers { Tls: TlsParser = &tls::PROTOCOL, Dtls: DtlsParser = &tls::DTLS }
}

/// Directions that differ, by their ports, and the reasons.
const LISTED: &[(&str, &str, &str)] = &[
    ("ja4/chrome-cloudflare-quic-with-secrets.pcapng", "443>57098", DECRYPTED),
    ("Malcolm-Test-Artifacts/protocols/STUN.pcap", "43044>51462", AFTER_STUN),
    ("Malcolm-Test-Artifacts/protocols/STUN.pcap", "51462>43044", AFTER_STUN),
    ("nDPI/KakaoTalk_talk.pcap", "32968>8080", BY_PORT),
    ("nDPI/KakaoTalk_talk.pcap", "8080>32968", BY_PORT),
    ("nDPI/mysql.pcapng", "3306>36272", STARTTLS),
    ("nDPI/mysql.pcapng", "36272>3306", STARTTLS),
    ("nDPI/pop3_stls.pcap", "110>50583", STARTTLS),
    ("nDPI/pop3_stls.pcap", "50583>110", STARTTLS),
    ("merged/iot-public.pcap", "3671>8443", BY_PORT),
    ("merged/iot-public.pcap", "8443>3671", BY_PORT),
    ("merged/iot-public.pcap", "4730>8443", BY_PORT),
    ("merged/iot-public.pcap", "8443>4730", BY_PORT),
    ("merged/iot-public.pcap", "3452>8443", BY_PORT),
    ("merged/iot-public.pcap", "8443>3452", BY_PORT),
];
const DECRYPTED: &str = "tshark has the keys, so it decrypts the certificates of TLS 1.3";
const AFTER_STUN: &str =
    "the handshake follows more STUN datagrams than probes examine in a set of protocols without STUN";
const BY_PORT: &str =
    "tshark identifies the protocol by a port: HTTP, gearman, SABP, or an incomplete message of them";
const STARTTLS: &str =
    "TLS follows the dialogue of another protocol, which this set of parsers does not include";

/// A direction: IP protocol, source and destination.
type Direction = (u8, (IpAddr, u16), (IpAddr, u16));

/// The values of a direction.
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

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &SetMessage<'_>) {
        let direction = direction(flow, meta.side);
        let lists = self.lists.entry(direction).or_default();
        let (SetMessage::Tls(message) | SetMessage::Dtls(message)) = message;
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

/// The columns of tshark after the names of the protocols.
const ENDPOINTS: [&str; 8] =
    ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"];
const VALUES: [&str; 12] = [
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

/// Returns tshark's values, or `None` if it is not installed. Handshakes in QUIC and EAP are excluded.
fn theirs(capture: &Capture) -> Option<BTreeMap<Direction, Lists>> {
    if !layers::has_any(capture, &["tls", "dtls"]) {
        return Some(BTreeMap::new());
    }
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args([
        "-Y",
        "(tls.handshake || dtls.handshake || tls.alert_message || dtls.alert_message) && !quic && !eap",
    ]);
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|", "-e", "frame.protocols"]);
    for field in ENDPOINTS.iter().chain(&VALUES) {
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
fn names_and_fingerprints_match_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_count, mut value_counts, mut differing) = (0, [0; 7], Vec::new());
    let mut used = BTreeSet::new();
    for capture in &captures {
        let Some(theirs) = theirs(capture) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        let own = ours(capture);
        for (direction, fault) in &own.faults {
            println!("{}: {direction:?} stopped: {fault}", capture.name);
        }
        let directions: BTreeSet<_> = own.lists.keys().chain(theirs.keys()).collect();
        for direction in directions {
            let of = |all: &BTreeMap<Direction, Lists>| all.get(direction).cloned().unwrap_or_default();
            let (own, other) = (of(&own.lists), of(&theirs));
            if own == other {
                let has_values = own != Lists::default();
                equal_count += usize::from(has_values);
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
    assert_eq!(used.len(), LISTED.len(), "some listed entries are no longer needed");
    assert!(equal_count > 100, "too few directions were compared");
}

/// Returns the JA4 that other programs computed for flows over TCP and UDP: the program, ports and fingerprint.
fn ja4_of_other_programs(capture: &Capture) -> Vec<(String, (u16, u16), String)> {
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
            let (Some(source), Some(target)) = (source, target()) else {
                panic!("not two endpoints: {line}")
            };
            let fingerprint = fingerprint.split(']').next().unwrap_or_default().to_owned();
            all.push(("nDPI".to_owned(), (source, target), fingerprint));
        }
    }
    all.retain(|(_, _, fingerprint)| !fingerprint.starts_with('q'));
    all
}

/// Returns whether a fingerprint differs from nDPI's only by nDPI's rules. nDPI checks if the server name is an
/// address, or uses a name from another source, and takes the first two characters of the ALPN protocol. FoxIO checks
/// if the extension is present and takes the first and the last character.
fn differs_as_ndpi_does(own: &str, ndpi: &str) -> bool {
    // Transport and version (the indicator of a server name is left out), counts, ALPN protocol, hashes.
    let parts =
        |text: &str| [0..3, 4..8, 8..10, 10..36].map(|range| text.get(range).unwrap_or_default().to_owned());
    let ([version, counts, protocol, hashes], others) = (parts(own), parts(ndpi));
    let is_same_protocol = protocol == others[2]
        || [["h1", "ht"], ["s1", "sp"]].contains(&[protocol.as_str(), others[2].as_str()]);
    [version, counts, hashes] == [&others[0], &others[1], &others[3]].map(String::clone) && is_same_protocol
}

#[test]
fn ja4_matches_other_programs() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal_counts, mut differing) = (BTreeMap::<String, usize>::new(), Vec::new());
    for capture in &captures {
        let expected = ja4_of_other_programs(capture);
        if expected.is_empty() {
            continue;
        }
        let own = ours(capture);
        for (program, ports, fingerprint) in expected {
            let of_ports = own.ja4.iter().filter(|((_, source, target), _)| (source.1, target.1) == ports);
            let found: Vec<&String> = of_ports.flat_map(|(_, fingerprints)| fingerprints).collect();
            let is_starttls = LISTED.iter().any(|(name, listed, why)| {
                *name == capture.name && *listed == format!("{}>{}", ports.0, ports.1) && *why == STARTTLS
            });
            if found.contains(&&fingerprint) {
                *equal_counts.entry(program).or_default() += 1;
            } else if program == "nDPI" && found.iter().any(|own| differs_as_ndpi_does(own, &fingerprint)) {
                *equal_counts.entry("nDPI, apart from its own rules".to_owned()).or_default() += 1;
            } else if is_starttls {
                *equal_counts.entry("STARTTLS, not compared".to_owned()).or_default() += 1;
            } else {
                let found: Vec<_> =
                    own.ja4.iter().filter(|((_, source, _), _)| source.1 == ports.0).collect();
                differing.push(format!(
                    "{} {program} {ports:?}: {fingerprint}, flowgauge {found:?}",
                    capture.name
                ));
            }
        }
    }
    println!("equal: {equal_counts:?}");
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(!equal_counts.is_empty());
}
