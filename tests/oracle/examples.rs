//! Comparison of the captures in `examples/data` with their README.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flowgauge::base::{ConnState, EndReason, IpProtocol};
use flowgauge::decode::extractor::Scope;
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Timeouts, TrackerConfig};

use super::corpus::{self, Outcome};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name)
}

fn outcome(name: &str) -> Outcome {
    corpus::flows_of(&path(name))
}

/// Returns the records of a protocol, sorted by the start of the flow.
fn of(protocol: IpProtocol, mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    records.retain(|record| record.protocol() == protocol);
    records.sort_by_key(|record| record.start);
    records
}

fn packets(records: &[FlowRecord]) -> u64 {
    records.iter().map(FlowRecord::packet_count).sum()
}

#[test]
fn packets_and_flows_match_the_readme() {
    #[rustfmt::skip]
    let captures = [
        // packets, octets, (flows, packets) of TCP, (flows, packets) of UDP, packets of ICMP, packets of ICMPv6
        ("web.pcap", 1286, 1_318_794, (18, 1270), (0, 0), 0, 14),
        ("dns.pcap", 168, 55_680, (6, 68), (26, 42), 27, 29),
        ("ssh.pcap", 249, 128_758, (4, 248), (0, 0), 0, 1),
        ("mail.pcap", 361, 66_930, (13, 361), (0, 0), 0, 0),
        ("lossy.pcap", 568, 444_505, (1, 561), (0, 0), 0, 7),
        ("any.pcap", 61, 47_281, (4, 51), (3, 6), 4, 0),
        ("raw-tun.pcap", 90, 47_960, (3, 72), (3, 5), 7, 6),
    ];
    for (name, frame_count, octet_count, tcp, udp, icmp, icmpv6) in captures {
        let outcome = outcome(name);
        assert_eq!(
            (outcome.stats.frame_count, outcome.stats.octet_count),
            (frame_count, octet_count),
            "{name}"
        );
        let of = |protocol| of(protocol, outcome.records.clone());
        for (protocol, (flows, packet_count)) in [(IpProtocol::TCP, tcp), (IpProtocol::UDP, udp)] {
            let records = of(protocol);
            assert_eq!((records.len(), packets(&records)), (flows, packet_count), "{name} {protocol}");
        }
        for (protocol, packet_count) in [(IpProtocol::ICMP, icmp), (IpProtocol::ICMPV6, icmpv6)] {
            assert_eq!(packets(&of(protocol)), packet_count, "{name} {protocol}");
        }
        let skipped = outcome.stats.skipped.total();
        assert_eq!(frame_count, outcome.stats.tracker.packet_count + skipped, "{name}");
        assert_eq!(
            outcome.stats.skipped.reasons().len(),
            usize::from(skipped > 0),
            "{name}: only ARP is skipped"
        );
    }
}

#[test]
fn connections_to_the_web_server_have_the_expected_states() {
    let web = of(IpProtocol::TCP, outcome("web.pcap").records);
    let states: Vec<_> = web.iter().map(|record| record.conn_state).collect();
    // 13: the client aborts after the server's FIN. 15: the client is killed. 16 and 17: the port is closed. 18: no
    // answer.
    for (position, state) in states.iter().enumerate() {
        let expected = match position + 1 {
            13 | 15 => ConnState::Rsto,
            16 | 17 => ConnState::Rej,
            18 => ConnState::S0,
            _ => ConnState::Sf,
        };
        assert_eq!(*state, expected, "connection {}", position + 1);
    }
    let unanswered = &web[17];
    assert_eq!((unanswered.forward.counters.packet_count, unanswered.reverse.counters.packet_count), (4, 0));
    assert_eq!((unanswered.forward.tcp.retransmitted_count, unanswered.handshake_rtt), (3, None));
    assert_eq!(unanswered.history.to_string(), "S");
    let upload = &web[5];
    assert!(upload.forward.counters.payload_octet_count > 60_000);
    assert!(upload.reverse.counters.payload_octet_count < 1_000);
    assert_eq!(web.iter().filter(|record| record.key.is_ipv6()).count(), 9);
    assert!(web.iter().all(|record| matches!(record.destination_port(), Some(80 | 443 | 8080))));
    // Values of `tshark -T fields -e tcp.analysis.initial_rtt`, for which a refusal counts as an answer.
    let rtts_ns =
        [30_746, 30_526, 44_426, 10_275, 8_223, 43_786, 42_905, 68_823, 37_847, 44_667, 40_370, 44_207];
    for (record, rtt_ns) in web.iter().zip(rtts_ns) {
        assert_eq!(record.handshake_rtt.map(|rtt| rtt.as_nanos()), Some(rtt_ns));
    }
}

#[test]
fn unanswered_datagrams_have_icmp_errors() {
    let dns = of(IpProtocol::UDP, outcome("dns.pcap").records);
    let (answered, others): (Vec<_>, Vec<_>) =
        dns.iter().partition(|record| record.conn_state == ConnState::Sf);
    assert_eq!((answered.len(), others.len()), (16, 10));
    assert!(
        answered.iter().all(|record| record.destination_port() == Some(53) && record.icmp_error_count == 0)
    );
    assert!(others.iter().all(|record| record.conn_state == ConnState::S0 && record.icmp_error_count == 1));
}

#[test]
fn packet_loss_and_reordering_show_in_the_counters() {
    let lossy = of(IpProtocol::TCP, outcome("lossy.pcap").records);
    let server = &lossy[0].reverse;
    // 27 segments were reordered, 7 were retransmitted (one of them unnecessarily), and 2 were duplicated by the
    // network. The capture at the receiver does not contain the lost originals, so some retransmissions are out of
    // order.
    let stale_count = server.tcp.out_of_order_count + server.tcp.retransmitted_count;
    assert_eq!((server.counters.packet_count, stale_count), (284, 27 + 7 + 2));
    assert_eq!(server.counters.octet_count, lossy[0].octet_count() - lossy[0].forward.counters.octet_count);
    assert!(server.counters.payload_octet_count > 400_000);
    assert_eq!(lossy[0].conn_state, ConnState::Sf);
}

#[test]
fn aborted_mail_connections_are_distinguished_from_closed_ones() {
    let mail = of(IpProtocol::TCP, outcome("mail.pcap").records);
    let is_aborted = |record: &FlowRecord| matches!(record.conn_state, ConnState::Rsto | ConnState::Rstr);
    let aborted: Vec<_> =
        (1..).zip(&mail).filter(|(_, record)| is_aborted(record)).map(|(number, _)| number).collect();
    assert_eq!(aborted, [2, 4, 8, 9, 12, 13]);
    assert!(mail.iter().all(|record| is_aborted(record) || record.conn_state == ConnState::Sf));
    // In these connections, the server sends first.
    assert!(
        mail.iter()
            .filter(|record| record.destination_port() == Some(25))
            .all(|record| record.history.to_string().starts_with("ShAd"))
    );
}

#[test]
fn vlan_ids_and_interfaces_distinguish_networks() {
    let with = |vlan_ids, scope| {
        let mut config = TrackerConfig::default();
        config.timeouts = Timeouts::all(None);
        config.key_policy.vlan_ids = vlan_ids;
        config.key_policy.scope = scope;
        of(IpProtocol::TCP, corpus::flows_with(&path("vlan.pcapng"), config).records)
    };
    let key_count =
        |records: &[FlowRecord]| records.iter().map(|record| record.key).collect::<BTreeSet<_>>().len();
    let plain = with(false, Scope::Fixed(0));
    // Two hosts use the same address and port, one after the other: the second SYN starts a new flow.
    assert_eq!((key_count(&plain), plain.len(), packets(&plain)), (2, 4, 260));
    let per_interface = with(false, Scope::Interface);
    assert_eq!((key_count(&per_interface), per_interface.len()), (4, 8));
    // The provider's tag is one of the VLAN ids, so these also distinguish the interfaces.
    for scope in [Scope::Fixed(0), Scope::Interface] {
        let records = with(true, scope);
        assert_eq!((key_count(&records), records.len(), packets(&records)), (8, 8, 260));
        for record in &records {
            let ids: Vec<_> = record.forward.vlan_ids.iter().collect();
            let expected: [&[u16]; 2] = [&[10], &[20]];
            let inner = ids.strip_prefix(&[100]).unwrap_or(&ids);
            assert!(expected.contains(&inner), "{ids:?}");
            assert_eq!(
                (record.interface == 1, record.forward.vlan_ids),
                (ids.len() == 2, record.reverse.vlan_ids)
            );
            assert_eq!(record.conn_state, ConnState::Sf);
            // Each network has its own flows, so no segment counts as retransmitted.
            assert_eq!(record.forward.tcp.retransmitted_count + record.reverse.tcp.retransmitted_count, 0);
        }
    }
}

#[test]
fn default_timeouts_give_the_same_flows() {
    for name in ["web.pcap", "ssh.pcap", "mail.pcap", "lossy.pcap", "any.pcap", "raw-tun.pcap"] {
        let records = corpus::flows_with(&path(name), TrackerConfig::default()).records;
        let keys: BTreeSet<_> = records.iter().map(|record| record.key).collect();
        assert_eq!(keys.len(), records.len(), "{name}: no flow must be split");
        assert_eq!(records.len(), outcome(name).records.len(), "{name}");
        assert!(records.iter().all(|record| record.flow_end_reason != EndReason::LackOfResources));
    }
}
