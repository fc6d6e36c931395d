//! Ethernet frames read by the extractor and by the lax slices of `etherparse`: the same addresses, protocol, ports,
//! TCP fields and payload.
//!
//! Only frames that both claim to read are compared: Ethernet II with up to three VLAN tags before IPv4 or IPv6, and
//! without decapsulation. Differences by design are in [`is_by_design`].

use std::net::IpAddr;

use arbitrary::{Arbitrary, Result, Unstructured};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use flowgauge::base::{Frame, Timestamp};
use flowgauge::extractor::{Extractor, KeyPolicy, PacketMarks, Transport};
use flowgauge::link::Decapsulation;

use super::frames::{Maker, Packet};
use super::input::structured;

enum Input<'a> {
    Octets(&'a [u8]),
    Packet(Box<Packet<'a>>),
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        if u8::arbitrary(u)? < 128 {
            let len = u.len();
            Ok(Self::Octets(u.bytes(len)?))
        } else {
            Ok(Self::Packet(Box::new(Packet::arbitrary(u)?)))
        }
    }
}

/// What is compared.
#[derive(Debug, PartialEq)]
struct Facts<'a> {
    ends: [IpAddr; 2],
    hop_limit: u8,
    traffic_class: u8,
    is_fragment: bool,
    transport: Option<Ports<'a>>,
}

#[derive(Debug, PartialEq)]
struct Ports<'a> {
    is_tcp: bool,
    ports: [u16; 2],
    /// Sequence and acknowledgment number, window and flags of TCP.
    tcp: [u32; 4],
    payload: &'a [u8],
}

fn ours<'a>(data: &'a [u8]) -> Option<(Facts<'a>, PacketMarks)> {
    let mut policy = KeyPolicy::DEFAULT;
    policy.decapsulation = Decapsulation::Outermost;
    let packet = Extractor::new(policy).extract(&Frame::ethernet(Timestamp::ZERO, data)).ok()?;
    let (side, other) = (packet.side, packet.side.other());
    let ports = [side, other].map(|side| packet.key.port(side));
    let payload = packet.payload();
    let transport = match packet.transport {
        Transport::Tcp => {
            let tcp = &packet.tcp;
            let tcp = [tcp.seq.0, tcp.ack.0, tcp.window.into(), u32::from(tcp.flags.0)];
            Some(Ports { is_tcp: true, ports, tcp, payload })
        }
        Transport::Udp => Some(Ports { is_tcp: false, ports, tcp: [0; 4], payload }),
        _ => None,
    };
    let facts = Facts {
        ends: [side, other].map(|side| packet.key.address(side)),
        hop_limit: packet.hop_limit,
        traffic_class: packet.traffic_class,
        is_fragment: packet.marks.contains(PacketMarks::FRAGMENT),
        transport,
    };
    Some((facts, packet.marks))
}

fn theirs<'a>(sliced: &LaxSlicedPacket<'a>) -> Option<Facts<'a>> {
    let (ends, hop_limit, traffic_class, payload) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let ends = [header.source_addr().into(), header.destination_addr().into()];
            (ends, header.ttl(), header.dcp().value() << 2 | header.ecn().value(), ip.payload())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let ends = [header.source_addr().into(), header.destination_addr().into()];
            (ends, header.hop_limit(), header.traffic_class(), ip.payload())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let transport = match sliced.transport.as_ref() {
        Some(TransportSlice::Tcp(tcp)) => {
            let octets = tcp.slice();
            let flags = u32::from(u16::from_be_bytes([octets[12], octets[13]]) & 0x1ff);
            let window = tcp.window_size().into();
            Some(Ports {
                is_tcp: true,
                ports: [tcp.source_port(), tcp.destination_port()],
                tcp: [tcp.sequence_number(), tcp.acknowledgment_number(), window, flags],
                payload: tcp.payload(),
            })
        }
        Some(TransportSlice::Udp(udp)) => Some(Ports {
            is_tcp: false,
            ports: [udp.source_port(), udp.destination_port()],
            tcp: [0; 4],
            payload: udp.payload(),
        }),
        _ => None,
    };
    Some(Facts { ends, hop_limit, traffic_class, is_fragment: payload.fragmented, transport })
}

/// Whether the frame has up to three VLAN tags, and then IPv4 or IPv6. Etherparse takes the version of the packet for
/// the type, so that both must agree.
fn is_common(data: &[u8]) -> bool {
    let mut offset = 12;
    for _ in 0..4 {
        match data.get(offset..offset + 2) {
            Some([0x81, 0] | [0x88, 0xa8] | [0x91, 0]) => offset += 4,
            Some([8, 0]) => return data.get(offset + 2).is_some_and(|first| first >> 4 == 4),
            Some([0x86, 0xdd]) => return data.get(offset + 2).is_some_and(|first| first >> 4 == 6),
            _ => return false,
        }
    }
    false
}

/// Whether the packet is shorter than its headers claim: it was truncated, or its length exceeds the frame.
fn is_short(marks: PacketMarks) -> bool {
    marks.contains(PacketMarks::CUT) || marks.contains(PacketMarks::BAD_IP_LEN)
}

/// Differences that are meant to be, each with its reason.
fn is_by_design(ours: Option<&(Facts<'_>, PacketMarks)>, data: &[u8]) -> bool {
    let is_ip = |at: &usize| matches!(data.get(*at..at + 2), Some([8, 0] | [0x86, 0xdd]));
    let ip = (12..=24).step_by(4).find(is_ip).and_then(|at| data.get(at + 2..)).unwrap_or_default();
    // The fixed part of a header of IPv4 whose options were truncated.
    if ours.is_some_and(|(_, marks)| is_short(*marks)) {
        return ip.first().is_some_and(|first| usize::from(first & 15) * 4 > ip.len());
    }
    ours.is_none()
        && match *ip {
            // IPv4 with a length, but less than that of its header.
            [first, _, high, low, ..] if first >> 4 == 4 => {
                (1..u16::from(first & 15) * 4).contains(&u16::from_be_bytes([high, low]))
            }
            // IPv6 with a length of zero, and a hop-by-hop header in which a jumbogram's length would be.
            [first, _, _, _, 0, 0, 0, ..] => first >> 4 == 6,
            _ => false,
        }
}

fn compare(data: &[u8]) {
    if !is_common(data) {
        return;
    }
    let mut ours = ours(data);
    let sliced = LaxSlicedPacket::from_ethernet(data);
    let theirs = sliced.as_ref().ok().and_then(theirs);
    if let (Some((ours, marks)), Some(theirs)) = (&mut ours, &theirs) {
        // The extractor reads the ports of first fragments and of truncated headers, which etherparse leaves alone.
        if theirs.transport.is_none() && (ours.is_fragment || is_short(*marks)) {
            ours.transport = None;
        }
    }
    if ours.as_ref().map(|(facts, _)| facts) != theirs.as_ref() && !is_by_design(ours.as_ref(), data) {
        panic!("{ours:#?}\netherparse: {theirs:#?}\n{data:02x?}");
    }
}

pub fn run(data: &[u8]) {
    match structured::<Input<'_>>(data) {
        Some(Input::Octets(octets)) => compare(octets),
        Some(Input::Packet(packet)) => {
            Maker::default().packet(&packet).iter().for_each(|frame| compare(&frame.octets));
        }
        None => {}
    }
}
