//! The neighbor table: what each message does, what spoofed ones do not do, caps, rates and expiry, and a naive model.

mod frames;
mod naive;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use etherparse::{LaxPacketHeaders, PacketBuilder};
use flowgauge::base::{Timestamp, VlanIds};
use flowgauge::tap::{
    NeighborConfig, NeighborError, NeighborEvent, NeighborFrame, NeighborTable, Resolution, ip_to_ethernet,
};
use frames::{Speech, packet_v6};
use naive::OWN;
use proptest::prelude::*;

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];
const EVIL: [u8; 6] = [2, 0, 0, 0, 0, 0xee];
const HERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1))];
const THERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2))];
const OTHER: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 3))];

fn table(change: impl FnOnce(&mut NeighborConfig)) -> NeighborTable {
    let mut config = NeighborConfig::new(OWN);
    change(&mut config);
    let mut table = NeighborTable::new(config).expect("a valid configuration");
    HERE.into_iter().for_each(|own| table.add_local(own).expect("a host"));
    table
}

fn ms(milliseconds: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000 + milliseconds * 1_000_000)
}

/// An honest reply from `THERE`.
fn reply(family: usize) -> Speech {
    Speech {
        is_reply: true,
        sender: THERE[family],
        target: HERE[family],
        frame_source: PEER,
        frame_destination: OWN,
        named: Some(PEER),
        named_target: OWN,
        is_solicited: true,
        is_override: true,
    }
}

fn question(family: usize) -> Speech {
    Speech { is_reply: false, ..reply(family) }
}

fn request(table: &mut NeighborTable, address: IpAddr, now: Timestamp) -> NeighborFrame {
    match table.resolve(address, now) {
        Resolution::Request(frame) => frame,
        other => panic!("{address}: {other:?}"),
    }
}

#[test]
fn requests_are_those_of_the_rfcs() {
    let mut table = table(|_| {});
    let arp = request(&mut table, THERE[0], ms(0));
    let expected = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 0xaa, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0,
        0xaa, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];
    assert_eq!(arp[..], expected);

    let ndp = request(&mut table, THERE[1], ms(0));
    let group: Ipv6Addr = "ff02::1:ff00:2".parse().expect("an address");
    let IpAddr::V6(here) = HERE[1] else { panic!() };
    let IpAddr::V6(there) = THERE[1] else { panic!() };
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &there.octets(), &[1, 1], &OWN].concat();
    let expected = [&[0x33, 0x33, 0xff, 0, 0, 2][..], &OWN, &[0x86, 0xdd], &packet_v6(here, group, &message)];
    assert_eq!(ndp[..], expected.concat());
    // The second opinion on the checksum.
    let read = LaxPacketHeaders::from_ethernet(&ndp).expect("a frame");
    let Some(etherparse::TransportHeader::Icmpv6(header)) = read.transport else { panic!("no ICMPv6") };
    let sum = header.icmp_type.calc_checksum(here.octets(), group.octets(), read.payload.slice());
    assert_eq!(sum, Ok(header.checksum));
}

#[test]
fn questions_for_a_local_address_are_answered() {
    for family in 0..2 {
        let (mut here, mut there) =
            (table(|_| {}), NeighborTable::new(NeighborConfig::new(PEER)).expect("valid"));
        there.add_local(THERE[family]).expect("a host");
        let NeighborEvent::Request(answer) = here.process(&question(family).frame(), ms(0)) else {
            panic!("no answer")
        };
        assert_eq!((&answer[..6], &answer[6..12]), (&PEER[..], &OWN[..]));
        assert!(here.is_empty(), "a question teaches nothing");
        // The peer, which asked, takes the answer.
        request(&mut there, HERE[family], ms(0));
        let learned = NeighborEvent::Learned { address: HERE[family], hardware_address: OWN };
        assert_eq!(there.process(&answer, ms(1)), learned);
        let other = Speech { target: OTHER[family], ..question(family) };
        assert_eq!(here.process(&other.frame(), ms(0)), NeighborEvent::NotForUs);
        assert_eq!((here.stats().answered_count, here.stats().not_for_us_count), (1, 1));
    }
}

#[test]
fn somebody_who_tries_out_our_address_is_told() {
    let mut table = table(|config| config.is_router = true);
    // RFC 5227: an ARP probe has no sender address.
    let probe = Speech { sender: Ipv4Addr::UNSPECIFIED.into(), ..question(0) };
    assert!(matches!(table.process(&probe.frame(), ms(0)), NeighborEvent::Request(_)));
    // RFC 4861 section 7.2.4: to all nodes, not solicited; router and override set.
    let IpAddr::V6(here) = HERE[1] else { panic!() };
    let message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &here.octets()].concat();
    let group: Ipv6Addr = "ff02::1:ff00:1".parse().expect("an address");
    let packet = packet_v6(Ipv6Addr::UNSPECIFIED, group, &message);
    let frame = [&[0x33, 0x33, 0xff, 0, 0, 1][..], &PEER, &[0x86, 0xdd], &packet].concat();
    let NeighborEvent::Request(answer) = table.process(&frame, ms(0)) else { panic!("no answer") };
    assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    let all_nodes: Ipv6Addr = "ff02::1".parse().expect("an address");
    let message = [&[136, 0, 0, 0, 0xa0, 0, 0, 0][..], &here.octets(), &[2, 1], &OWN].concat();
    assert_eq!(answer[14..], packet_v6(here, all_nodes, &message));
}

#[test]
fn only_the_reply_to_an_outstanding_request_is_believed() {
    for (family, there) in THERE.into_iter().enumerate() {
        let mut table = table(|_| {});
        assert_eq!(table.process(&reply(family).frame(), ms(0)), NeighborEvent::Spoofed, "nobody asked");
        request(&mut table, there, ms(0));
        let learned = NeighborEvent::Learned { address: there, hardware_address: PEER };
        assert_eq!(table.process(&reply(family).frame(), ms(999)), learned);
        assert_eq!(table.lookup(there), Some(PEER));
        let second = Speech { frame_source: EVIL, named: Some(EVIL), ..reply(family) };
        assert_eq!(table.process(&second.frame(), ms(999)), NeighborEvent::Spoofed, "it was answered");
        request(&mut table, OTHER[family], ms(1000));
        let late = Speech { sender: OTHER[family], ..reply(family) };
        assert_eq!(table.process(&late.frame(), ms(2000)), NeighborEvent::Spoofed, "too late");
        assert_eq!(table.iter().collect::<Vec<_>>(), [(there, PEER)]);
        assert_eq!((table.stats().learned_count, table.stats().spoofed_count), (1, 3));
    }
}

#[test]
fn what_is_spoofed_or_unasked_changes_nothing() {
    type Bend = fn(&mut Speech, usize);
    let cases: [(&str, Bend, NeighborEvent); 12] = [
        ("another source than it names", |speech, _| speech.frame_source = EVIL, NeighborEvent::Spoofed),
        ("it names another", |speech, _| speech.named = Some(EVIL), NeighborEvent::Spoofed),
        (
            "it names a group",
            |speech, _| (speech.frame_source, speech.named) = ([0xff; 6], Some([0xff; 6])),
            NeighborEvent::Spoofed,
        ),
        (
            "it names no station",
            |speech, _| (speech.frame_source, speech.named) = ([0; 6], Some([0; 6])),
            NeighborEvent::Spoofed,
        ),
        ("to everybody", |speech, _| speech.frame_destination = [0xff; 6], NeighborEvent::Spoofed),
        ("to another station", |speech, _| speech.frame_destination = EVIL, NeighborEvent::Spoofed),
        ("to another host", |speech, family| speech.target = OTHER[family], NeighborEvent::Spoofed),
        ("of another host", |speech, family| speech.sender = OTHER[family], NeighborEvent::Spoofed),
        (
            "between others",
            |speech, family| (speech.target, speech.frame_destination) = (OTHER[family], EVIL),
            NeighborEvent::NotForUs,
        ),
        ("as ourselves", |speech, family| speech.sender = HERE[family], NeighborEvent::Conflict),
        (
            "a question as ourselves",
            |speech, family| (speech.sender, speech.is_reply) = (HERE[family], false),
            NeighborEvent::Conflict,
        ),
        (
            "our own frame",
            |speech, _| (speech.frame_source, speech.named) = (OWN, Some(OWN)),
            NeighborEvent::NotForUs,
        ),
    ];
    for (family, there) in THERE.into_iter().enumerate() {
        for (what, bend, observed) in &cases {
            let mut speech = reply(family);
            bend(&mut speech, family);
            for is_known in [false, true] {
                let mut table = table(|_| {});
                request(&mut table, there, ms(0));
                if is_known {
                    table.process(&reply(family).frame(), ms(0));
                }
                assert_eq!(table.process(&speech.frame(), ms(1)), *observed, "{what}: {speech:?}");
                assert_eq!(table.lookup(there), is_known.then_some(PEER), "{what}");
                assert_eq!(table.len(), usize::from(is_known), "{what}");
                if !is_known {
                    let learned = table.process(&reply(family).frame(), ms(2));
                    assert!(
                        matches!(learned, NeighborEvent::Learned { .. }),
                        "{what}: the request stays open"
                    );
                }
            }
        }
    }
    let mut table = table(|_| {});
    request(&mut table, THERE[0], ms(0));
    for is_reply in [false, true] {
        let announced = Speech { is_reply, target: THERE[0], frame_destination: [0xff; 6], ..reply(0) };
        assert_eq!(table.process(&announced.frame(), ms(0)), NeighborEvent::Gratuitous);
    }
    let other_target = Speech { named_target: EVIL, ..reply(0) };
    assert_eq!(table.process(&other_target.frame(), ms(0)), NeighborEvent::Spoofed);
    request(&mut table, THERE[1], ms(0));
    let unsolicited = Speech { is_solicited: false, ..reply(1) };
    assert_eq!(table.process(&unsolicited.frame(), ms(0)), NeighborEvent::Gratuitous);
    let silent = Speech { named: None, ..reply(1) };
    assert_eq!(table.process(&silent.frame(), ms(0)), NeighborEvent::Malformed);
    assert!(table.is_empty());
    assert_eq!((table.stats().gratuitous_count, table.stats().learned_count), (3, 0));
}

#[test]
fn an_advertisement_without_override_replaces_nothing() {
    let mut table = table(|config| config.lifetime = Duration::from_secs(4));
    request(&mut table, THERE[1], ms(0));
    let weak = Speech { is_override: false, ..reply(1) };
    assert!(
        matches!(table.process(&weak.frame(), ms(0)), NeighborEvent::Learned { .. }),
        "a first answer needs no override"
    );
    let Resolution::Known { refresh: Some(_), .. } = table.resolve(THERE[1], ms(3500)) else {
        panic!("no refresh")
    };
    let other = Speech { frame_source: EVIL, named: Some(EVIL), ..weak };
    assert_eq!(table.process(&other.frame(), ms(3500)), NeighborEvent::Spoofed);
    let strong = Speech { is_override: true, ..other };
    assert!(matches!(table.process(&strong.frame(), ms(3500)), NeighborEvent::Learned { .. }));
    assert_eq!((table.lookup(THERE[1]), table.stats().changed_count), (Some(EVIL), 1));
}

#[test]
fn requests_are_limited_per_address() {
    let mut table = table(|_| {});
    for step in 0..100 {
        let first_of_second = step % 10 == 0;
        for address in [THERE, OTHER].concat() {
            let way = table.resolve(address, ms(step * 100));
            assert_eq!(matches!(way, Resolution::Request(_)), first_of_second, "{address} {step}");
            assert!(first_of_second || way == Resolution::Waiting);
        }
        // Time that steps back gives no leave.
        assert_eq!(table.resolve(THERE[0], ms(0)), Resolution::Waiting);
    }
    assert_eq!(table.stats().request_count, 40);
}

#[test]
fn neighbors_expire_and_are_refreshed_before() {
    let mut table = table(|_| {});
    request(&mut table, THERE[0], ms(0));
    table.process(&reply(0).frame(), ms(0));
    let is_refreshed = |way: Resolution| match way {
        Resolution::Known { hardware_address: PEER, refresh } => refresh.is_some(),
        other => panic!("{other:?}"),
    };
    assert!(!is_refreshed(table.resolve(THERE[0], ms(44_999))));
    assert!(is_refreshed(table.resolve(THERE[0], ms(45_000))));
    assert!(!is_refreshed(table.resolve(THERE[0], ms(45_999))), "one request a second");
    assert!(is_refreshed(table.resolve(THERE[0], ms(46_000))));
    assert!(matches!(table.process(&reply(0).frame(), ms(46_001)), NeighborEvent::Learned { .. }));
    assert!(!is_refreshed(table.resolve(THERE[0], ms(60_000))), "the reply prolonged it");
    table.advance(ms(106_000));
    assert_eq!((table.lookup(THERE[0]), table.len()), (Some(PEER), 1));
    table.advance(ms(106_001));
    assert_eq!((table.lookup(THERE[0]), table.len(), table.stats().expired_count), (None, 0, 1));
    assert_eq!((table.stats().learned_count, table.stats().changed_count), (2, 0));
    request(&mut table, THERE[0], ms(106_001));
}

#[test]
fn a_scan_of_absent_hosts_pushes_out_nobody() {
    let mut table = table(|config| {
        config.limits.neighbor_count_max = 2;
        config.limits.neighbor_request_count_max = 64;
    });
    request(&mut table, THERE[0], ms(0));
    table.process(&reply(0).frame(), ms(0));
    for host in 0..100_000_u32 {
        request(&mut table, Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(host)).into(), ms(1));
    }
    table.check_invariants();
    assert_eq!(table.lookup(THERE[0]), Some(PEER));
    assert_eq!(table.stats().request_evicted_count, 100_000 - 64);
    // At the cap of neighbors the one that was not used for longest goes.
    for (position, family) in [(OTHER, 0), (OTHER, 1)] {
        request(&mut table, position[family], ms(2));
        table.resolve(THERE[0], ms(2));
        table.process(&Speech { sender: position[family], ..reply(family) }.frame(), ms(2));
    }
    assert_eq!((table.lookup(THERE[0]), table.lookup(OTHER[0])), (Some(PEER), None));
    assert_eq!((table.len(), table.stats().evicted_count), (2, 1));
}

#[test]
fn groups_need_no_question_and_nonsense_gets_none() {
    let mut table = table(|_| {});
    let known = |hardware_address| Resolution::Known { hardware_address, refresh: None };
    for (address, way) in [
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
        assert_eq!(table.resolve(address.parse().expect("an address"), ms(0)), way, "{address}");
    }
    assert!(table.remove_local(HERE[1]) && !table.remove_local(HERE[1]));
    assert_eq!(table.resolve(THERE[1], ms(0)), Resolution::Unreachable, "there is no source to ask from");
    assert_eq!(table.local(), &HERE[..1]);
    assert_eq!(table.stats().request_count, 0);
}

#[test]
fn what_cannot_work_is_refused() {
    for hardware in [[0; 6], [0xff; 6], [1, 0, 0, 0, 0, 1]] {
        let refused = NeighborTable::new(NeighborConfig::new(hardware)).map(drop);
        assert_eq!(refused, Err(NeighborError::HardwareAddress));
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
        let refused = table.add_local(address.parse().expect("an address"));
        assert_eq!(refused, Err(NeighborError::LocalAddress), "{address}");
    }
}

#[test]
fn a_neighbor_that_becomes_local_is_forgotten() {
    let mut table = table(|_| {});
    request(&mut table, THERE[0], ms(0));
    table.process(&reply(0).frame(), ms(0));
    request(&mut table, OTHER[0], ms(0));
    table.add_local(THERE[0]).expect("a host");
    table.add_local(OTHER[0]).expect("a host");
    table.check_invariants();
    assert!(table.is_empty());
    assert_eq!(
        table.process(&Speech { sender: OTHER[0], ..reply(0) }.frame(), ms(0)),
        NeighborEvent::Conflict
    );
}

#[test]
fn vlans_are_kept_apart() {
    let tagged = |frame: &[u8], tags: &[u8]| [&frame[..12], tags, &frame[12..]].concat();
    let mut tables = [table(|_| {}), table(|config| config.vlan_ids = VlanIds::NONE.push(5))];
    for (tags, is_heard) in [
        (&[][..], [true, false]),
        (&[0x81, 0, 0, 0], [true, false]), // a priority tag is no VLAN
        (&[0x81, 0, 0xe0, 5], [false, true]),
        (&[0x81, 0, 0, 6], [false, false]),
        (&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], [false, false]),
    ] {
        for family in 0..2 {
            let frame = tagged(&question(family).frame(), tags);
            for (table, is_heard) in tables.iter_mut().zip(is_heard) {
                let observed = table.process(&frame, ms(0));
                if is_heard {
                    assert!(matches!(observed, NeighborEvent::Request(_)), "{tags:?}: {observed:?}");
                } else {
                    assert_eq!(observed, NeighborEvent::OtherVlan, "{tags:?}");
                }
            }
        }
    }
    let answer = tables[1].process(&tagged(&question(1).frame(), &[0x81, 0, 0, 5]), ms(0));
    let NeighborEvent::Request(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer[12..18], [0x81, 0, 0, 5, 0x86, 0xdd]);
    let nested = tagged(&question(0).frame(), &[0x81, 0, 0, 0].repeat(9));
    assert_eq!(tables[0].process(&nested, ms(0)), NeighborEvent::Other, "deeper than any walk goes");
}

#[test]
fn other_frames_are_the_callers_and_broken_ones_are_counted() {
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
    let arp = question(0).frame();
    let ndp = question(1).frame();
    for len in 14..arp.len() {
        assert_eq!(table.process(&arp[..len], ms(0)), NeighborEvent::Malformed, "{len}");
    }
    for len in 0..ndp.len() {
        assert_eq!(table.process(&ndp[..len], ms(0)), NeighborEvent::Other, "{len}: no IP packet");
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
fn a_packet_goes_out_to_what_was_learned() {
    let mut table = table(|config| config.vlan_ids = VlanIds::NONE.push(9));
    request(&mut table, THERE[0], ms(0));
    let reply = reply(0).frame();
    table.process(&[&reply[..12], &[0x81, 0, 0, 9], &reply[12..]].concat(), ms(1));
    let header = table.header_to(table.lookup(THERE[0]).expect("known"));
    let mut buffer = [0; 64];
    buffer[20..24].copy_from_slice(&[0x45, 0, 0, 20]);
    let frame = ip_to_ethernet(&mut buffer, 20, &header).expect("room");
    assert_eq!(frame[..18], [&PEER[..], &OWN, &[0x81, 0, 0, 9, 8, 0]].concat());
}

#[test]
fn the_model_meets_every_case() {
    let mut seen = [0; 12];
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
        seen.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_naive_model_agrees(
        setup in any::<u8>(),
        operations in proptest::collection::vec(any::<[u8; 8]>(), 0..120),
    ) {
        naive::run(setup, &operations);
    }

    #[test]
    fn any_octets_change_nothing(frames in proptest::collection::vec(
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
            prop_assert!(table.is_empty(), "nobody asked");
            table.check_invariants();
        }
    }
}
