//! False positives: tshark's dissection must not contradict a protocol that is recognized by content.
//!
//! tshark contradicts a name if it dissects a frame of the flow as other application protocols only. Its default
//! heuristics are enabled. A frame that it shows only as data contradicts nothing.

use std::collections::BTreeMap;

use flowgauge::base::{FlowKey, IpProtocol, Side};

use super::corpus::{self, Capture};
use super::{applications, layers};

/// tshark's names for protocols, in addition to flowgauge's name.
const NAMES: &[(&str, &[&str])] = &[
    ("ftp_data", &["ftp-data"]),
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

/// Layers of tshark that may precede the innermost transport.
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

/// Classes of differences: flowgauge's name, tshark's first layer, the number of flows, and an assessment.
const CLASSES: &[(&str, &str, usize, &str)] = &[
    (
        "coap",
        "db-lsp-disc",
        4,
        "CoAP requests on the port of Dropbox's discovery, which tshark uses for the name",
    ),
    (
        "mysql",
        "tls",
        1,
        "TLS after the greeting and the request for TLS: both are right, flowgauge uses the first protocol",
    ),
    ("pop3", "tls", 1, "TLS after STLS: both are right, flowgauge uses the first protocol"),
    ("someip", "dns", 2, "service discovery of SOME/IP, which tshark's heuristic identifies as DNS"),
    (
        "stun",
        "dtls",
        1,
        "DTLS after STUN on the same ports (RFC 7983): both are right, flowgauge uses the first protocol",
    ),
    (
        "tls",
        "gearman",
        2,
        "the client's port is that of Gearman, which tshark uses for the name; the handshake is TLS",
    ),
    (
        "tls",
        "sabp",
        1,
        "the client's port is that of SABP, which tshark uses for the name; the handshake is TLS",
    ),
];

/// tshark's layers above the innermost transport in the frames of each flow.
type Dissected = BTreeMap<FlowKey, Vec<String>>;

/// Returns the layers of all flows, or `None` if tshark is not installed.
fn dissected(capture: &Capture) -> Option<Dissected> {
    let fields = layers::fields(capture)?;
    let mut flows = Dissected::new();
    for line in fields.lines() {
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

/// Returns the flow of a frame's innermost transport, and the layers above it.
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

/// Returns the first layer with another protocol, unless a layer has the recognized one.
fn contradiction<'a>(name: &str, layers: &'a str) -> Option<&'a str> {
    let others = NAMES.iter().find(|(ours, _)| *ours == name).map_or(&[][..], |(_, others)| others);
    let mut layers = layers.split(':').filter(|layer| !layer.is_empty() && !NEUTRAL.contains(layer));
    let is_same = |layer: &&str| *layer == name || others.contains(layer);
    if layers.clone().any(|layer| is_same(&layer)) { None } else { layers.next() }
}

#[test]
fn no_protocol_recognized_by_content_is_contradicted_by_tshark() {
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
                dissected.get(&key).unwrap_or_else(|| panic!("{}: tshark has no flow {key}", capture.name));
            named_count += 1;
            let mut others: Vec<_> = layers.iter().filter_map(|layers| contradiction(name, layers)).collect();
            others.sort_unstable();
            others.dedup();
            let is_dissected =
                |layers: &String| layers.split(':').any(|layer| !layer.is_empty() && layer != "data");
            same_count += usize::from(others.is_empty() && layers.iter().any(is_dissected));
            other_count += usize::from(!others.is_empty());
            for other in others {
                let position = format!("{} {}", capture.name, named.key);
                contradicted.entry((name.to_owned(), other.to_owned())).or_default().push(position);
            }
        }
    }
    for ((ours, other), occurrences) in &contradicted {
        let why =
            CLASSES.iter().find(|class| (class.0, class.1) == (ours, other)).map_or("?", |class| class.3);
        println!("{ours} | {other} | {} | {why}\n    {}", occurrences.len(), occurrences.join("\n    "));
    }
    println!(
        "{named_count} flows recognized by content: {same_count} with the same name in tshark, {} without a name in tshark, \
         {other_count} with another name",
        named_count - same_count - other_count
    );
    let found: Vec<_> = contradicted
        .iter()
        .map(|((ours, other), occurrences)| (&**ours, &**other, occurrences.len()))
        .collect();
    let classes: Vec<_> = CLASSES.iter().map(|(ours, other, count, _)| (*ours, *other, *count)).collect();
    assert_eq!(found, classes);
    assert!(same_count > 5000, "{same_count}");
}
