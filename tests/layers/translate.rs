//! Translation between Ethernet and IP in place: a table per rule, every truncation, false values in each length field,
//! comparison with `etherparse`, and round trips.

use etherparse::{Ethernet2Slice, Ipv4HeaderSlice, Ipv6HeaderSlice, PacketBuilder, SingleVlanSlice};
use flowgauge::base::{EtherType, Layer, ParseErrorKind, VlanIds};
use flowgauge::decode::link::Unsupported;
use flowgauge::tap::{EthernetHeader, NoFrame, NotIp, ethernet_to_ip, ip_to_ethernet};
use proptest::prelude::*;

const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn frame(behind_addresses: &[&[u8]]) -> Vec<u8> {
    [&ADDRESSES[..], &behind_addresses.concat()].concat()
}

fn ipv4(payload_len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.resize(20 + payload_len, 0xaa);
    let total_len = packet.len() as u16;
    packet[2..4].copy_from_slice(&total_len.to_be_bytes());
    packet
}

fn ipv6(payload_len: usize) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
    packet.extend([1; 16]);
    packet.extend([2; 16]);
    packet[4..6].copy_from_slice(&(payload_len as u16).to_be_bytes());
    packet.resize(40 + payload_len, 0xbb);
    packet
}

fn with(mut packet: Vec<u8>, at: usize, octets: &[u8]) -> Vec<u8> {
    packet[at..at + octets.len()].copy_from_slice(octets);
    packet
}

/// Returns a packet of more than 65,535 octets with its length in a hop-by-hop option (RFC 2675), behind padding of one
/// octet and a longer padding.
fn jumbogram(jumbo_len: u32, actual_len: usize) -> Vec<u8> {
    let mut packet = with(ipv6(0), 6, &[0]);
    packet.extend([17, 1, 0, 1, 0, 0, 0xc2, 4]);
    packet.extend(jumbo_len.to_be_bytes());
    packet.resize(40 + actual_len, 0xcc);
    packet
}

#[test]
fn packets_are_found_behind_every_header() {
    const TAGS: [&[u8]; 4] = [&[0x81, 0, 0x20, 5], &[0x88, 0xa8, 0, 6], &[0x91, 0, 0, 7], &[0x81, 0, 0, 0]];
    for tag_count in 0..=8 {
        let tags: Vec<&[u8]> = TAGS.into_iter().cycle().take(tag_count).collect();
        for (ether_type, packet) in [([8, 0], ipv4(30)), ([0x86, 0xdd], ipv6(30)), ([0x86, 0xdd], ipv6(0))] {
            for padding in [0, 1, 46] {
                let data = frame(&[&tags.concat(), &ether_type, &packet, &vec![0; padding]]);
                let found = ethernet_to_ip(&data).expect("an IP packet");
                assert_eq!(found, packet);
                assert_eq!(found.as_ptr(), data[14 + 4 * tag_count..].as_ptr(), "a slice of the frame");
            }
        }
    }
    let options = with(with(ipv4(40), 0, &[0x4f]), 20, &[1; 40]);
    assert_eq!(ethernet_to_ip(&frame(&[&[8, 0], &options])), Ok(&options[..]));
    let jumbo = jumbogram(70_000, 70_000);
    assert_eq!(ethernet_to_ip(&frame(&[&[0x86, 0xdd], &jumbo, &[0; 4]])), Ok(&jumbo[..]));
}

#[test]
fn frames_without_ip_report_their_type() {
    for (behind, what) in [
        (vec![8, 6], Unsupported::EtherType(EtherType::ARP)),
        (vec![0x81, 0, 0, 5, 0x88, 0xcc], Unsupported::EtherType(EtherType::LLDP)),
        (vec![0x88, 0x47], Unsupported::EtherType(EtherType::MPLS)),
        (vec![0, 38, 0x42, 0x42, 3], Unsupported::Ieee8023),
        (vec![0x81, 0, 0, 5, 5, 0xff], Unsupported::Ieee8023),
    ] {
        assert_eq!(ethernet_to_ip(&frame(&[&behind])), Err(NotIp::Unsupported(what)));
    }
}

#[test]
fn every_truncation_reports_what_is_missing() {
    for (behind, ip_offset, need) in [
        (&[&[8, 0][..], &ipv4(8)].concat(), 14, 28),
        (&[&[0x86, 0xdd][..], &ipv6(8)].concat(), 14, 48),
        (&[&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0][..], &ipv4(8)].concat(), 22, 28),
    ] {
        let data = frame(&[behind]);
        let header_len = if need == 28 { 20 } else { 40 };
        for len in 0..data.len() {
            let (layer, offset) = match len {
                0..14 => (Layer::Ethernet, 0),
                _ if len < ip_offset => (Layer::Ethernet, 14 + (len - 14) / 4 * 4),
                _ => (if need == 28 { Layer::Ipv4 } else { Layer::Ipv6 }, ip_offset),
            };
            match ethernet_to_ip(&data[..len]) {
                Err(NotIp::Truncated(error)) => {
                    assert!(len < ip_offset + header_len, "{len}: {error}");
                    assert_eq!((error.layer, error.offset as usize), (layer, offset), "{len}");
                    assert_eq!(error.kind, ParseErrorKind::Truncated);
                    assert_eq!(error.have as usize, len - offset);
                    assert!(error.need > error.have);
                }
                Err(NotIp::Malformed(error)) => {
                    assert!(len >= ip_offset + header_len, "{len}: {error}");
                    assert_eq!(error.kind, ParseErrorKind::BadLength);
                    assert_eq!((error.layer, error.offset as usize), (layer, offset), "{len}");
                }
                other => panic!("{len} octets: {other:?}"),
            }
        }
        assert_eq!(ethernet_to_ip(&data).map(<[u8]>::len), Ok(need));
    }
}

#[test]
fn false_length_fields_are_malformed() {
    use ParseErrorKind::{BadLength, BadVersion, TooDeep};
    let deep = [[0x81, 0, 0, 1].repeat(9), vec![8, 0], ipv4(8)].concat();
    let v4 = |at, octets: &[u8]| [vec![8, 0], with(ipv4(8), at, octets)].concat();
    let v6 = |at, octets: &[u8]| [vec![0x86, 0xdd], with(ipv6(8), at, octets)].concat();
    let jumbo = |packet: Vec<u8>| [vec![0x86, 0xdd], packet].concat();
    let cases: [(&str, Vec<u8>, ParseErrorKind, u32, u32); 19] = [
        ("nine tags", deep, TooDeep, 9, 8),
        ("version 6 as IPv4", v4(0, &[0x65]), BadVersion, 6, 0),
        ("version 4 as IPv6", v6(0, &[0x45]), BadVersion, 4, 0),
        ("version 0", v4(0, &[5]), BadVersion, 0, 0),
        ("header length 0", v4(0, &[0x40]), BadLength, 0, 20),
        ("header length 16", v4(0, &[0x44]), BadLength, 16, 20),
        ("header longer than the packet", v4(0, &[0x48]), BadLength, 32, 28),
        ("header longer than the frame", v4(0, &[0x4f]), BadLength, 60, 28),
        ("total length 0", v4(2, &[0, 0]), BadLength, 20, 0),
        ("total length 19", v4(2, &[0, 19]), BadLength, 20, 19),
        ("total length one too many", v4(2, &[0, 29]), BadLength, 29, 28),
        ("total length 65535", v4(2, &[0xff, 0xff]), BadLength, 65_535, 28),
        ("payload length one too many", v6(4, &[0, 9]), BadLength, 9, 8),
        ("payload length 65535", v6(4, &[0xff, 0xff]), BadLength, 65_535, 8),
        ("length zero, hop-by-hop header without jumbo", jumbo(with(ipv6(0), 6, &[0])), BadLength, 8, 0),
        ("a jumbo length that fits into 16 bits", jumbo(jumbogram(65_535, 65_535)), BadLength, 8, 0),
        ("a jumbo length beyond the frame", jumbo(jumbogram(70_001, 70_000)), BadLength, 70_001, 70_000),
        ("the greatest jumbo length", jumbo(jumbogram(u32::MAX, 70_000)), BadLength, u32::MAX, 70_000),
        ("a jumbo option of wrong length", jumbo(with(jumbogram(70_000, 70_000), 47, &[3])), BadLength, 8, 0),
    ];
    for (what, behind, kind, need, have) in cases {
        match ethernet_to_ip(&frame(&[&behind])) {
            Err(NotIp::Malformed(error)) => {
                assert_eq!((error.kind, error.need, error.have), (kind, need, have), "{what}: {error}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// Returns the range of the packet in the frame according to `etherparse`.
fn packet_range_of_etherparse(data: &[u8]) -> Option<std::ops::Range<usize>> {
    let ethernet = Ethernet2Slice::from_slice_without_fcs(data).ok()?;
    let (mut ether_type, mut rest) = (ethernet.ether_type(), ethernet.payload_slice());
    for _ in 0..8 {
        if matches!(ether_type.0, 0x8100 | 0x88a8 | 0x9100) {
            let tag = SingleVlanSlice::from_slice(rest).ok()?;
            ether_type = tag.ether_type();
            rest = &rest[4..];
        }
    }
    let len = match ether_type.0 {
        0x0800 => {
            let header = Ipv4HeaderSlice::from_slice(rest).ok()?;
            header.payload_len().ok()?;
            usize::from(header.total_len())
        }
        0x86dd => 40 + usize::from(Ipv6HeaderSlice::from_slice(rest).ok()?.payload_length()),
        _ => return None,
    };
    let start = data.len() - rest.len();
    (len <= rest.len()).then_some(start..start + len)
}

fn is_jumbogram(data: &[u8], packet: &std::ops::Range<usize>) -> bool {
    packet.len() == 40 && data[packet.start] >> 4 == 6 && data[packet.start + 6] == 0
}

prop_compose! {
    fn any_frame()(
        vlan_ids in proptest::collection::vec(0_u16..4096, 0..4),
        is_ipv6 in any::<bool>(),
        payload in proptest::collection::vec(any::<u8>(), 0..64),
        padding in 0_usize..48,
        changes in proptest::collection::vec((12_usize..60, any::<u8>()), 0..3),
        truncated in prop_oneof![3 => Just(usize::MAX), 1 => 0_usize..120],
    ) -> Vec<u8> {
        let mut inner = Vec::new();
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]);
        if is_ipv6 {
            builder.ipv6([1; 16], [2; 16], 9).udp(1, 2).write(&mut inner, &payload).expect("a packet");
        } else {
            builder.ipv4([1; 4], [2; 4], 9).udp(1, 2).write(&mut inner, &payload).expect("a packet");
        }
        let tags: Vec<u8> = vlan_ids.iter().flat_map(|id| [0x81, 0, (id >> 8) as u8, *id as u8]).collect();
        let mut data = [&inner[..12], &tags, &inner[12..], &vec![0; padding]].concat();
        for (at, octet) in changes {
            if let Some(position) = data.get_mut(at) {
                *position = octet;
            }
        }
        data.truncate(truncated);
        data
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn etherparse_finds_the_same_packet(data in any_frame()) {
        match (ethernet_to_ip(&data), packet_range_of_etherparse(&data)) {
            (Ok(packet), Some(position)) => prop_assert_eq!(packet, &data[position]),
            (Err(_), None) => {}
            // The only rule that it lacks: a length of zero cannot include a hop-by-hop header.
            (Err(NotIp::Malformed(_)), Some(position)) if is_jumbogram(&data, &position) => {}
            (own, other) => prop_assert!(false, "{own:?}, etherparse {other:?}: {data:02x?}"),
        }
    }

    #[test]
    fn any_octets_give_a_result_and_errors_change_nothing(data in proptest::collection::vec(any::<u8>(), 0..200), offset in 0_usize..220) {
        let _ = ethernet_to_ip(&data);
        let before = data.clone();
        let mut buffer = data;
        let header = EthernetHeader::new([1; 6], [2; 6], VlanIds::NONE.push(3));
        if ip_to_ethernet(&mut buffer, offset, &header).is_err() {
            prop_assert_eq!(buffer, before);
        }
    }

    #[test]
    fn packets_survive_a_round_trip(data in any_frame(), headroom in 0_usize..40, ids in (0_u16..4096, 0_u16..4096)) {
        let Ok(packet) = ethernet_to_ip(&data) else { return Ok(()) };
        let vlan_ids = VlanIds::NONE.push(ids.0).push(ids.1);
        let header = EthernetHeader::new([7; 6], [8; 6], vlan_ids);
        let mut buffer = [&vec![0xee; headroom][..], packet, &[0xdd; 9]].concat();
        let before = buffer.clone();
        match ip_to_ethernet(&mut buffer, headroom, &header) {
            Ok(made) => {
                let len = made.len();
                prop_assert_eq!(len, header.len() + packet.len());
                prop_assert_eq!(&made[..12], &[7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8]);
                prop_assert_eq!(ethernet_to_ip(made), Ok(packet));
                let start = headroom - header.len();
                prop_assert_eq!(&buffer[..start], &before[..start]);
                prop_assert_eq!(&buffer[headroom..], &before[headroom..]);
            }
            Err(NoFrame::Headroom { need, have }) => {
                prop_assert!(need > have && have == headroom && need == header.len());
                prop_assert_eq!(buffer, before);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn etherparse_reads_the_tags_that_are_written() {
    let mut buffer = [vec![0; 22], ipv6(4)].concat();
    let header = EthernetHeader::new([1; 6], [3; 6], VlanIds::NONE.push(100).push(200));
    let made = ip_to_ethernet(&mut buffer, 22, &header).expect("a frame");
    let read = etherparse::LaxSlicedPacket::from_ethernet(made).expect("an Ethernet frame");
    let ids: Vec<u16> = read.vlan_ids().iter().map(|id| id.value()).collect();
    assert_eq!(ids, [100, 200]);
    assert_eq!(made[12..14], [0x88, 0xa8]);
}

#[test]
fn a_frame_requires_headroom_and_an_ip_packet() {
    let header = EthernetHeader::new([1; 6], [3; 6], VlanIds::NONE);
    for offset in 0..20 {
        let mut buffer = [vec![0; offset], ipv4(8)].concat();
        let made = ip_to_ethernet(&mut buffer, offset, &header).map(|made| made.to_vec());
        if offset < 14 {
            assert_eq!(made, Err(NoFrame::Headroom { need: 14, have: offset }));
        } else {
            assert_eq!(made, Ok(frame_between(&ipv4(8))));
        }
    }
    let mut buffer = [vec![0; 14], ipv4(8)].concat();
    let len = buffer.len();
    for offset in [len, len + 1, usize::MAX] {
        match ip_to_ethernet(&mut buffer, offset, &header) {
            Err(NoFrame::NotIp(NotIp::Truncated(error))) => assert_eq!(error.layer, Layer::RawIp),
            other => panic!("{other:?}"),
        }
    }
    for version in [0, 1, 5, 7, 15] {
        buffer[14] = version << 4;
        match ip_to_ethernet(&mut buffer, 14, &header) {
            Err(NoFrame::NotIp(NotIp::Malformed(error))) => {
                assert_eq!(
                    (error.kind, error.need, error.offset),
                    (ParseErrorKind::BadVersion, version.into(), 14)
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

fn frame_between(packet: &[u8]) -> Vec<u8> {
    [&[1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 8, 0][..], packet].concat()
}

#[test]
fn errors_are_small_and_readable() {
    assert!(size_of::<NotIp>() <= 20 && size_of::<NoFrame>() <= 24);
    let errors = [
        (ethernet_to_ip(&[0; 13]), "Ethernet header at offset 0 needs 14 octets, but only 13 were captured"),
        (ethernet_to_ip(&[8; 14]), "the frame contains no IP packet: EtherType 0x0808"),
    ];
    for (error, text) in errors {
        assert_eq!(error.expect_err("no packet").to_string(), text);
    }
    let none = NoFrame::Headroom { need: 14, have: 4 };
    assert_eq!(
        none.to_string(),
        "the Ethernet header needs 14 octets in front of the packet, but only 4 are available"
    );
}
