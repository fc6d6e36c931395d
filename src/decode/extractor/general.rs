//! General path of extraction: supports every link and tunnel, IP options and extension headers, fragments,
//! truncated frames, and rare transports.

use super::{KeyPolicy, Packet, PacketMarks, Skip, Transport};
use crate::base::TcpSegment;
use crate::base::{EtherType, FlowKey, Frame, IpProtocol, Limits, Side};
use crate::decode::link::{IpHeader, IpPacket, NoPacket, Walked, find_packet, ip_header};
use crate::decode::neighbor::mark;
use crate::wire::tcp;
use crate::wire::{icmp, ports, sctp, udp};

#[inline(never)]
pub(super) fn packet<'a>(frame: &Frame<'a>, policy: &KeyPolicy, limits: &Limits) -> Result<Packet<'a>, Skip> {
    let mut walked = Walked::new(());
    find_packet(frame, None, &policy.walk_settings(limits), &mut walked)?;
    let mut packet = with_transport(frame, policy, &walked.packet);
    mark(&mut packet, walked.other.as_ref());
    Ok(packet)
}

impl From<NoPacket> for Skip {
    fn from(reason: NoPacket) -> Self {
        match reason {
            NoPacket::Unsupported(unsupported) => Self::Unsupported(unsupported),
            NoPacket::Truncated(error) => Self::Truncated(error),
            NoPacket::Malformed(error) => Self::Malformed(error),
        }
    }
}

/// Result of reading a transport header: flow key, side of the sender, kind of transport, and lengths in
/// octets.
struct Found {
    key: FlowKey,
    side: Side,
    transport: Transport,
    tcp: TcpSegment,
    header_len: usize,
    payload_len: usize,
    is_truncated: bool,
    /// True if the length field of UDP exceeds the payload of the IP packet.
    is_len_bad: bool,
}

/// Returns the packet whose IP header a walk found in a frame; reads the transport header.
#[inline(always)]
pub(super) fn with_transport<'a>(frame: &Frame<'a>, policy: &KeyPolicy, found: &IpPacket) -> Packet<'a> {
    let ip = &found.ip;
    let transport_offset = found.offset + ip.header_len;
    // Padding behind the IP packet is not part of its transport.
    let end = (found.offset + ip.len).min(frame.data.len());
    let captured = frame.data.get(transport_offset..end).unwrap_or_default();
    let transport = read_transport(captured, policy, ip);
    // Octets beyond the end of the packet are absent, not truncated by the capture.
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
            .with(PacketMarks::TRUNCATED, is_captured_in_part && (ip.is_truncated || transport.is_truncated))
            .with(PacketMarks::BAD_IP_LEN, is_len_bad)
            .with(PacketMarks::TOO_DEEP, found.is_too_deep)
            .with(PacketMarks::ENCAPSULATED, found.depth > 0),
        ..Packet::new(transport.key, transport.side, frame.timestamp, frame.data)
    }
}

fn clamp(octets: usize) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

/// Reads the transport header at the start of `captured`, which ends where the IP packet ends, without
/// padding.
fn read_transport(captured: &[u8], policy: &KeyPolicy, ip: &IpHeader) -> Found {
    let len = ip.len.saturating_sub(ip.header_len);
    let pair = |is_truncated| {
        let (key, side) = policy.key(ip.protocol, ip.is_ipv6, (ip.source, 0), (ip.destination, 0), false);
        let (transport, tcp) = (Transport::Other, TcpSegment::default());
        Found { key, side, transport, tcp, header_len: 0, payload_len: len, is_truncated, is_len_bad: false }
    };
    if ip.is_truncated || ip.is_later_fragment {
        return pair(false);
    }
    let is_icmp = matches!(ip.protocol, IpProtocol::ICMP | IpProtocol::ICMPV6);
    let needed = match ip.protocol {
        protocol if protocol.has_ports() => ports::LEN,
        _ if is_icmp => icmp::KIND_AND_CODE_LEN,
        _ => return pair(false),
    };
    if captured.len() < needed {
        return pair(true);
    }
    if is_icmp {
        return read_icmp(captured, policy, ip, len);
    }
    let [source_port, destination_port] = ports::ports(captured).unwrap_or_default();
    let (key, side) = if policy.ports {
        let (source, destination) = ((ip.source, source_port), (ip.destination, destination_port));
        policy.key(ip.protocol, ip.is_ipv6, source, destination, true)
    } else {
        policy.key(ip.protocol, ip.is_ipv6, (ip.source, 0), (ip.destination, 0), false)
    };
    let found = |transport, header_len: usize, payload_len, is_truncated| Found {
        key,
        side,
        transport,
        tcp: TcpSegment::default(),
        header_len,
        payload_len,
        is_truncated,
        is_len_bad: false,
    };
    match ip.protocol {
        IpProtocol::TCP => match (tcp::header_len(captured), TcpSegment::read(captured)) {
            (Some(header_len), Some(tcp)) if header_len >= tcp::HEADER_LEN_MIN && header_len <= len => {
                let is_truncated = captured.len() < header_len;
                Found { tcp, ..found(Transport::Tcp, header_len, len - header_len, is_truncated) }
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
            let rest = len.saturating_sub(udp::HEADER_LEN);
            // The length field of a fragment covers the whole datagram; that of a jumbogram is zero (RFC
            // 2675).
            let udp_len = udp::len(captured).unwrap_or_default();
            let payload_len =
                if (udp::HEADER_LEN..=len).contains(&udp_len) { udp_len - udp::HEADER_LEN } else { rest };
            let is_truncated = captured.len() < udp::HEADER_LEN;
            let is_len_bad = udp_len > len && !ip.is_fragment;
            Found { is_len_bad, ..found(Transport::Udp, len.min(udp::HEADER_LEN), payload_len, is_truncated) }
        }
        _ => {
            let header_len = len.min(sctp::HEADER_LEN);
            found(Transport::Sctp, header_len, len - header_len, captured.len() < sctp::HEADER_LEN)
        }
    }
}

fn read_icmp(captured: &[u8], policy: &KeyPolicy, ip: &IpHeader, len: usize) -> Found {
    let (kind, code) = icmp::kind_and_code(captured).unwrap_or_default();
    let pairing = if ip.is_ipv6 { icmp::pairing_v6(kind) } else { icmp::pairing_v4(kind) };
    let echo_id = icmp::echo_id(captured).filter(|_| policy.echo_id && icmp::is_echo(ip.is_ipv6, kind));
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
    let header_len = len.min(icmp::HEADER_LEN);
    Found {
        key,
        side,
        transport: Transport::Icmp,
        tcp: TcpSegment::default(),
        header_len,
        payload_len: len - header_len,
        is_truncated: captured.len() < header_len,
        is_len_bad: false,
    }
}

/// Returns the flow key of the packet whose IP header is at the start of `data`, and the side of its sender.
/// `data` may contain only the beginning of the packet, as in the quotation of an ICMP error.
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
