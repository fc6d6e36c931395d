//! The neighbor table: effects of each message, rejection of spoofed messages, limits, request rates, expiry, and a
//! comparison with a naive model.

mod frames;
mod naive;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use etherparse::{LaxPacketHeaders, PacketBuilder};
use flowgauge::base::{Timestamp, VlanIds};
use flowgauge::tap::{
    NeighborConfig, NeighborError, NeighborEvent, NeighborFrame, NeighborTable, Resolution, ip_to_ethernet,
};
use frames::{NeighborMessage, packet_v6};
use naive::OWN;
use proptest::prelude::*;

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];
const ATTACKER: [u8; 6] = [2, 0, 0, 0, 0, 0xee];
const LOCAL: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1))];
const REMOTE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2))];
const OTHER: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3))];

fn table(change: impl FnOnce(&mut NeighborConfig)) -> NeighborTable {
    let mut config = NeighborConfig::new(OWN);
    change(&mut config);
    let mut table = NeighborTable::new(config).expect("a valid configuration");
    LOCAL.into_iter().for_each(|own| table.add_local(own).expect("a host"));
    table
}

fn ms(milliseconds: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000 + milliseconds * 1_000_000)
}

/// A valid reply from `REMOTE`.
fn reply(family: usize) -> NeighborMessage {
    NeighborMessage {
        is_reply: true,
        sender: REMOTE[family],
        target: LOCAL[family],
        frame_source: PEER,
        frame_destination: OWN,
        link_address: Some(PEER),
        target_link_address: OWN,
        is_solicited: true,
        is_override: true,
    }
}

fn peer_request(family: usize) -> NeighborMessage {
    NeighborMessage { is_reply: false, ..reply(family) }
}

fn request(table: &mut NeighborTable, address: IpAddr, now: Timestamp) -> NeighborFrame {
    match table.resolve(address, now) {
        Resolution::Request(frame) => frame,
        other => panic!("{address}: {other:?}"),
    }
}

#[test]
fn requests_have_the_format_that_the_rfcs_specify() {
    let mut table = table(|_| {});
    let arp = request(&mut table, REMOTE[0], ms(0));
    let expected = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0xaa, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0,
        0xaa, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];
    assert_eq!(arp[..], expected);

    let ndp = request(&mut table, REMOTE[1], ms(0));
    let group: Ipv6Addr = "ff02::1:ff00:2".parse().expect("an address");
    let IpAddr::V6(local) = LOCAL[1] else { panic!() };
    let IpAddr::V6(remote) = REMOTE[1] else { panic!() };
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &remote.octets(), &[1, 1], &OWN].concat();
    let expected =
        [&[0x33, 0x33, 0xff, 0, 0, 2][..], &OWN, &[0x86, 0xdd], &packet_v6(local, group, &message)];
    assert_eq!(ndp[..], expected.concat());
    // etherparse must compute the same checksum.
    let parsed = LaxPacketHeaders::from_ethernet(&ndp).expect("a frame");
    let Some(etherparse::TransportHeader::Icmpv6(header)) = parsed.transport else { panic!("no ICMPv6") };
    let sum = header.icmp_type.calc_checksum(local.octets(), group.octets(), parsed.payload.slice());
    assert_eq!(sum, Ok(header.checksum));
}

#[test]
fn requests_for_a_local_address_are_answered() {
    for family in 0..2 {
        let (mut local, mut remote) =
            (table(|_| {}), NeighborTable::new(NeighborConfig::new(PEER)).expect("valid"));
        remote.add_local(REMOTE[family]).expect("a host");
        let NeighborEvent::Request(answer) = local.process(&peer_request(family).frame(), ms(0)) else {
            panic!("no answer")
        };
        assert_eq!((&answer[..6], &answer[6..12]), (&PEER[..], &OWN[..]));
        assert!(local.is_empty(), "a request must not add a neighbor");
        // The peer sent the request, so it accepts the answer.
        request(&mut remote, LOCAL[family], ms(0));
        let learned = NeighborEvent::Learned { address: LOCAL[family], hardware_address: OWN };
        assert_eq!(remote.process(&answer, ms(1)), learned);
        let other = NeighborMessage { target: OTHER[family], ..peer_request(family) };
        assert_eq!(local.process(&other.frame(), ms(0)), NeighborEvent::NotForUs);
        assert_eq!((local.stats().answered_count, local.stats().not_for_us_count), (1, 1));
    }
}

#[test]
fn an_address_probe_for_a_local_address_is_answered() {
    let mut table = table(|config| config.is_router = true);
    // RFC 5227: an ARP probe has no sender address.
    let probe = NeighborMessage { sender: Ipv4Addr::UNSPECIFIED.into(), ..peer_request(0) };
    assert!(matches!(table.process(&probe.frame(), ms(0)), NeighborEvent::Request(_)));
    // RFC 4861 section 7.2.4: the answer goes to all nodes, unsolicited, with the router and override flags set.
    let IpAddr::V6(local) = LOCAL[1] else { panic!() };
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &local.octets()].concat();
    let group: Ipv6Addr = "ff02::1:ff00:1".parse().expect("an address");
    let packet = packet_v6(Ipv6Addr::UNSPECIFIED, group, &message);
    let frame = [&[0x33, 0x33, 0xff, 0, 0, 1][..], &PEER, &[0x86, 0xdd], &packet].concat();
    let NeighborEvent::Request(answer) = table.process(&frame, ms(0)) else { panic!("no answer") };
    assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    let all_nodes: Ipv6Addr = "ff02::1".parse().expect("an address");
    let message = [&[136, 0, 0, 0, 0xa0, 0, 0, 0][..], &local.octets(), &[2, 1], &OWN].concat();
    assert_eq!(answer[14..], packet_v6(local, all_nodes, &message));
}

#[test]
fn only_a_reply_to_an_outstanding_request_is_accepted() {
    for (family, remote) in REMOTE.into_iter().enumerate() {
        let mut table = table(|_| {});
        assert_eq!(
            table.process(&reply(family).frame(), ms(0)),
            NeighborEvent::Spoofed,
            "there is no request"
        );
        request(&mut table, remote, ms(0));
        let learned = NeighborEvent::Learned { address: remote, hardware_address: PEER };
        assert_eq!(table.process(&reply(family).frame(), ms(999)), learned);
        assert_eq!(table.lookup(remote), Some(PEER));
        let second =
            NeighborMessage { frame_source: ATTACKER, link_address: Some(ATTACKER), ..reply(family) };
        assert_eq!(
            table.process(&second.frame(), ms(999)),
            NeighborEvent::Spoofed,
            "the request was already answered"
        );
        request(&mut table, OTHER[family], ms(1000));
        let late = NeighborMessage { sender: OTHER[family], ..reply(family) };
        assert_eq!(table.process(&late.frame(), ms(2000)), NeighborEvent::Spoofed, "too late");
        assert_eq!(table.iter().collect::<Vec<_>>(), [(remote, PEER)]);
        assert_eq!((table.stats().learned_count, table.stats().spoofed_count), (1, 3));
    }
}

#[test]
fn spoofed_and_unsolicited_messages_change_nothing() {
    type Change = fn(&mut NeighborMessage, usize);
    let cases: [(&str, Change, NeighborEvent); 12] = [
        (
            "frame source differs from the stated address",
            |message, _| message.frame_source = ATTACKER,
            NeighborEvent::Spoofed,
        ),
        (
            "stated address differs from the frame source",
            |message, _| message.link_address = Some(ATTACKER),
            NeighborEvent::Spoofed,
        ),
        (
            "states a group address",
            |message, _| (message.frame_source, message.link_address) = ([0xff; 6], Some([0xff; 6])),
            NeighborEvent::Spoofed,
        ),
        (
            "states the zero address",
            |message, _| (message.frame_source, message.link_address) = ([0; 6], Some([0; 6])),
            NeighborEvent::Spoofed,
        ),
        (
            "to the broadcast address",
            |message, _| message.frame_destination = [0xff; 6],
            NeighborEvent::Spoofed,
        ),
        ("to another station", |message, _| message.frame_destination = ATTACKER, NeighborEvent::Spoofed),
        ("to another host", |message, family| message.target = OTHER[family], NeighborEvent::Spoofed),
        ("from another host", |message, family| message.sender = OTHER[family], NeighborEvent::Spoofed),
        (
            "between two other hosts",
            |message, family| (message.target, message.frame_destination) = (OTHER[family], ATTACKER),
            NeighborEvent::NotForUs,
        ),
        ("sent from our address", |message, family| message.sender = LOCAL[family], NeighborEvent::Conflict),
        (
            "request sent from our address",
            |message, family| (message.sender, message.is_reply) = (LOCAL[family], false),
            NeighborEvent::Conflict,
        ),
        (
            "our own frame received again",
            |message, _| (message.frame_source, message.link_address) = (OWN, Some(OWN)),
            NeighborEvent::NotForUs,
        ),
    ];
    for (family, remote) in REMOTE.into_iter().enumerate() {
        for (case, change, observed) in &cases {
            let mut message = reply(family);
            change(&mut message, family);
            for is_known in [false, true] {
                let mut table = table(|_| {});
                request(&mut table, remote, ms(0));
                if is_known {
                    table.process(&reply(family).frame(), ms(0));
                }
                assert_eq!(table.process(&message.frame(), ms(1)), *observed, "{case}: {message:?}");
                assert_eq!(table.lookup(remote), is_known.then_some(PEER), "{case}");
                assert_eq!(table.len(), usize::from(is_known), "{case}");
                if !is_known {
                    let learned = table.process(&reply(family).frame(), ms(2));
                    assert!(
                        matches!(learned, NeighborEvent::Learned { .. }),
                        "{case}: the request must stay outstanding"
                    );
                }
            }
        }
    }
    let mut table = table(|_| {});
    request(&mut table, REMOTE[0], ms(0));
    for is_reply in [false, true] {
        let announcement =
            NeighborMessage { is_reply, target: REMOTE[0], frame_destination: [0xff; 6], ..reply(0) };
        assert_eq!(table.process(&announcement.frame(), ms(0)), NeighborEvent::Gratuitous);
    }
    let other_target = NeighborMessage { target_link_address: ATTACKER, ..reply(0) };
    assert_eq!(table.process(&other_target.frame(), ms(0)), NeighborEvent::Spoofed);
    request(&mut table, REMOTE[1], ms(0));
    let unsolicited = NeighborMessage { is_solicited: false, ..reply(1) };
    assert_eq!(table.process(&unsolicited.frame(), ms(0)), NeighborEvent::Gratuitous);
    let without_link_address = NeighborMessage { link_address: None, ..reply(1) };
    assert_eq!(table.process(&without_link_address.frame(), ms(0)), NeighborEvent::Malformed);
    assert!(table.is_empty());
    assert_eq!((table.stats().gratuitous_count, table.stats().learned_count), (3, 0));
}

#[test]
fn an_advertisement_without_override_replaces_nothing() {
    let mut table = table(|config| config.lifetime = Duration::from_secs(4));
    request(&mut table, REMOTE[1], ms(0));
    let without_override = NeighborMessage { is_override: false, ..reply(1) };
    assert!(
        matches!(table.process(&without_override.frame(), ms(0)), NeighborEvent::Learned { .. }),
        "the first answer needs no override flag"
    );
    let Resolution::Known { refresh: Some(_), .. } = table.resolve(REMOTE[1], ms(3500)) else {
        panic!("no refresh request")
    };
    let other = NeighborMessage { frame_source: ATTACKER, link_address: Some(ATTACKER), ..without_override };
    assert_eq!(table.process(&other.frame(), ms(3500)), NeighborEvent::Spoofed);
    let with_override = NeighborMessage { is_override: true, ..other };
    assert!(matches!(table.process(&with_override.frame(), ms(3500)), NeighborEvent::Learned { .. }));
    assert_eq!((table.lookup(REMOTE[1]), table.stats().changed_count), (Some(ATTACKER), 1));
}

#[test]
fn requests_are_limited_per_address() {
    let mut table = table(|_| {});
    for step in 0..100 {
        let first_of_second = step % 10 == 0;
        for address in [REMOTE, OTHER].concat() {
            let resolution = table.resolve(address, ms(step * 100));
            assert_eq!(matches!(resolution, Resolution::Request(_)), first_of_second, "{address} {step}");
            assert!(first_of_second || resolution == Resolution::Waiting);
        }
        // A clock that steps back permits no additional request.
        assert_eq!(table.resolve(REMOTE[0], ms(0)), Resolution::Waiting);
    }
    assert_eq!(table.stats().request_count, 40);
}

#[test]
fn neighbors_are_refreshed_before_they_expire() {
    let mut table = table(|_| {});
    request(&mut table, REMOTE[0], ms(0));
    table.process(&reply(0).frame(), ms(0));
    let is_refreshed = |resolution: Resolution| match resolution {
        Resolution::Known { hardware_address: PEER, refresh } => refresh.is_some(),
        other => panic!("{other:?}"),
    };
    assert!(!is_refreshed(table.resolve(REMOTE[0], ms(44_999))));
    assert!(is_refreshed(table.resolve(REMOTE[0], ms(45_000))));
    assert!(!is_refreshed(table.resolve(REMOTE[0], ms(45_999))), "at most one request per second");
    assert!(is_refreshed(table.resolve(REMOTE[0], ms(46_000))));
    assert!(matches!(table.process(&reply(0).frame(), ms(46_001)), NeighborEvent::Learned { .. }));
    assert!(!is_refreshed(table.resolve(REMOTE[0], ms(60_000))), "the reply must extend the lifetime");
    table.advance(ms(106_000));
    assert_eq!((table.lookup(REMOTE[0]), table.len()), (Some(PEER), 1));
    table.advance(ms(106_001));
    assert_eq!((table.lookup(REMOTE[0]), table.len(), table.stats().expired_count), (None, 0, 1));
    assert_eq!((table.stats().learned_count, table.stats().changed_count), (2, 0));
    request(&mut table, REMOTE[0], ms(106_001));
}

#[test]
fn a_scan_of_absent_hosts_evicts_no_known_neighbor() {
    let mut table = table(|config| {
        config.limits.neighbor_count_max = 2;
        config.limits.neighbor_request_count_max = 64;
    });
    request(&mut table, REMOTE[0], ms(0));
    table.process(&reply(0).frame(), ms(0));
    for host in 0..100_000_u32 {
        request(&mut table, Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(host)).into(), ms(1));
    }
    table.check_invariants();
    assert_eq!(table.lookup(REMOTE[0]), Some(PEER));
    assert_eq!(table.stats().request_evicted_count, 100_000 - 64);
    // At the limit of neighbors, the least recently used one is evicted.
    for family in [0, 1] {
        request(&mut table, OTHER[family], ms(2));
        table.resolve(REMOTE[0], ms(2));
        table.process(&NeighborMessage { sender: OTHER[family], ..reply(family) }.frame(), ms(2));
    }
    assert_eq!((table.lookup(REMOTE[0]), table.lookup(OTHER[0])), (Some(PEER), None));
    assert_eq!((table.len(), table.stats().evicted_count), (2, 1));
}

#[test]
fn no_request_is_sent_for_group_or_invalid_addresses() {
    let mut table = table(|_| {});
    let known = |hardware_address| Resolution::Known { hardware_address, refresh: None };
    for (address, resolution) in [
        ("255.255.255.255", known([0xff; 6])),
        ("224.0.0.251", known([1, 0, 0x5e, 0, 0, 0xfb])),
        ("239.255.1.2", known([1, 0, 0x5e, 0x7f, 1, 2])),
        ("ff02::1:ff12:3456", known([0x33, 0x33, 0xff, 0x12, 0x34, 0x56])),
        ("10.0.0.1", Resolution::Local),
        ("0.0.0.0", Resolution::Unreachable),
        ("127.0.0.1", Resolution::Unreachable),
        ("::", Resolution::Unreachable),
        ("::1", Resolution::Unreachable),
    ] {
        assert_eq!(table.resolve(address.parse().expect("an address"), ms(0)), resolution, "{address}");
    }
    assert!(table.remove_local(LOCAL[1]) && !table.remove_local(LOCAL[1]));
    assert_eq!(
        table.resolve(REMOTE[1], ms(0)),
        Resolution::Unreachable,
        "there is no source address for a request"
    );
    assert_eq!(table.local(), &LOCAL[..1]);
    assert_eq!(table.stats().request_count, 0);
}

#[test]
fn invalid_configurations_and_addresses_are_rejected() {
    for hardware in [[0; 6], [0xff; 6], [1, 0, 0, 0, 0, 1]] {
        let result = NeighborTable::new(NeighborConfig::new(hardware)).map(drop);
        assert_eq!(result, Err(NeighborError::HardwareAddress));
    }
    for set in [
        |config: &mut NeighborConfig| config.limits.neighbor_count_max = 0,
        |config: &mut NeighborConfig| config.limits.neighbor_request_count_max = 0,
    ] {
        let mut config = NeighborConfig::new(OWN);
        set(&mut config);
        assert_eq!(NeighborTable::new(config).map(drop), Err(NeighborError::CapacityTooSmall));
    }
    let mut table = table(|_| {});
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "::1", "ff02::1"] {
        let result = table.add_local(address.parse().expect("an address"));
        assert_eq!(result, Err(NeighborError::LocalAddress), "{address}");
    }
}

#[test]
fn a_neighbor_that_becomes_local_is_forgotten() {
    let mut table = table(|_| {});
    request(&mut table, REMOTE[0], ms(0));
    table.process(&reply(0).frame(), ms(0));
    request(&mut table, OTHER[0], ms(0));
    table.add_local(REMOTE[0]).expect("a host");
    table.add_local(OTHER[0]).expect("a host");
    table.check_invariants();
    assert!(table.is_empty());
    assert_eq!(
        table.process(&NeighborMessage { sender: OTHER[0], ..reply(0) }.frame(), ms(0)),
        NeighborEvent::Conflict
    );
}

#[test]
fn messages_of_other_vlans_are_ignored() {
    let tagged = |frame: &[u8], tags: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
    let mut tables = [table(|_| {}), table(|config| config.vlan_ids = VlanIds::NONE.push(5))];
    for (tags, is_accepted) in [
        (&[][..], [true, false]),
        (&[0x81, 0, 0, 0], [true, false]), // a priority tag names no VLAN
        (&[0x81, 0, 0xe0, 5], [false, true]),
        (&[0x81, 0, 0, 6], [false, false]),
        (&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], [false, false]),
    ] {
        for family in 0..2 {
            let frame = tagged(&peer_request(family).frame(), tags);
            for (table, is_accepted) in tables.iter_mut().zip(is_accepted) {
                let observed = table.process(&frame, ms(0));
                if is_accepted {
                    assert!(matches!(observed, NeighborEvent::Request(_)), "{tags:?}: {observed:?}");
                } else {
                    assert_eq!(observed, NeighborEvent::OtherVlan, "{tags:?}");
                }
            }
        }
    }
    let answer = tables[1].process(&tagged(&peer_request(1).frame(), &[0x81, 0, 0, 5]), ms(0));
    let NeighborEvent::Request(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer[12..18], [0x81, 0, 0, 5, 0x86, 0xdd]);
    let nested = tagged(&peer_request(0).frame(), &[0x81, 0, 0, 0].repeat(9));
    assert_eq!(tables[0].process(&nested, ms(0)), NeighborEvent::Other, "more tags than the decoder follows");
}

#[test]
fn other_frames_are_left_to_the_caller_and_malformed_ones_are_counted() {
    let mut table = table(|_| {});
    let mut udp = Vec::new();
    PacketBuilder::ethernet2(PEER, OWN)
        .ipv6([1; 16], [2; 16], 255)
        .udp(1, 2)
        .write(&mut udp, b"x")
        .expect("a packet");
    for frame in [&udp[..], &[], &udp[..13], &[0; 14]] {
        assert_eq!(table.process(frame, ms(0)), NeighborEvent::Other);
    }
    let arp = peer_request(0).frame();
    let ndp = peer_request(1).frame();
    for len in 14..arp.len() {
        assert_eq!(table.process(&arp[..len], ms(0)), NeighborEvent::Malformed, "{len}");
    }
    for len in 0..ndp.len() {
        assert_eq!(table.process(&ndp[..len], ms(0)), NeighborEvent::Other, "{len}: not an IP packet");
    }
    for (at, octet) in [(15, 6), (17, 1), (18, 8), (19, 6), (21, 3), (28, 224)] {
        let mut arp = arp.clone();
        arp[at] = octet;
        assert_eq!(table.process(&arp, ms(0)), NeighborEvent::Malformed, "octet {at}");
    }
    for (at, octet) in [(21, 64), (55, 1), (56, 9), (62, 0xff), (79, 0)] {
        let mut ndp = ndp.clone();
        ndp[at] = octet;
        assert_eq!(table.process(&ndp, ms(0)), NeighborEvent::Malformed, "octet {at}");
    }
    assert_eq!(table.stats().malformed_count, 28 + 6 + 5);
    assert_eq!(table.stats().answered_count, 0);
}

#[test]
fn a_packet_is_sent_to_the_learned_address() {
    let mut table = table(|config| config.vlan_ids = VlanIds::NONE.push(9));
    request(&mut table, REMOTE[0], ms(0));
    let reply = reply(0).frame();
    table.process(&[&reply[..12], &[0x81, 0, 0, 9], &reply[12..]].concat(), ms(1));
    let header = table.header_to(table.lookup(REMOTE[0]).expect("known"));
    let mut buffer = [0; 64];
    buffer[20..24].copy_from_slice(&[0x45, 0, 0, 20]);
    let frame = ip_to_ethernet(&mut buffer, 20, &header).expect("space for the header");
    assert_eq!(frame[..18], [&PEER[..], &OWN, &[0x81, 0, 0, 9, 8, 0]].concat());
}

#[test]
fn random_operations_increase_every_counter() {
    let mut totals = [0; 12];
    let mut random = 1_u64;
    for setup in 0..=u8::MAX {
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33 ^ random).to_be_bytes()
        };
        let operations: Vec<_> = (0..200).map(|_| next()).collect();
        let stats = naive::run(setup, &operations);
        let counts = [
            stats.answered_count,
            stats.learned_count,
            stats.gratuitous_count,
            stats.spoofed_count,
            stats.conflict_count,
            stats.not_for_us_count,
            stats.malformed_count,
            stats.request_count,
            stats.changed_count,
            stats.evicted_count,
            stats.request_evicted_count,
            stats.expired_count,
        ];
        totals.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(totals.iter().all(|count| *count > 0), "{totals:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_table_agrees_with_the_naive_model(
        setup in any::<u8>(),
        operations in proptest::collection::vec(any::<[u8; 8]>(), 0..120),
    ) {
        naive::run(setup, &operations);
    }

    #[test]
    fn corrupted_replies_without_a_request_change_nothing(frames in proptest::collection::vec(
        (0_usize..2, proptest::collection::vec((0_usize..90, any::<u8>()), 1..4)), 1..40,
    )) {
        let mut table = table(|_| {});
        for (family, changes) in frames {
            let mut frame = reply(family).frame();
            for (at, octet) in changes {
                if let Some(position) = frame.get_mut(at) {
                    *position = octet;
                }
            }
            table.process(&frame, ms(0));
            prop_assert!(table.is_empty(), "there is no request");
            table.check_invariants();
        }
    }
}
