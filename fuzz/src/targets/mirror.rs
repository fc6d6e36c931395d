//! Arbitrary octets as the payloads of mirror sessions: the frame lies in the payload, and a packet in it is the one that
//! the decoder finds behind the same payload in a packet between two hosts. In a sequence of payloads, equal sessions have
//! the same interface, and different ones do while there are few.
use std::collections::HashMap;

use flowgauge::base::{Frame, FrameBatch, Limits, LinkType, Timestamp};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, PacketMarks};
use flowgauge::source::{MirrorEncapsulation, MirrorState, SourceConfig};

use arbitrary::{Arbitrary, Result, Unstructured};

use super::input::{Octets, items, structured};

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

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    choice: u8,
    interface_count_max: u8,
    #[arbitrary(with = payloads)]
    payloads: Vec<Octets<'a>>,
}

fn payloads<'a>(u: &mut Unstructured<'a>) -> Result<Vec<Octets<'a>>> {
    items(u, 200)
}

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let all = MirrorEncapsulation::ALL;
    let encapsulation = all[usize::from(input.choice) % all.len()];
    let mut limits = Limits::DEFAULT;
    limits.interface_count_max = 1 + u32::from(input.interface_count_max % 8);
    let config = SourceConfig::from(limits);
    let mut state = MirrorState::new("fuzz".to_owned(), encapsulation, &config);
    let (mut batch, mut frame_count) = (FrameBatch::new(), 0);
    let mut interfaces = HashMap::new();
    for Octets(payload) in &input.payloads {
        let before = state.interfaces().len();
        state.datagram(payload, Timestamp::ZERO, &mut batch);
        let Some(mirrored) = encapsulation.frame(payload) else { continue };
        let frame = batch.get(frame_count).expect("a frame for each valid payload");
        frame_count += 1;
        assert_eq!((frame.data, frame.link_type), (mirrored.data, mirrored.link_type));
        assert!((frame.interface as usize) < state.interfaces().len());
        let known = interfaces.entry(mirrored.session).or_insert(frame.interface);
        assert_eq!(*known, frame.interface, "a session has one interface");
        let is_new = state.interfaces().len() > before;
        assert!(!is_new || frame.interface as usize == before);
        one(encapsulation, payload);
    }
    assert_eq!(batch.len(), frame_count);
    assert_eq!(state.stats().invalid_datagram_count as usize, input.payloads.len() - frame_count);
    let limit = limits.interface_count_max as usize + 1;
    assert!(state.interfaces().len() <= limit, "{} interfaces", state.interfaces().len());
}

/// Checks one payload.
fn one(encapsulation: MirrorEncapsulation, payload: &[u8]) {
    let payload = &payload[..payload.len().min(PAYLOAD_LEN_MAX)];
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
