//! Checksums of generated packets: correct, truncated, corrupted, and left to the network adapter.

use etherparse::PacketBuilder;
use flowgauge::base::{Frame, Limits, LinkType, Timestamp};
use flowgauge::decode::link::{
    Checksum, Checksums, Decapsulated, Decapsulation, TunnelPorts, checksums, decapsulate,
};
use flowgauge::pipeline::{ChecksumHandling, Pipeline};

fn frame(data: &[u8]) -> Frame<'_> {
    Frame {
        timestamp: Timestamp::ZERO,
        link_type: LinkType::RAW,
        data,
        wire_len: data.len() as u32,
        interface: 0,
    }
}

fn verify(data: &[u8]) -> Checksums {
    match decapsulate(&frame(data), Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT) {
        Decapsulated::Packet(found) => checksums(data, &found),
        other => panic!("{other:?}"),
    }
}

/// Returns TCP and UDP packets over IPv4 and IPv6 with odd and even payload lengths, and the offset of their checksum.
fn packets() -> Vec<(Vec<u8>, usize)> {
    let mut all = Vec::new();
    for payload in [&b"odd"[..], b"even", b""] {
        let mut tcp4 = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder.tcp(1, 2, 3, 4).write(&mut tcp4, payload).unwrap();
        let mut udp4 = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder.udp(1, 2).write(&mut udp4, payload).unwrap();
        let mut tcp6 = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(1, 2, 3, 4).write(&mut tcp6, payload).unwrap();
        let mut udp6 = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2).write(&mut udp6, payload).unwrap();
        all.extend([(tcp4, 20 + 16), (udp4, 20 + 6), (tcp6, 40 + 16), (udp6, 40 + 6)]);
    }
    all
}

#[test]
fn every_flipped_bit_of_the_transport_layer_is_detected() {
    for (packet, field) in packets() {
        let is_ipv6 = packet[0] >> 4 == 6;
        let right = if is_ipv6 { Checksum::None } else { Checksum::Right };
        assert_eq!((verify(&packet).header, verify(&packet).transport), (right, Checksum::Right));
        let header_len = if is_ipv6 { 40 } else { 20 };
        for bit in header_len * 8..packet.len() * 8 {
            let mut corrupt = packet.clone();
            corrupt[bit / 8] ^= 1 << (bit % 8);
            // The UDP length is checked as a length.
            let is_udp_len =
                field - header_len == 6 && (bit / 8 == header_len + 4 || bit / 8 == header_len + 5);
            let transport = verify(&corrupt).transport;
            if is_udp_len {
                assert_ne!(transport, Checksum::Right);
            } else {
                assert_eq!(transport, Checksum::Wrong, "bit {bit}");
            }
        }
    }
}

#[test]
fn checksum_offload_is_not_reported_as_corruption() {
    for (mut packet, field) in packets() {
        let is_ipv6 = packet[0] >> 4 == 6;
        packet[field..field + 2].fill(0);
        let expected = if field == 20 + 6 { Checksum::Absent } else { Checksum::Zero };
        assert_eq!(verify(&packet).transport, expected);
        // The sum of addresses, protocol and length, not complemented.
        let header_len = if is_ipv6 { 40 } else { 20 };
        let addresses = if is_ipv6 { &packet[8..40] } else { &packet[12..20] };
        let mut sum: u32 = addresses.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        sum += if field - header_len == 16 { 6 } else { 17 };
        sum += (packet.len() - header_len) as u32;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[field..field + 2].copy_from_slice(&(sum as u16).to_be_bytes());
        assert_eq!(verify(&packet).transport, Checksum::Partial);
        if !is_ipv6 {
            packet[10..12].fill(0);
            assert_eq!(verify(&packet).header, Checksum::Zero);
            packet[10] = 1;
            assert_eq!(verify(&packet).header, Checksum::Wrong);
        }
    }
}

/// RFC 8200 section 8.1: the checksum covers the address of the final destination.
#[test]
fn a_routing_header_has_the_destination_of_the_checksum() {
    let (mut packet, field) = packets().swap_remove(2);
    let last = packet[24..40].to_vec();
    packet[24..40].fill(9);
    packet[6] = 43;
    packet[5] += 24;
    // Type 0, one segment left.
    let routing = [&[6, 2, 0, 1, 0, 0, 0, 0], &last[..]].concat();
    packet.splice(40..40, routing);
    assert_eq!(verify(&packet).transport, Checksum::Right);
    packet[40 + 8] ^= 1;
    assert_eq!(verify(&packet).transport, Checksum::Wrong);
    // No segments left: the destination in the header.
    packet[40 + 3] = 0;
    packet[24..40].copy_from_slice(&last);
    assert_eq!((verify(&packet).transport, field), (Checksum::Right, 56));
}

/// The pseudo-header has the last address of a source route until the route is complete.
#[test]
fn a_source_route_has_the_destination_of_the_checksum() {
    for (kind, pointer, is_complete) in [(131, 4, false), (137, 4, false), (131, 8, true)] {
        let (mut packet, _) = packets().swap_remove(0);
        if !is_complete {
            packet[16..20].copy_from_slice(&[192, 0, 2, 9]);
        }
        packet[0] = 0x47;
        packet[3] += 8;
        packet.splice(20..20, [1, kind, 7, pointer, 10, 0, 0, if is_complete { 77 } else { 2 }]);
        assert_eq!(verify(&packet).transport, Checksum::Right, "option {kind}, pointer {pointer}");
    }
}

/// RFC 6275 section 6.3: the pseudo-header has the sender's home address.
#[test]
fn a_home_address_is_the_source_of_the_checksum() {
    let (mut packet, _) = packets().swap_remove(2);
    let home = packet[8..24].to_vec();
    packet[8..24].fill(9);
    packet[6] = 60;
    packet[5] += 24;
    packet.splice(40..40, [&[6, 2, 1, 2, 0, 0, 201, 16], &home[..]].concat());
    assert_eq!(verify(&packet).transport, Checksum::Right);
    packet[50] ^= 1;
    assert_eq!(verify(&packet).transport, Checksum::Wrong);
}

/// Segmentation offload leaves no length, so that padding cannot be distinguished from payload.
#[test]
fn without_a_length_no_checksum_is_reported_as_wrong() {
    let (mut packet, _) = packets().swap_remove(0);
    packet[2..4].fill(0);
    assert_eq!(verify(&packet).transport, Checksum::Right);
    packet.extend([0xaa; 4]);
    assert_eq!(verify(&packet).transport, Checksum::Unknown);
}

#[test]
fn a_pipeline_ignores_counts_or_drops_wrong_checksums() {
    let all = packets();
    let mut frames: Vec<_> = all.iter().map(|(packet, _)| packet.clone()).collect();
    frames.push(all[0].0.clone());
    *frames.last_mut().unwrap().last_mut().unwrap() ^= 1;
    frames.push(all[0].0[..30].to_vec());
    for (handling, tracked, right, wrong) in [
        (ChecksumHandling::Ignore, 14, 0, 0),
        (ChecksumHandling::Count, 14, 6, 1),
        (ChecksumHandling::Drop, 13, 6, 1),
    ] {
        let mut pipeline = Pipeline::builder().checksums(handling).build(()).expect("a valid configuration");
        for data in &frames {
            pipeline.frame(&frame(data));
        }
        let stats = pipeline.stats();
        assert_eq!((stats.tracker.packet_count, stats.checksums.dropped_count), (tracked, 14 - tracked));
        assert_eq!((stats.checksums.tcp.right_count, stats.checksums.tcp.wrong_count), (right, wrong));
        assert_eq!(stats.checksums.tcp.unknown_count, u64::from(handling != ChecksumHandling::Ignore));
    }
}
