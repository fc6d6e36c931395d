//! Comparison of the application protocol of each flow with nDPI.

use std::collections::BTreeMap;
use std::fs;

use flowgauge::base::{FlowKey, IpProtocol};

use super::{applications, corpus};

/// Names of nDPI's master protocols, and the equivalent names in flowgauge.
const NAMES: &[(&str, &[&str])] = &[
    ("AMQP", &["amqp"]),
    ("BACnet", &["bacnet"]),
    ("BitTorrent", &["bittorrent"]),
    ("COAP", &["coap"]),
    ("DHCP", &["dhcp"]),
    ("DHCPV6", &["dhcpv6"]),
    ("DNP3", &["dnp3"]),
    ("DNS", &["dns"]),
    ("DTLS", &["dtls"]),
    ("Dropbox", &["dropbox"]),
    ("FTP_CONTROL", &["ftp"]),
    ("FTP_DATA", &["ftp_data"]),
    ("HTTP", &["http"]),
    ("HTTP2", &["http2"]),
    // A request to a proxy is HTTP.
    ("HTTP_Proxy", &["http"]),
    ("IEC60870", &["iec104"]),
    ("IMAP", &["imap"]),
    // TLS on port 993; the IMAP dialogue is encrypted.
    ("IMAPS", &["tls"]),
    ("IPSec", &["ipsec"]),
    ("IRC", &["irc"]),
    ("Kerberos", &["kerberos"]),
    ("LDAP", &["ldap"]),
    ("LLMNR", &["llmnr"]),
    ("MDNS", &["mdns"]),
    ("MQTT", &["mqtt"]),
    ("Modbus", &["modbus"]),
    ("MySQL", &["mysql"]),
    ("NTP", &["ntp"]),
    ("NetBIOS", &["nbns", "nbdgm", "smb"]),
    ("OpenVPN", &["openvpn"]),
    // POP3 with STLS.
    ("POPS", &["pop3"]),
    ("POP3", &["pop3"]),
    ("PostgreSQL", &["postgresql"]),
    ("QUIC", &["quic"]),
    ("RDP", &["rdp"]),
    ("RTCP", &["rtcp"]),
    ("RTP", &["rtp"]),
    ("RTSP", &["rtsp"]),
    ("Radius", &["radius"]),
    ("Redis", &["redis"]),
    ("SIP", &["sip"]),
    ("SMBv1", &["smb"]),
    ("SMBv23", &["smb"]),
    ("SMTP", &["smtp"]),
    ("SNMP", &["snmp"]),
    ("SOMEIP", &["someip"]),
    ("SSDP", &["ssdp"]),
    ("SSH", &["ssh"]),
    ("STUN", &["stun"]),
    ("Spotify", &["spotify"]),
    ("TFTP", &["tftp"]),
    ("TLS", &["tls"]),
    ("Teredo", &["teredo"]),
    ("WhatsApp", &["whatsapp"]),
    ("WireGuard", &["wireguard"]),
];

/// The protocols for which the test requires a minimum agreement.
const CORE: &[&str] = &[
    "bittorrent",
    "dhcp",
    "dhcpv6",
    "dns",
    "dtls",
    "ftp",
    "http",
    "http2",
    "imap",
    "ipsec",
    "kerberos",
    "ldap",
    "llmnr",
    "mdns",
    "modbus",
    "mqtt",
    "mysql",
    "nbns",
    "nbdgm",
    "ntp",
    "openvpn",
    "pop3",
    "postgresql",
    "quic",
    "radius",
    "rdp",
    "redis",
    "rtcp",
    "rtp",
    "sip",
    "smb",
    "smtp",
    "snmp",
    "socks",
    "ssdp",
    "ssh",
    "stun",
    "tftp",
    "tls",
    "wireguard",
];

/// Classes of differences: flowgauge's name with its evidence, nDPI's name with its confidence, the number of flows,
/// and an assessment.
const CLASSES: &[(&str, &str, usize, &str)] = &[
    (
        "-",
        "DNS (DPI)",
        11,
        "flows of one datagram in a fuzzed capture, with inconsistent counts: nDPI accepts any datagram on port 53",
    ),
    (
        "-",
        "DNS (Match by port)",
        3,
        "the same; flowgauge names no protocol by port if the content contradicts it",
    ),
    ("-", "NetBIOS (DPI)", 1, "a corrupted name in a fuzzed capture: its length is not 32"),
    ("-", "NetBIOS (Match by port)", 1, "the same, and corrupted counts"),
    (
        "-",
        "SIP (Match by port)",
        3,
        "corrupted methods and URIs in a fuzzed capture: the content contradicts SIP, so the port does not name the flows",
    ),
    (
        "coap content",
        "Dropbox (DPI)",
        4,
        "CoAP on a port of Dropbox, which nDPI uses for the name: the requests are CoAP",
    ),
    (
        "dns content",
        "Unknown (Unknown)",
        5,
        "complete DNS messages to ports that a fuzzer changed; nDPI requires port 53",
    ),
    ("ftp_data content", "Unknown (Unknown)", 1, "a file on a port that the control connection announced"),
    (
        "rtcp content",
        "KakaoTalk_Voice (DPI)",
        2,
        "sender and receiver reports of SRTCP for both RTP flows: nDPI names the program",
    ),
    (
        "rtcp content",
        "Unknown (Unknown)",
        1,
        "one compound packet with a sender report and a description, which tshark confirms",
    ),
    (
        "xmpp port",
        "AmazonAWS (Match by IP)",
        1,
        "four packets from the middle of a stream: flowgauge uses the port, nDPI an address; neither is certain",
    ),
];

/// Flows of nDPI that flowgauge does not have.
const MISSING: &[(&str, usize, &str)] = &[
    ("Teredo", 5, "flowgauge counts the packets inside the tunnel, in their flows"),
    (
        "IPSec",
        1,
        "flowgauge treats AH as an extension header: the flow is that of the following transport header",
    ),
    ("Unknown", 2, "corrupted headers in a fuzzed capture, which flowgauge counts as malformed"),
];

/// nDPI's names for flows by IP protocol, which flowgauge's keys contain.
const BY_IP_PROTOCOL: &[&str] = &["ICMP", "ICMPV6", "SCTP", "IGMP", "GRE", "EGP", "OSPF"];

/// A flow in nDPI's results.
pub(crate) struct Theirs {
    pub(crate) key: FlowKey,
    pub(crate) master: String,
    full: String,
    confidence: String,
}

fn parse(text: &str) -> Vec<Theirs> {
    text.lines().filter_map(parse_flow).collect()
}

/// Parses `1 UDP a:p <-> b:p [..][proto: 91.119/TLS.Facebook]..[Confidence: DPI]`. The arrow is `->` if only one side
/// sent packets.
pub(crate) fn parse_flow(line: &str) -> Option<Theirs> {
    let named = field(line, "[proto: ")?;
    let mut words = line.split_whitespace();
    words.next()?.parse::<u32>().ok()?;
    let protocol = match words.next()? {
        "TCP" => 6,
        "UDP" => 17,
        "ICMP" => 1,
        "ICMPV6" => 58,
        "SCTP" => 132,
        "AH" => 51,
        "ESP" => 50,
        "IGMP" => 2,
        "GRE" => 47,
        number => number.parse().ok()?,
    };
    let from = end(words.next()?)?;
    words.next().filter(|arrow| matches!(*arrow, "<->" | "->"))?;
    let to = end(words.next()?)?;
    let (key, _) = corpus::key(protocol, (&from.0, from.1), (&to.0, to.1));
    let (_, full) = named.rsplit_once('/')?;
    let master = full.split('.').next()?.to_owned();
    let confidence = field(line, "[Confidence: ")?.to_owned();
    Some(Theirs { key, master, full: full.to_owned(), confidence })
}

pub(crate) fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split_once(']').map(|(value, _)| value)
}

fn end(text: &str) -> Option<(String, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    Some((address.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
}

/// The result of the comparison.
#[derive(Default)]
struct Compared {
    flow_count: usize,
    same_count: usize,
    core_count: usize,
    core_same_count: usize,
    /// Flows with a core protocol according to flowgauge but not to nDPI.
    core_only_count: usize,
    unknown_count: usize,
    by_ip_protocol_count: usize,
    missing: BTreeMap<String, Vec<String>>,
    /// Flows with different names, by flowgauge's and nDPI's names.
    differing: BTreeMap<(String, String), Vec<String>>,
}

impl Compared {
    fn add(&mut self, capture: &str, theirs: &Theirs, ours: &[applications::Named]) {
        let position = format!("{capture} {}", theirs.key);
        let mut of_key = ours.iter().filter(|named| {
            let is_complete = matches!(theirs.key.protocol(), IpProtocol::TCP | IpProtocol::UDP);
            named.key.protocol() == theirs.key.protocol()
                && [flowgauge::base::Side::A, flowgauge::base::Side::B].into_iter().all(|side| {
                    named.key.address(side) == theirs.key.address(side)
                        && (!is_complete || named.key.port(side) == theirs.key.port(side))
                })
        });
        if BY_IP_PROTOCOL.contains(&theirs.master.as_str()) {
            self.by_ip_protocol_count += 1;
            return;
        }
        let Some(first) = of_key.clone().next() else {
            self.missing.entry(theirs.master.clone()).or_default().push(position);
            return;
        };
        let ours = of_key.find_map(|named| named.application);
        let name = ours.map_or("-", |(name, _)| name);
        let accepted =
            NAMES.iter().find(|(master, _)| *master == theirs.master).map_or(&[][..], |(_, names)| names);
        if theirs.master == "Unknown" && ours.is_none() {
            self.unknown_count += 1;
            return;
        }
        let is_same = accepted.contains(&name);
        let is_core = accepted.iter().any(|name| CORE.contains(name));
        self.flow_count += 1;
        self.same_count += usize::from(is_same);
        self.core_count += usize::from(is_core);
        self.core_same_count += usize::from(is_core && is_same);
        self.core_only_count += usize::from(!is_core && CORE.contains(&name));
        if !is_same {
            let name = ours.map_or("-".to_owned(), |(name, evidence)| format!("{name} {evidence}"));
            let label = format!("{} ({})", theirs.master, theirs.confidence);
            let payload = first.payload_octet_count;
            let stopped =
                first.stopped.map_or(String::new(), |(name, why)| format!(" {name} stopped: {why}"));
            self.differing
                .entry((name, label))
                .or_default()
                .push(format!("{position} {} payload {payload}{stopped}", theirs.full));
        }
    }
}

#[test]
fn applications_match_ndpi() {
    let (Some(captures), Some(root)) = (corpus::captures(), corpus::root()) else { return };
    let mut compared = Compared::default();
    for capture in &captures {
        let Some(name) = capture.name.strip_prefix("nDPI/") else { continue };
        let path = root.join(format!("oracles/ntop+nDPI/tests/cfgs/default/result/{name}.out"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let ours = applications::of(&capture.path());
        for theirs in parse(&text) {
            compared.add(name, &theirs, &ours);
        }
    }
    let why = |ours: &str, theirs: &str| CLASSES.iter().find(|class| (class.0, class.1) == (ours, theirs));
    for ((ours, theirs), occurrences) in &compared.differing {
        println!(
            "{ours} | {theirs} | {} | {}",
            occurrences.len(),
            why(ours, theirs).map_or("?", |class| class.3)
        );
        println!("    {}", occurrences.join("\n    "));
    }
    for (master, occurrences) in &compared.missing {
        println!("no flow: {master}: {}", occurrences.join(", "));
    }
    let Compared { flow_count, same_count, core_count, core_same_count, core_only_count, .. } = compared;
    println!("{same_count} of {flow_count} flows have the same name");
    println!(
        "{core_same_count} of {core_count} flows with a core protocol of nDPI; {core_only_count} more only in flowgauge"
    );
    println!(
        "{} flows without a name in both, {} named by IP protocol",
        compared.unknown_count, compared.by_ip_protocol_count
    );
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole as f64;
    assert!(percent(core_same_count, core_count) >= 95.0, "{core_same_count} of {core_count}");

    let differing: Vec<_> = compared
        .differing
        .iter()
        .map(|((ours, theirs), occurrences)| (&**ours, &**theirs, occurrences.len()))
        .collect();
    let classes: Vec<_> = CLASSES.iter().map(|(ours, theirs, count, _)| (*ours, *theirs, *count)).collect();
    assert_eq!(differing, classes);
    for (master, count, why) in MISSING {
        assert_eq!(compared.missing.get(*master).map(Vec::len), Some(*count), "{master}: {why}");
    }
    assert_eq!(compared.missing.len(), MISSING.len());
}
