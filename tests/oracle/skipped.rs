//! Frames of the corpus that belong to no flow, by reason: none is of a link or tunnel that is read.

use flowgauge::decode::extractor::SkipStats;

use super::corpus;

/// Protocols other than IP, and truncated or damaged frames, with their counts. Numbers without a name are from damaged
/// frames, except 0x8102, which is from a loop test. 0x8035 is from Cisco HDLC.
const REASONS: &[(&str, u64)] = &[
    ("ARP", 2628),
    ("EAPOL (0x888e)", 720),
    ("STP", 162),
    ("LLC null SAP", 77),
    ("PVST+", 42),
    ("malformed", 33),
    ("nested too deep", 15),
    ("PPP LCP (0xc021)", 14),
    ("EtherType 0xaaaa", 11),
    ("Ethernet loopback (0x9000)", 10),
    ("PPPoE discovery (0x8863)", 10),
    ("PPP CCP (0x80fd)", 6),
    ("PPP IPCP (0x8021)", 6),
    ("truncated", 4),
    ("EtherType 0x2573", 3),
    ("CDP", 2),
    ("EtherType 0x0c0d", 2),
    ("EtherType 0x2800", 2),
    ("EtherType 0x7300", 2),
    ("RARP or SLARP (0x8035)", 2),
    ("DTP", 1),
    ("EtherType 0x0808", 1),
    ("EtherType 0x0843", 1),
    ("EtherType 0x0858", 1),
    ("EtherType 0x0867", 1),
    ("EtherType 0x086d", 1),
    ("EtherType 0x0877", 1),
    ("EtherType 0x0880", 1),
    ("EtherType 0x0a06", 1),
    ("EtherType 0x0c00", 1),
    ("EtherType 0x4800", 1),
    ("EtherType 0x4900", 1),
    ("EtherType 0x5200", 1),
    ("EtherType 0x6d00", 1),
    ("EtherType 0x8102", 1),
    ("EtherType 0xa980", 1),
    ("EtherType 0xbb00", 1),
    ("PPP IPV6CP (0x8057)", 1),
    ("PPP protocol 0x00ff", 1),
];

/// Frames that are cut, malformed, or nested too deep, by capture: each is what its capture was made to show.
const DAMAGED: &[(&str, [u64; 3])] = &[
    ("libpcap/filter/ipv6_ext_headers.pcap", [0, 0, 1]),
    ("nDPI/fuzz-2006-06-26-2594.pcap", [2, 7, 0]),
    ("suricata-verify/decode-too-many-layers/input.pcap", [0, 0, 1]),
    ("tcpdump/LINKTYPE_IPV6_invalid.pcap", [0, 1, 0]),
    ("tcpdump/ipv4_invalid_total_length_2.pcap", [0, 1, 0]),
    ("tcpdump/l2tp-avp-overflow.pcap", [2, 0, 0]),
    ("zeek/trunc/mpls-6in6-broken.pcap", [0, 24, 13]),
];

#[test]
fn frames_without_a_flow_are_of_the_reasons_listed() {
    let Some(captures) = corpus::captures() else { return };
    let mut skipped = SkipStats::default();
    let mut damaged = Vec::new();
    for capture in &captures {
        let own = corpus::flows_of(&capture.path()).stats.skipped;
        let counts = [own.truncated_count, own.malformed_count, own.too_deep_count];
        if counts != [0; 3] {
            damaged.push((capture.name.as_str(), counts));
        }
        skipped.merge(&own);
    }
    damaged.sort_unstable();
    assert_eq!(damaged, DAMAGED);
    let found = skipped.reasons();
    for (reason, count) in &found {
        println!("{count} {reason}");
    }
    let found: Vec<_> = found.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(found, REASONS);
}
