//! Filters select the same packets as tcpdump does for the same expressions.
//!
//! The test generates the packets together with their keys, so that it compares only the filter. If tcpdump is not
//! installed, the test prints a note and passes.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flowgauge::base::{FlowKey, IpProtocol, Side};
use flowgauge::filter::{Filter, Subject};

/// Expressions that tcpdump and this crate both support, without names from system files.
const EXPRESSIONS: &[&str] = &[
    "",
    "ip",
    "ip6",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "icmp6",
    "igmp",
    "esp",
    "ah",
    "pim",
    "vrrp",
    "proto 47",
    "proto 6",
    "ip proto 17",
    "ip6 proto 58",
    "ip6 proto 1",
    "ip proto 58",
    "not ip",
    "host 10.0.0.1",
    "src host 10.0.0.1",
    "dst host 10.0.0.1",
    "src or dst host 10.0.0.1",
    "src and dst host 10.0.0.1",
    "src 10.0.0.1",
    "dst 10.0.0.2",
    "ip host 10.0.0.2",
    "ip src host 10.0.0.2",
    "host fe80::1",
    "ip6 host fe80::1",
    "src fe80::1",
    "ip6 dst host 2001:db8::1",
    "net 10.0.0.0/8",
    "net 10",
    "net 10.1",
    "net 192.168.1",
    "src net 10.1.0.0/16",
    "dst net 192.168.0.0 mask 255.255.0.0",
    "net 10.0.0.0 mask 255.0.255.0",
    "src and dst net 10.0.0.0/8",
    "net 0.0.0.0/0",
    "net 10.0.0.0/31",
    "net 10.0.0.1/32",
    "net 172.16.0.0/12",
    "net fe80::/10",
    "src net 2001:db8::/32",
    "ip6 net 2001:db8:0:1::/64",
    "net ::/0",
    "net fe80::1",
    "port 80",
    "src port 80",
    "dst port 80",
    "src and dst port 80",
    "port 0",
    "tcp port 80",
    "udp port 53",
    "sctp port 80",
    "tcp src port 443",
    "udp dst port 53",
    "portrange 53-80",
    "portrange 443-80",
    "tcp portrange 80-443",
    "udp src portrange 0-1023",
    "dst portrange 1024-65535",
    "port 0x50",
    "port (80)",
    "port 80 or 443",
    "tcp port 80 or 443",
    "tcp port (80 or 443)",
    "tcp dst port 80 or 53 or 443",
    "port not 80",
    "port 80 or (443 or 53)",
    "port 80 or not 443",
    "port 80 and not 443",
    "not port 80 and 443",
    "host 10.0.0.1 or 10.0.0.2",
    "host 10.0.0.1 and 10.0.0.2",
    "host 10.0.0.1 and (10.0.0.2 or 10.1.0.1)",
    "src host 10.0.0.1 or fe80::1",
    "net 10.0.0.0/8 and 192.168.0.0/16",
    "host 10.0.0.1 or (port 80) or 10.0.0.2",
    "tcp port 443 and not host 10.0.0.1",
    "tcp or udp and port 53",
    "tcp or (udp and port 53)",
    "tcp and port 80 or udp and port 53",
    "(tcp and port 80) or (udp and port 53)",
    "not tcp or udp",
    "not (tcp or udp)",
    "! tcp && ! udp",
    "not not tcp",
    "not tcp and not udp and not icmp",
    "ip and not net 10.0.0.0/8 || ip6 and not net fe80::/10",
    "src net 10.0.0.0/8 and dst net 192.168.0.0/16 and (tcp dst port 80 or 443)",
    "udp and not (src port 53 or dst port 53)",
    "src host 10.0.0.1 and dst port 80 or src port 80 and dst host 10.0.0.1",
    "tcp and ip6 and portrange 1-1000",
    "ip and ip6",
];

/// Expressions with names that tcpdump resolves in `/etc/services` and `/etc/protocols`.
const NAMED_EXPRESSIONS: &[&str] = &[
    "tcp port http",
    "tcp port http or https",
    "udp port domain",
    "tcp dst port https",
    "tcp portrange 53-http",
    "ip proto \\tcp",
    "proto \\udp",
    "ip6 proto \\udp or \\tcp",
    "ip proto \\icmp or 17",
    "proto gre",
    "ip proto gre or \\esp",
];

/// Terms of random expressions. After the first element of a list, the others may follow without its keywords.
const TERMS: &[&[&str]] = &[
    &["host 10.0.0.1", "10.0.0.2", "fe80::1"],
    &["src host 10.0.0.1", "10.1.0.1", "2001:db8::1"],
    &["dst net 10.0.0.0/8", "192.168.0.0/16", "fe80::/10"],
    &["port 80", "443", "53"],
    &["tcp dst port 80", "443"],
    &["udp src portrange 50-60", "0-1023"],
    &["ip6"],
    &["tcp"],
    &["udp"],
    &["proto 47"],
    &["icmp"],
];

/// A small pseudorandom generator (xorshift), so that every run uses the same packets.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % count
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

struct Packet {
    bytes: Vec<u8>,
    key: FlowKey,
    source: Side,
}

fn packets(count: usize) -> Vec<Packet> {
    let v4 = [
        "10.0.0.1",
        "10.0.0.2",
        "10.1.0.1",
        "10.5.0.9",
        "192.168.1.1",
        "192.168.7.1",
        "172.20.1.1",
        "8.8.8.8",
    ];
    let v6 = ["fe80::1", "fe80::2", "2001:db8::1", "2001:db8:0:1::9", "ff02::1", "::1"];
    let protocols = [6, 6, 6, 17, 17, 132, 1, 2, 47, 50, 51, 58, 89, 103, 112];
    let ports = [80, 80, 443, 53, 53, 22, 0, 1023, 1024, 40_000, 65_535];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut packet = || {
        let pool: &[&str] = if random.below(5) < 3 { &v4 } else { &v6 };
        let mut address = || random.pick(pool).parse::<IpAddr>().unwrap();
        let (source, destination) = (address(), address());
        let protocol = IpProtocol(random.pick(&protocols));
        let (source_port, destination_port) = (random.pick(&ports), random.pick(&ports));
        let has_options = random.below(4) == 0;
        let bytes = frame(protocol, (source, source_port), (destination, destination_port), has_options);
        let port = |port| if protocol.has_ports() { port } else { 0 };
        let (key, source) =
            FlowKey::new(protocol, (source, port(source_port)), (destination, port(destination_port)));
        Packet { bytes, key, source }
    };
    (0..count).map(|_| packet()).collect()
}

/// Returns an Ethernet frame with an IP header and 24 octets that begin with the ports, for every protocol. A filter
/// must not interpret them as ports if the protocol has none.
fn frame(
    protocol: IpProtocol,
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    has_options: bool,
) -> Vec<u8> {
    const PAYLOAD_LEN: u16 = 24;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    match (source.0, destination.0) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let words: u8 = if has_options { 7 } else { 5 };
            frame.extend([8, 0, 0x40 | words, 0]);
            frame.extend((u16::from(words) * 4 + PAYLOAD_LEN).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol.0, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            frame.resize(14 + usize::from(words) * 4, 1);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(PAYLOAD_LEN.to_be_bytes());
            frame.extend([protocol.0, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => unreachable!("both addresses are from one pool"),
    }
    let end = frame.len() + usize::from(PAYLOAD_LEN);
    frame.extend(source.1.to_be_bytes());
    frame.extend(destination.1.to_be_bytes());
    frame.resize(end, 0);
    frame
}

/// Writes a capture in which the seconds of each timestamp are the number of the packet.
fn write_capture(path: &Path, packets: &[Packet]) {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(65_535_u32.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for (number, packet) in packets.iter().enumerate() {
        let len = packet.bytes.len() as u32;
        for word in [number as u32, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&packet.bytes);
    }
    fs::write(path, file).unwrap();
}

fn run_tcpdump(capture: &Path, expression: &str) -> Output {
    Command::new("tcpdump")
        .args(["-n", "-r", "-", "-w", "-", "--"])
        .arg(expression)
        .stdin(Stdio::from(File::open(capture).unwrap()))
        .output()
        .unwrap()
}

/// Returns the numbers of the packets that tcpdump selects.
fn tcpdump(capture: &Path, expression: &str) -> Vec<usize> {
    let output = run_tcpdump(capture, expression);
    let errors = String::from_utf8_lossy(&output.stderr);
    // libpcap detects some contradictions and rejects the expression.
    if errors.contains("expression rejects all packets") {
        return Vec::new();
    }
    assert!(output.status.success(), "tcpdump rejects `{expression}`: {errors}");
    let mut rest = output.stdout.get(24..).unwrap_or_default();
    let word = |at: usize, from: &[u8]| u32::from_le_bytes(from[at..at + 4].try_into().unwrap()) as usize;
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        numbers.push(word(0, rest));
        rest = &rest[16 + word(8, rest)..];
    }
    numbers
}

fn flowgauge(packets: &[Packet], filter: &Filter) -> Vec<usize> {
    let matches = |packet: &Packet| filter.matches(&Subject::new(&packet.key, packet.source));
    packets.iter().enumerate().filter(|(_, packet)| matches(packet)).map(|(number, _)| number).collect()
}

fn random_expression(random: &mut Random, depth: usize) -> String {
    let mut text = String::new();
    let mut alternatives: &[&str] = &[];
    for position in 0..1 + random.below(5) {
        if position > 0 {
            text.push_str(random.pick(&[" and ", " or "]));
        }
        if random.below(4) == 0 {
            text.push_str("not ");
        }
        if alternatives.len() > 1 && random.below(2) == 0 {
            text.push_str(random.pick(&alternatives[1..]));
        } else if depth > 0 && random.below(4) == 0 {
            text.push_str(&format!("({})", random_expression(random, depth - 1)));
        } else {
            alternatives = random.pick(TERMS);
            text.push_str(alternatives[0]);
        }
    }
    text
}

#[test]
fn filters_select_the_packets_that_tcpdump_selects() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("skipped: tcpdump is not installed");
        return;
    }
    let packets = packets(600);
    let capture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("filter.pcap");
    write_capture(&capture, &packets);

    let has_names = ["/etc/services", "/etc/protocols"].iter().all(|path| Path::new(path).exists());
    let named = if has_names { NAMED_EXPRESSIONS } else { &[] };
    let mut random = Random(88_172_645_463_325_252);
    let random: Vec<String> = (0..100).map(|_| random_expression(&mut random, 3)).collect();
    let all = EXPRESSIONS.iter().chain(named).copied().chain(random.iter().map(String::as_str));
    let (mut count, mut selective_count) = (0, 0);
    for expression in all {
        let filter = Filter::parse(expression).unwrap_or_else(|error| panic!("{}", error.render(expression)));
        let wanted = tcpdump(&capture, expression);
        assert_eq!(flowgauge(&packets, &filter), wanted, "`{expression}`, parsed as `{filter}`");
        // tcpdump parses the printed filter in the same way.
        let printed = filter.to_string();
        assert_eq!(tcpdump(&capture, &printed), wanted, "`{printed}`, printed for `{expression}`");
        count += 1;
        selective_count += usize::from(!wanted.is_empty() && wanted.len() < packets.len());
    }
    println!("{count} expressions agree, {selective_count} of them select some packets and reject others");
    assert!(selective_count * 10 >= count * 8, "the packets are too similar to distinguish expressions");
}

/// Expressions that tcpdump rejects are rejected here too, unless `docs/design/filter.md` documents the difference.
#[test]
fn expressions_that_tcpdump_rejects_are_rejected() {
    let expressions = [
        "tcp 80",
        "10.0.0.1",
        "(port 80) or 443",
        "tcp and 80",
        "vlan 100 or 200",
        "tcp host 10.0.0.1",
        "ip port 80",
        "icmp port 80",
        "ip6 host 10.0.0.1",
        "ip host ::1",
        "host 10.0.0.0/8",
        "net 10.0.0.1/8",
        "net fe80::1/10",
        "net 10.0.0.0/33",
        "port 65536",
        "portrange 1-65536",
        "port nosuchservice",
        "src proto 6",
        "ip proto tcp",
        "proto nosuchprotocol",
        "vlan 4096",
        "tcp and",
        "tcp udp",
        "(tcp",
        "tcp)",
        "()",
        "not",
        "src or host 10.0.0.1",
        "port 80 or or 443",
        "TCP",
    ];
    let has_tcpdump = Command::new("tcpdump").arg("--version").output().is_ok();
    if !has_tcpdump {
        println!("partly skipped: tcpdump is not installed");
    }
    let capture = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("filter-empty.pcap");
    write_capture(&capture, &[]);
    for expression in expressions {
        assert!(Filter::parse(expression).is_err(), "{expression}");
        if has_tcpdump {
            let output =
                Command::new("tcpdump").args(["-y", "EN10MB", "-d", "--", expression]).output().unwrap();
            assert!(!output.status.success(), "tcpdump accepts `{expression}`");
        }
    }
}
