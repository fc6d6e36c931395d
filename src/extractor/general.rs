//! The general path: every link and tunnel, IP options and extension headers, fragments, cut frames, rare transports.

use super::{KeyPolicy, Packet, PacketMarks, Skip, Transport};
use crate::base::{EtherType, FlowKey, Frame, IpProtocol, Limits, Side};
use crate::link::{IpHeader, IpPacket, NoPacket, find_packet, ip_header};
use crate::wire::tcp::{self, TcpSegment};
use crate::wire::{be16, icmp};

const PORTS_LEN: usize = 4;
const UDP_HEADER_LEN: usize = 8;
const SCTP_HEADER_LEN: usize = 12;
const ICMP_HEADER_LEN: usize = 8;

#[inline(never)]
pub(super) fn packet<'a>(frame: &Frame<'a>, policy: &KeyPolicy, limits: &Limits) -> Result<Packet<'a>, Skip> {
    let frame = Frame { wire_len: frame.wire_len.max(frame.data.len() as u32), ..*frame };
    let mut found = IpPacket::empty(());
    match find_packet(&frame, policy.decapsulation, &policy.tunnel_ports, limits, &mut found) {
        Ok(()) => Ok(with_transport(&frame, policy, &found)),
        Err(NoPacket::Unsupported(unsupported)) => Err(Skip::Unsupported(unsupported)),
        Err(NoPacket::Truncated(error)) => Err(Skip::Truncated(error)),
        Err(NoPacket::Malformed(error)) => Err(Skip::Malformed(error)),
    }
}

/// What the transport part found: key, side, kind, and octets of its header.
struct Found {
    key: FlowKey,
    side: Side,
    transport: Transport,
    tcp: TcpSegment,
    header_len: usize,
    payload_len: usize,
    is_cut: bool,
    /// The length of UDP exceeds the payload of IP.
    is_len_bad: bool,
}

/// The packet whose IP header the walk found.
pub(super) fn with_transport<'a, E>(
    frame: &Frame<'a>,
    policy: &KeyPolicy,
    found: &IpPacket<E>,
) -> Packet<'a> {
    let ip = &found.ip;
    let transport_offset = found.offset + ip.header_len;
    // Padding behind the IP packet is none of its transport.
    let end = (found.offset + ip.len).min(frame.data.len());
    let captured = frame.data.get(transport_offset..end).unwrap_or_default();
    let transport = read_transport(captured, policy, ip);
    // Octets that are not there because the packet has no more of them were not cut by the capture.
    let is_captured_in_part = frame.data.len() < found.offset + ip.len;
    let is_len_bad = ip.is_bad_len || found.is_outer_len_bad || transport.is_len_bad;
    let is_without_ports = ip.protocol.has_ports() && transport.transport == Transport::Other;
    Packet {
        key: policy.complete(transport.key, frame, &found.link),
        wire_len: frame.wire_len,
        ip_len: clamp(ip.len),
        payload_len: clamp(transport.payload_len),
        ip_offset: clamp(found.offset),
        transport_offset: clamp(transport_offset),
        payload_offset: clamp(transport_offset + transport.header_len),
        interface: frame.interface,
        tcp: transport.tcp,
        mac_addresses: found.link.mac_addresses,
        vlan_ids: found.link.vlan_ids,
        transport: transport.transport,
        hop_limit: ip.hop_limit,
        traffic_class: ip.traffic_class,
        marks: PacketMarks::default()
            .with(PacketMarks::FRAGMENT, ip.is_fragment)
            .with(PacketMarks::WITHOUT_PORTS, is_without_ports)
            .with(PacketMarks::CUT, is_captured_in_part && (ip.is_cut || transport.is_cut))
            .with(PacketMarks::BAD_IP_LEN, is_len_bad)
            .with(PacketMarks::TOO_DEEP, found.is_too_deep)
            .with(PacketMarks::ENCAPSULATED, found.depth > 0),
        ..Packet::new(transport.key, transport.side, frame.timestamp, frame.data)
    }
}

fn clamp(octets: usize) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

/// Reads the transport header at the start of `captured`; padding is cut off already.
fn read_transport(captured: &[u8], policy: &KeyPolicy, ip: &IpHeader) -> Found {
    let len = ip.len.saturating_sub(ip.header_len);
    let pair = |is_cut| {
        let (key, side) = policy.key(ip.protocol, ip.is_ipv6, (ip.source, 0), (ip.destination, 0), false);
        let (transport, tcp) = (Transport::Other, TcpSegment::default());
        Found { key, side, transport, tcp, header_len: 0, payload_len: len, is_cut, is_len_bad: false }
    };
    if ip.is_cut || ip.is_later_fragment {
        return pair(false);
    }
    let is_icmp = matches!(ip.protocol, IpProtocol::ICMP | IpProtocol::ICMPV6);
    let needed = match ip.protocol {
        protocol if protocol.has_ports() => PORTS_LEN,
        _ if is_icmp => 2,
        _ => return pair(false),
    };
    if captured.len() < needed {
        return pair(true);
    }
    if is_icmp {
        return read_icmp(captured, policy, ip, len);
    }
    let ports = [be16(captured, 0).unwrap_or_default(), be16(captured, 2).unwrap_or_default()];
    let (key, side) = if policy.ports {
        policy.key(ip.protocol, ip.is_ipv6, (ip.source, ports[0]), (ip.destination, ports[1]), true)
    } else {
        policy.key(ip.protocol, ip.is_ipv6, (ip.source, 0), (ip.destination, 0), false)
    };
    let found = |transport, header_len: usize, payload_len, is_cut| Found {
        key,
        side,
        transport,
        tcp: TcpSegment::default(),
        header_len,
        payload_len,
        is_cut,
        is_len_bad: false,
    };
    match ip.protocol {
        IpProtocol::TCP => match (tcp::header_len(captured), TcpSegment::read(captured)) {
            (Some(header_len), Some(tcp)) if header_len >= tcp::HEADER_LEN_MIN && header_len <= len => {
                let is_cut = captured.len() < header_len;
                Found { tcp, ..found(Transport::Tcp, header_len, len - header_len, is_cut) }
            }
            (Some(_), Some(_)) => found(Transport::TcpPorts, len, 0, false),
            _ => found(
                Transport::TcpPorts,
                len.min(tcp::HEADER_LEN_MIN),
                len.saturating_sub(tcp::HEADER_LEN_MIN),
                true,
            ),
        },
        IpProtocol::UDP => {
            let rest = len.saturating_sub(UDP_HEADER_LEN);
            // A fragment's length field covers the whole datagram; a jumbogram's is zero (RFC 2675).
            let udp_len = be16(captured, 4).map_or(0, usize::from);
            let payload_len =
                if (UDP_HEADER_LEN..=len).contains(&udp_len) { udp_len - UDP_HEADER_LEN } else { rest };
            let is_cut = captured.len() < UDP_HEADER_LEN;
            let is_len_bad = udp_len > len && !ip.is_fragment;
            Found { is_len_bad, ..found(Transport::Udp, len.min(UDP_HEADER_LEN), payload_len, is_cut) }
        }
        _ => {
            let header_len = len.min(SCTP_HEADER_LEN);
            found(Transport::Sctp, header_len, len - header_len, captured.len() < SCTP_HEADER_LEN)
        }
    }
}

fn read_icmp(captured: &[u8], policy: &KeyPolicy, ip: &IpHeader, len: usize) -> Found {
    let kind = captured.first().copied().unwrap_or_default();
    let code = captured.get(1).copied().unwrap_or_default();
    let pairing = if ip.is_ipv6 { icmp::pairing_v6(kind) } else { icmp::pairing_v4(kind) };
    let echo_id = be16(captured, 4).filter(|_| policy.echo_id && icmp::is_echo(ip.is_ipv6, kind));
    let (key, side) = match pairing {
        _ if !policy.ports => policy.key(ip.protocol, ip.is_ipv6, (ip.source, 0), (ip.destination, 0), false),
        icmp::Pairing::TwoWay { counterpart } => {
            let (source, destination) = ((ip.source, kind.into()), (ip.destination, counterpart.into()));
            let (key, side) = policy.key(ip.protocol, ip.is_ipv6, source, destination, true);
            (key.with_icmp(false, echo_id), side)
        }
        icmp::Pairing::OneWay => {
            let (source, destination) = ((ip.source, kind.into()), (ip.destination, code.into()));
            (
                FlowKey::directed(ip.protocol, ip.is_ipv6, source, destination, true).with_icmp(true, None),
                Side::A,
            )
        }
    };
    let header_len = len.min(ICMP_HEADER_LEN);
    Found {
        key,
        side,
        transport: Transport::Icmp,
        tcp: TcpSegment::default(),
        header_len,
        payload_len: len - header_len,
        is_cut: captured.len() < header_len,
        is_len_bad: false,
    }
}

/// The key of the packet whose IP header starts `data`, and the side of its sender; for quoted packets, of which
/// only the beginning is there.
pub(super) fn key_of(
    data: &[u8],
    wire_len: usize,
    ether_type: EtherType,
    policy: &KeyPolicy,
    limits: &Limits,
) -> Option<(FlowKey, Side)> {
    let ip = ip_header(data, wire_len, 0, ether_type, limits).ok()?;
    let end = ip.len.min(data.len());
    let found = read_transport(data.get(ip.header_len..end)?, policy, &ip);
    let is_complete = !ip.protocol.has_ports() || found.transport != Transport::Other;
    is_complete.then_some((found.key, found.side))
}
