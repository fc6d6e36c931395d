//! False names: no flow is named by its content as tshark's dissection of the same flow contradicts.
//!
//! tshark contradicts a name if it reads a frame of the flow as an application protocol, and as no other one than that. Its
//! heuristics are those that are on by default; a frame that it only shows as data contradicts nothing.

use std::collections::BTreeMap;
use std::process::Command;

use flowgauge::base::{FlowKey, IpProtocol, Side};

use super::applications;
use super::corpus::{self, Capture};

/// Protocols that tshark calls otherwise. A name here is also one there.
const NAMES: &[(&str, &[&str])] = &[
    ("bacnet", &["bvlc"]),
    ("bittorrent", &["bt-dht", "bt-utp", "bt-tracker"]),
    ("dropbox", &["db-lsp", "db-lsp-disc"]),
    ("iec104", &["iec60870_104"]),
    ("ipfix", &["cflow"]),
    ("ipsec", &["isakmp", "esp", "udpencap"]),
    ("modbus", &["mbtcp"]),
    ("netflow", &["cflow"]),
    ("nfs", &["rpc"]),
    ("pop3", &["pop"]),
    ("postgresql", &["pgsql"]),
    ("quic", &["gquic"]),
    ("rdp", &["rdpudp", "tpkt"]),
    ("redis", &["resp"]),
    ("s7comm", &["tpkt"]),
    ("smb", &["nbss"]),
    ("stun", &["classicstun"]),
    ("sunrpc", &["rpc"]),
    ("wireguard", &["wg"]),
];

/// Layers of tshark that may stand in front of the innermost transport.
const CARRIERS: &[&str] = &[
    "ah",
    "arcnet",
    "chdlc",
    "cisco-mp",
    "data",
    "erspan",
    "eth",
    "ethertype",
    "etsp",
    "fddi",
    "fr",
    "frame",
    "geneve",
    "gpe",
    "gre",
    "gtp",
    "gtpprime",
    "ieee8021ad",
    "ieee8021ah",
    "ip",
    "ipfc",
    "ipip",
    "ipv6",
    "ipv6.dstopts",
    "ipv6.fraghdr",
    "ipv6.fragment",
    "ipv6.hopopts",
    "ipv6.routing",
    "ipv6.shim6",
    "juniper",
    "l2tp",
    "llc",
    "loop",
    "macsec",
    "mip6",
    "mpls",
    "nflog",
    "nsh",
    "null",
    "pcap_pktdata",
    "pktap",
    "ppi",
    "ppp",
    "ppp_hdlc",
    "pppoe",
    "pppoes",
    "prism",
    "pwethcw",
    "pwethheuristic",
    "pwethnocw",
    "pwmcw",
    "radiotap",
    "raw",
    "sctp",
    "sll",
    "sll2",
    "snap",
    "tcp",
    "teredo",
    "tr",
    "udp",
    "udplite",
    "vlan",
    "vntag",
    "vxlan",
    "wlan",
    "wlan_radio",
];

/// Layers of tshark that name no application protocol.
const NEUTRAL: &[&str] = &["data", "mptcp", "proxy", "tcp.segments"];

/// Where tshark says something else: our name, the first layer of tshark's, how many flows, and who is right.
const CLASSES: &[(&str, &str, usize, &str)] = &[
    ("coap", "db-lsp-disc", 4, "requests of CoAP on the port of Dropbox's discovery, by which tshark goes"),
    (
        "mysql",
        "tls",
        1,
        "TLS behind the greeting and the request for it: both are right, the first one is the name",
    ),
    ("pop3", "tls", 1, "TLS behind STLS: both are right, the first one is the name"),
    (
        "someip",
        "dns",
        2,
        "service discovery of SOME/IP, whose header tshark's heuristic takes for one of DNS",
    ),
    (
        "stun",
        "dtls",
        1,
        "DTLS behind STUN on the same ports (RFC 7983): both are right, the first one is the name",
    ),
    (
        "tls",
        "gearman",
        2,
        "a client's port is that of Gearman, by which tshark goes; the handshake is one of TLS",
    ),
    ("tls", "sabp", 1, "a client's port is that of SABP, by which tshark goes; the handshake is one of TLS"),
];

/// What tshark reads in the frames of each flow: the layers behind the innermost transport.
type Dissected = BTreeMap<FlowKey, Vec<String>>;

const FIELDS: [&str; 9] = [
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

/// `None` if tshark is not installed.
fn dissected(capture: &Capture) -> Option<Dissected> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-o", "tcp.reassemble_out_of_order:TRUE"]);
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]);
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = command.output().ok()?;
    let mut flows = Dissected::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let columns: Vec<Vec<&str>> = line.split('\t').map(|column| column.split(',').collect()).collect();
        let [protocols, columns @ ..] = columns.as_slice() else { continue };
        if let Some((key, layers)) = innermost(protocols.first()?, columns) {
            let all = flows.entry(key).or_default();
            if !all.contains(&layers) {
                all.push(layers);
            }
        }
    }
    Some(flows)
}

/// The flow of a frame's innermost transport, and the layers behind it.
fn innermost(protocols: &str, columns: &[Vec<&str>]) -> Option<(FlowKey, String)> {
    let value = |column: usize, position: usize| columns.get(column)?.get(position).copied();
    let (mut ip_count, mut ipv6_count, mut tcp_count, mut udp_count) = (0, 0, 0, 0);
    let (mut addresses, mut found) = (None, None);
    for (position, layer) in protocols.split(':').enumerate() {
        if layer.starts_with("icmp") || !CARRIERS.contains(&layer) {
            break;
        }
        let (column, protocol, count) = match layer {
            "ip" => (0, None, &mut ip_count),
            "ipv6" => (2, None, &mut ipv6_count),
            "tcp" => (4, Some(IpProtocol::TCP), &mut tcp_count),
            "udp" => (6, Some(IpProtocol::UDP), &mut udp_count),
            _ => continue,
        };
        let pair = value(column, *count).zip(value(column + 1, *count));
        *count += 1;
        match protocol {
            None => (addresses, found) = (pair, None),
            Some(protocol) => found = Some((position, protocol, addresses?, pair?)),
        }
    }
    let (position, protocol, (source, target), (from, to)) = found?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    let (key, _) = corpus::key(protocol.0, (source, from), (target, to));
    Some((key, protocols.split(':').skip(position + 1).collect::<Vec<_>>().join(":")))
}

/// The first layer that is another protocol, if none is the one that was named.
fn contradiction<'a>(name: &str, layers: &'a str) -> Option<&'a str> {
    let others = NAMES.iter().find(|(ours, _)| *ours == name).map_or(&[][..], |(_, others)| others);
    let mut layers = layers.split(':').filter(|layer| !layer.is_empty() && !NEUTRAL.contains(layer));
    let is_same = |layer: &&str| *layer == name || others.contains(layer);
    if layers.clone().any(|layer| is_same(&layer)) { None } else { layers.next() }
}

#[test]
fn no_name_by_content_is_contradicted_by_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let (mut named_count, mut same_count, mut other_count) = (0, 0, 0);
    let mut contradicted: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for capture in &captures {
        let Some(dissected) = dissected(capture) else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            println!("skipped: tshark is not installed");
            return;
        };
        for named in applications::of(&capture.path()) {
            let Some((name, "content")) = named.application else { continue };
            if !matches!(named.key.protocol(), IpProtocol::TCP | IpProtocol::UDP) {
                continue;
            }
            let end = |side| (named.key.address(side).to_string(), named.key.port(side).expect("a port"));
            let (a, b) = (end(Side::A), end(Side::B));
            let (key, _) = corpus::key(named.key.protocol().0, (&a.0, a.1), (&b.0, b.1));
            let layers =
                dissected.get(&key).unwrap_or_else(|| panic!("{}: tshark has no {key}", capture.name));
            named_count += 1;
            let mut others: Vec<_> = layers.iter().filter_map(|layers| contradiction(name, layers)).collect();
            others.sort_unstable();
            others.dedup();
            let is_read =
                |layers: &String| layers.split(':').any(|layer| !layer.is_empty() && layer != "data");
            same_count += usize::from(others.is_empty() && layers.iter().any(is_read));
            other_count += usize::from(!others.is_empty());
            for other in others {
                let position = format!("{} {}", capture.name, named.key);
                contradicted.entry((name.to_owned(), other.to_owned())).or_default().push(position);
            }
        }
    }
    for ((ours, other), places) in &contradicted {
        let why =
            CLASSES.iter().find(|class| (class.0, class.1) == (ours, other)).map_or("?", |class| class.3);
        println!("{ours} | {other} | {} | {why}\n    {}", places.len(), places.join("\n    "));
    }
    println!(
        "{named_count} flows named by content: {same_count} that tshark names so, {} that it does not name, \
         {other_count} of which it says something else",
        named_count - same_count - other_count
    );
    let found: Vec<_> =
        contradicted.iter().map(|((ours, other), places)| (&**ours, &**other, places.len())).collect();
    let classes: Vec<_> = CLASSES.iter().map(|(ours, other, count, _)| (*ours, *other, *count)).collect();
    assert_eq!(found, classes);
    assert!(same_count > 5000, "{same_count}");
}
