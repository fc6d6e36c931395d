//! Ethernet frames read by the extractor and by the lax slices of `etherparse`: the same addresses, protocol, ports,
//! TCP fields and payload.
//!
//! Only frames that both support are compared: Ethernet II with up to three VLAN tags before IPv4 or IPv6, and without
//! decapsulation. Each difference by design is a separate function with its reason.

use std::net::IpAddr;

use arbitrary::{Arbitrary, Result, Unstructured};
use etherparse::{IpNumber, LaxIpPayloadSlice, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use flowgauge::base::{Frame, Limits, Timestamp};
use flowgauge::decode::extractor::{Extractor, KeyPolicy, PacketMarks, Transport};
use flowgauge::decode::link::Decapsulation;

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

/// Compared fields of a packet.
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

fn ours(data: &[u8]) -> Option<Facts<'_>> {
    let mut policy = KeyPolicy::DEFAULT;
    policy.decapsulation = Decapsulation::Outermost;
    let packet = Extractor::new(policy).extract(&Frame::ethernet(Timestamp::ZERO, data)).ok()?;
    let (side, other) = (packet.side, packet.side.other());
    let ports = [side, other].map(|side| packet.key.port(side).unwrap_or_default());
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
    Some(Facts {
        ends: [side, other].map(|side| packet.key.address(side)),
        hop_limit: packet.hop_limit,
        traffic_class: packet.traffic_class,
        is_fragment: packet.marks.contains(PacketMarks::FRAGMENT),
        transport,
    })
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
            let flags = u32::from(u16::from_be_bytes([octets[12], octets[13]]) & 0xfff);
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

/// Returns the IP packet after up to three VLAN tags if its version agrees with the EtherType: etherparse ignores the
/// EtherType and uses the version.
fn ip_packet(data: &[u8]) -> Option<&[u8]> {
    let mut offset = 12;
    for _ in 0..4 {
        let version = match data.get(offset..offset + 2)? {
            [0x81, 0] | [0x88, 0xa8] | [0x91, 0] => {
                offset += 4;
                continue;
            }
            [8, 0] => 4,
            [0x86, 0xdd] => 6,
            _ => return None,
        };
        return data.get(offset + 2..).filter(|ip| ip.first().is_some_and(|first| first >> 4 == version));
    }
    None
}

/// Returns the types of the complete extension headers of an IPv6 packet (RFC 8200 section 4), up to the fragment
/// header of a later fragment.
fn extensions(ip: &[u8]) -> impl Iterator<Item = u8> {
    const IPV6_HEADER_LEN: usize = 40;
    let payload_len = match ip {
        [_, _, _, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    let end = if payload_len == 0 { ip.len() } else { ip.len().min(IPV6_HEADER_LEN + payload_len) };
    let mut rest = ip.get(IPV6_HEADER_LEN..end).unwrap_or_default();
    let mut kind = ip.get(6).copied().filter(|_| is_ipv6(ip));
    std::iter::from_fn(move || {
        let current = kind?;
        let len = match (current, rest) {
            (0 | 43 | 60, [_, len, ..]) => 8 + usize::from(*len) * 8,
            (44, _) => 8,
            (51, [_, len @ 1..=255, ..]) => 8 + usize::from(*len) * 4,
            _ => return None,
        };
        let (header, behind) = rest.split_at_checked(len)?;
        let is_later_fragment = current == 44 && u16::from_be_bytes([header[2], header[3]]) >> 3 != 0;
        kind = header.first().copied().filter(|_| !is_later_fragment);
        rest = behind;
        Some(current)
    })
}

/// Returns whether the version of a packet is six.
fn is_ipv6(ip: &[u8]) -> bool {
    ip.first().is_some_and(|first| first >> 4 == 6)
}

/// Returns whether a hop-by-hop options header follows another extension header, which RFC 8200 section 4.1 forbids.
/// etherparse stops there. The extractor skips the header, so that the packet still belongs to the flow of its ports.
fn has_late_options(ip: &[u8]) -> bool {
    extensions(ip).skip(1).any(|kind| kind == 0)
}

/// Returns whether the extractor rejects the packet because of `Limits::ip_extension_count_max`, which bounds the work
/// per packet. Neither RFC 8200 section 4 nor etherparse has such a limit.
fn has_too_many_extensions(ip: &[u8]) -> bool {
    extensions(ip).count() > Limits::DEFAULT.ip_extension_count_max as usize
}

/// Returns whether only the extractor reads ports: those of first fragments, and those of UDP headers (RFC 768) of less
/// than eight octets. etherparse requires the whole header and reads no transport header in any fragment.
fn only_extractor_reads_ports(ours: &Facts<'_>, sliced: &LaxSlicedPacket<'_>) -> bool {
    const UDP_HEADER_LEN: usize = 8;
    let payload = sliced.net.as_ref().and_then(LaxNetSlice::ip_payload_ref);
    let is_short_udp = |payload: &LaxIpPayloadSlice<'_>| {
        payload.ip_number == IpNumber::UDP && payload.payload.len() < UDP_HEADER_LEN
    };
    sliced.transport.is_none() && (ours.is_fragment || payload.is_some_and(is_short_udp))
}

/// Returns whether only the extractor reads the packet: the frame ends after the addresses, within the IPv4 options
/// (RFC 791 section 3.1).
fn is_read_only_by_extractor(ip: &[u8]) -> bool {
    !is_ipv6(ip) && ip.first().is_some_and(|first| usize::from(first & 15) * 4 > ip.len())
}

/// Returns whether only etherparse reads the packet.
fn is_read_only_by_etherparse(ip: &[u8]) -> bool {
    match *ip {
        // The total length of IPv4 is not zero, but less than that of the header (RFC 791 section 3.1).
        [first, _, high, low, ..] if first >> 4 == 4 => {
            (1..u16::from(first & 15) * 4).contains(&u16::from_be_bytes([high, low]))
        }
        _ => has_too_many_extensions(ip),
    }
}

fn compare(data: &[u8]) {
    let Some(ip) = ip_packet(data) else { return };
    let mut ours = ours(data);
    let sliced = LaxSlicedPacket::from_ethernet(data).ok();
    let theirs = sliced.as_ref().and_then(theirs);
    let is_same = match (&mut ours, &theirs, &sliced) {
        (Some(ours), Some(theirs), Some(sliced)) => {
            if only_extractor_reads_ports(ours, sliced) {
                ours.transport = None;
            }
            if has_late_options(ip) {
                (ours.is_fragment, ours.transport) = (theirs.is_fragment, None);
            }
            *ours == *theirs
        }
        (Some(_), ..) => is_read_only_by_extractor(ip),
        (None, Some(_), _) => is_read_only_by_etherparse(ip),
        (None, None, _) => true,
    };
    assert!(is_same, "{ours:#?}\netherparse: {theirs:#?}\n{data:02x?}");
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
