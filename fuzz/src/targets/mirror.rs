//! Arbitrary octets as the payload of a mirror session: the frame lies in the payload, and a packet in it is the one that
//! the decoder finds behind the same payload in a packet between two hosts.
use flowgauge::base::{Frame, Limits, LinkType, Timestamp};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, PacketMarks};
use flowgauge::source::MirrorEncapsulation;

use super::input::structured;

const IPV4_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;

/// Maximum length of a payload in an IPv4 packet.
const PAYLOAD_LEN_MAX: usize = 0xffff - IPV4_HEADER_LEN - UDP_HEADER_LEN;

/// Returns the destination port for which the decoder expects the encapsulation; zero for GRE, which is directly over IP.
fn port(encapsulation: MirrorEncapsulation) -> Option<u16> {
    match encapsulation {
        MirrorEncapsulation::Vxlan => Some(4789),
        MirrorEncapsulation::VxlanGpe => Some(4790),
        MirrorEncapsulation::Geneve => Some(6081),
        MirrorEncapsulation::Gre => Some(0),
        // The decoder leaves TZSP alone.
        _ => None,
    }
}

/// Returns an IPv4 packet with a payload, which is that of a UDP datagram unless the port is zero.
fn ipv4_packet(port: u16, payload: &[u8]) -> Vec<u8> {
    let is_udp = port != 0;
    let mut packet = vec![0; IPV4_HEADER_LEN];
    packet[0] = 0x45;
    packet[8] = 64;
    packet[9] = if is_udp { 17 } else { 47 };
    packet[12..].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    if is_udp {
        packet.extend(40_000_u16.to_be_bytes());
        packet.extend(port.to_be_bytes());
        packet.extend(((UDP_HEADER_LEN + payload.len()) as u16).to_be_bytes());
        packet.extend([0, 0]);
    }
    packet.extend(payload);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet
}

fn frame(link_type: LinkType, data: &[u8]) -> Frame<'_> {
    Frame { timestamp: Timestamp::ZERO, link_type, data, wire_len: data.len() as u32, interface: 0 }
}

pub fn run(data: &[u8]) {
    let Some((choice, payload)) = structured::<(u8, &[u8])>(data) else { return };
    let payload = &payload[..payload.len().min(PAYLOAD_LEN_MAX)];
    let encapsulation = MirrorEncapsulation::ALL[usize::from(choice) % MirrorEncapsulation::ALL.len()];
    let Some(mirrored) = encapsulation.frame(payload) else { return };
    assert!(!mirrored.data.is_empty());
    let (start, end) = (payload.as_ptr_range(), mirrored.data.as_ptr_range());
    assert!(start.start <= end.start && end.end <= start.end, "the frame lies in the payload");

    let Some(port) = port(encapsulation) else { return };
    if mirrored.link_type == LinkType::PPP {
        // In a capture with this link type, Cisco HDLC is read too (libpcap's documentation of DLT_PPP), but not in GRE.
        return;
    }
    let mut limits = Limits::DEFAULT;
    limits.encapsulation_depth_max = 0;
    let extractor = Extractor::new(KeyPolicy::DEFAULT).with_limits(limits);
    let Ok(inner) = extractor.extract(&frame(mirrored.link_type, mirrored.data)) else { return };
    // The decoder recognizes a tunnel by packets inside that have a length and are not longer than their datagram. With
    // further tunnels in the frame, the packets of each of them would have to be checked.
    if inner.marks.contains(PacketMarks::BAD_IP_LEN) || inner.marks.contains(PacketMarks::TOO_DEEP) {
        return;
    }
    limits.encapsulation_depth_max = 1;
    let extractor = Extractor::new(KeyPolicy::DEFAULT).with_limits(limits);
    let packet = ipv4_packet(port, payload);
    let outer = extractor.extract(&frame(LinkType::RAW, &packet));
    assert_eq!(outer.map(|outer| outer.key), Ok(inner.key));
}
