//! The application protocol of each flow, beside what nDPI says of it.

use std::collections::BTreeMap;
use std::fs;

use flowgauge::base::{FlowKey, IpProtocol};

use super::{applications, corpus};

/// Names of nDPI's master protocols, and what they are called here: any of these is the same.
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
    ("HTTP", &["http"]),
    ("HTTP2", &["http2"]),
    // A request to a proxy is one of HTTP.
    ("HTTP_Proxy", &["http"]),
    ("IEC60870", &["iec104"]),
    ("IMAP", &["imap"]),
    // TLS on port 993, and nothing of IMAP is seen.
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
    // POP3 that says STLS.
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

/// The protocols that are to be recognized in any case.
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

/// Where both differ: ours with its evidence, nDPI's with its confidence, how many flows, and who is right.
const CLASSES: &[(&str, &str, usize, &str)] = &[
    (
        "-",
        "DNS (DPI)",
        11,
        "one datagram each of a fuzzed capture, whose counts do not fit: nDPI takes what is on port 53",
    ),
    (
        "-",
        "DNS (Match by port)",
        3,
        "the same; a protocol that the octets refute is not named by its port here",
    ),
    (
        "-",
        "FTP_DATA (DPI)",
        1,
        "a listing on a port that the control connection told; nDPI looks for its rights and dates",
    ),
    ("-", "NetBIOS (DPI)", 1, "a damaged name in a fuzzed capture: its length is no longer 32"),
    ("-", "NetBIOS (Match by port)", 1, "the same, and damaged counts"),
    (
        "-",
        "SIP (Match by port)",
        3,
        "damaged methods and URIs of a fuzzed capture: refuted, so that the port does not name them",
    ),
    (
        "coap content",
        "Dropbox (DPI)",
        4,
        "CoAP on a port of Dropbox, by which nDPI goes: the requests are CoAP's",
    ),
    (
        "dns content",
        "Unknown (Unknown)",
        5,
        "whole DNS messages to ports that a fuzzer changed; nDPI wants port 53",
    ),
    (
        "rtcp content",
        "KakaoTalk_Voice (DPI)",
        2,
        "sender and receiver reports of SRTCP beside both RTP flows: nDPI names the program",
    ),
    (
        "rtcp content",
        "Unknown (Unknown)",
        1,
        "one compound packet of a sender report and a description, as tshark reads it too",
    ),
    (
        "xmpp port",
        "AmazonAWS (Match by IP)",
        1,
        "four packets from the middle of a stream: a port here, an address there; neither is sure",
    ),
];

/// Flows that are none here.
const MISSING: &[(&str, usize, &str)] = &[
    ("Teredo", 5, "the packets inside the tunnel count, for their own flows"),
    ("IPSec", 1, "AH is an extension header here: the flow is that of the packet behind it"),
    ("Unknown", 2, "damaged headers of a fuzzed capture: malformed, and counted so"),
];

/// What nDPI calls a flow by its protocol of IP, which is in the key here.
const BY_IP_PROTOCOL: &[&str] = &["ICMP", "ICMPV6", "SCTP", "IGMP", "GRE", "EGP", "OSPF"];

/// A flow of a result.
pub(crate) struct Theirs {
    pub(crate) key: FlowKey,
    pub(crate) master: String,
    full: String,
    confidence: String,
}

fn parse(text: &str) -> Vec<Theirs> {
    text.lines().filter_map(parse_flow).collect()
}

/// `1 UDP a:p <-> b:p [..][proto: 91.119/TLS.Facebook]..[Confidence: DPI]`, or `->` where only one side spoke.
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

/// What both say of all flows.
#[derive(Default)]
struct Compared {
    flow_count: usize,
    same_count: usize,
    core_count: usize,
    core_same_count: usize,
    /// Flows that have one of the core protocols here, and not in nDPI's eyes.
    core_only_count: usize,
    unknown_count: usize,
    by_ip_protocol_count: usize,
    missing: BTreeMap<String, Vec<String>>,
    /// By ours and theirs: how many, and the first.
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
fn applications_are_those_of_ndpi() {
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
    for ((ours, theirs), places) in &compared.differing {
        println!("{ours} | {theirs} | {} | {}", places.len(), why(ours, theirs).map_or("?", |class| class.3));
        println!("    {}", places.join("\n    "));
    }
    for (master, places) in &compared.missing {
        println!("no flow: {master}: {}", places.join(", "));
    }
    let Compared { flow_count, same_count, core_count, core_same_count, core_only_count, .. } = compared;
    println!("{same_count} of {flow_count} flows have the same name");
    println!(
        "{core_same_count} of {core_count} that nDPI names as one of the core protocols; {core_only_count} more here"
    );
    println!(
        "{} that neither names, {} by protocol of IP",
        compared.unknown_count, compared.by_ip_protocol_count
    );
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole as f64;
    assert!(percent(core_same_count, core_count) >= 95.0, "{core_same_count} of {core_count}");

    let differing: Vec<_> = compared
        .differing
        .iter()
        .map(|((ours, theirs), places)| (&**ours, &**theirs, places.len()))
        .collect();
    let classes: Vec<_> = CLASSES.iter().map(|(ours, theirs, count, _)| (*ours, *theirs, *count)).collect();
    assert_eq!(differing, classes);
    for (master, count, why) in MISSING {
        assert_eq!(compared.missing.get(*master).map(Vec::len), Some(*count), "{master}: {why}");
    }
    assert_eq!(compared.missing.len(), MISSING.len());
}
