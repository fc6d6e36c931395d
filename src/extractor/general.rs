//! The general path: every link, IP options and extension headers, fragments, cut frames, rare transports.

use etherparse::{
    IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
};

use super::{KeyPolicy, Packet, PacketMarks, Skip, Transport};
use crate::base::{EtherType, FlowKey, Frame, IpProtocol, Layer, Limits, ParseError, ParseErrorKind, Side};
use crate::link::{Decapsulated, IpPacket, decapsulate};
use crate::wire::tcp::{self, TcpSegment};
use crate::wire::{be16, be32, icmp};

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
const PORTS_LEN: usize = 4;
const UDP_HEADER_LEN: usize = 8;
const SCTP_HEADER_LEN: usize = 12;
const ICMP_HEADER_LEN: usize = 8;

/// An IP header and its extensions, walked.
pub(super) struct IpHeader {
    pub(super) is_ipv6: bool,
    pub(super) source: u128,
    pub(super) destination: u128,
    /// The protocol behind the last extension that was read.
    pub(super) protocol: IpProtocol,
    /// Octets of the packet by its length field, or to the end of the frame where that is zero.
    pub(super) len: usize,
    /// Octets of the header and the extensions.
    pub(super) header_len: usize,
    hop_limit: u8,
    traffic_class: u8,
    /// Part of a fragmented datagram.
    is_fragment: bool,
    /// Not its first part: no transport header.
    pub(super) is_later_fragment: bool,
    /// The capture ends within the header.
    is_cut: bool,
    is_bad_len: bool,
}

#[inline(never)]
pub(super) fn packet<'a>(frame: &Frame<'a>, policy: &KeyPolicy, limits: &Limits) -> Result<Packet<'a>, Skip> {
    let frame = Frame { wire_len: frame.wire_len.max(frame.data.len() as u32), ..*frame };
    match decapsulate(&frame, limits) {
        Decapsulated::Packet(found) => {
            let wire_len = frame.wire_len as usize - found.offset;
            let data = frame.data.get(found.offset..).unwrap_or_default();
            let ip = ip_header(data, wire_len, found.offset, found.ether_type, limits)
                .map_err(Skip::from_error)?;
            Ok(with_transport(&frame, policy, &found, &ip))
        }
        Decapsulated::Unsupported(unsupported) => Err(Skip::Unsupported(unsupported)),
        Decapsulated::Truncated(error) => Err(Skip::Truncated(error)),
        Decapsulated::Malformed(error) => Err(Skip::Malformed(error)),
    }
}

/// Reads the IP header at the start of `data`, of which `wire_len` octets were on the wire.
pub(super) fn ip_header(
    data: &[u8],
    wire_len: usize,
    offset: usize,
    ether_type: EtherType,
    limits: &Limits,
) -> Result<IpHeader, ParseError> {
    let (layer, need) = match ether_type {
        EtherType::IPV6 => (Layer::Ipv6, IPV6_HEADER_LEN),
        _ => (Layer::Ipv4, IPV4_HEADER_LEN),
    };
    let version = data.first().map_or(0, |octet| octet >> 4);
    if !data.is_empty() && version != if layer == Layer::Ipv6 { 6 } else { 4 } {
        return Err(ParseError::new(layer, ParseErrorKind::BadVersion, offset, version.into(), 0));
    }
    if data.len() < need {
        return Err(ParseError::truncated(layer, offset, need, data.len()));
    }
    match layer {
        Layer::Ipv6 => ipv6_header(data, wire_len, offset, limits),
        _ => ipv4_header(data, wire_len, offset),
    }
}

fn ipv4_header(data: &[u8], wire_len: usize, offset: usize) -> Result<IpHeader, ParseError> {
    let bad_len = |need, have| ParseError::new(Layer::Ipv4, ParseErrorKind::BadLength, offset, need, have);
    let field = |at| usize::from(be16(data, at).unwrap_or_default());
    let options_end = usize::from(data.first().map_or(0, |octet| octet & 0xf)) * 4;
    if options_end < IPV4_HEADER_LEN {
        return Err(bad_len(options_end, IPV4_HEADER_LEN));
    }
    let total_len = field(2);
    let len = if total_len == 0 { wire_len } else { total_len };
    if len < options_end {
        return Err(bad_len(len, options_end));
    }
    let fragment_offset = field(6) & 0x1fff;
    let address = |at: usize| u128::from(be32(data, at).unwrap_or_default());
    let mut ip = IpHeader {
        is_ipv6: false,
        source: address(12),
        destination: address(16),
        protocol: IpProtocol(data.get(9).copied().unwrap_or_default()),
        len,
        header_len: options_end,
        hop_limit: data.get(8).copied().unwrap_or_default(),
        traffic_class: data.get(1).copied().unwrap_or_default(),
        is_fragment: field(6) & 0x3fff != 0,
        is_later_fragment: fragment_offset != 0,
        is_cut: false,
        is_bad_len: total_len == 0 || total_len > wire_len,
    };
    match Ipv4HeaderSlice::from_slice(data) {
        Ok(_) if ip.protocol == IpProtocol::AH && !ip.is_later_fragment => {
            authentication(data.get(options_end..).unwrap_or_default(), &mut ip);
        }
        Ok(_) => {}
        Err(_) => ip.is_cut = true,
    }
    Ok(ip)
}

/// Steps over an authentication header (RFC 4302), whose payload is in the clear.
fn authentication(data: &[u8], ip: &mut IpHeader) {
    match IpAuthHeaderSlice::from_slice(data) {
        Ok(header) => {
            ip.protocol = IpProtocol(header.next_header().0);
            ip.header_len += header.slice().len();
        }
        Err(_) => ip.is_cut = true,
    }
}

fn ipv6_header(data: &[u8], wire_len: usize, offset: usize, limits: &Limits) -> Result<IpHeader, ParseError> {
    let Ok(fixed) = Ipv6HeaderSlice::from_slice(data) else {
        return Err(ParseError::truncated(Layer::Ipv6, offset, IPV6_HEADER_LEN, data.len()));
    };
    let protocol = IpProtocol(fixed.next_header().0);
    // No length: a jumbogram (RFC 2675), or a packet that the network card was to cut up.
    let is_without_len = fixed.payload_length() == 0 && protocol != IpProtocol::IPV6_NO_NEXT;
    let len = if is_without_len { wire_len } else { IPV6_HEADER_LEN + usize::from(fixed.payload_length()) };
    let mut ip = IpHeader {
        is_ipv6: true,
        source: u128::from_be_bytes(fixed.source()),
        destination: u128::from_be_bytes(fixed.destination()),
        protocol,
        len,
        header_len: IPV6_HEADER_LEN,
        hop_limit: fixed.hop_limit(),
        traffic_class: fixed.traffic_class(),
        is_fragment: false,
        is_later_fragment: false,
        is_cut: false,
        is_bad_len: is_without_len || len > wire_len,
    };
    extensions(data.get(..len.min(data.len())).unwrap_or_default(), offset, limits, &mut ip)?;
    Ok(ip)
}

/// Steps over extension headers until a transport, a later fragment, or the end of what was captured.
fn extensions(data: &[u8], offset: usize, limits: &Limits, ip: &mut IpHeader) -> Result<(), ParseError> {
    let mut count = 0;
    loop {
        let rest = data.get(ip.header_len..).unwrap_or_default();
        let step = match ip.protocol {
            IpProtocol::HOP_BY_HOP | IpProtocol::IPV6_ROUTE | IpProtocol::IPV6_OPTS => {
                Ipv6RawExtHeaderSlice::from_slice(rest)
                    .ok()
                    .map(|header| (header.next_header(), header.slice().len()))
            }
            IpProtocol::IPV6_FRAG => Ipv6FragmentHeaderSlice::from_slice(rest).ok().map(|header| {
                // An atomic fragment (RFC 6946) is none: offset zero and nothing more to come.
                ip.is_fragment |= header.is_fragmenting_payload();
                ip.is_later_fragment |= header.fragment_offset().value() != 0;
                (header.next_header(), header.slice().len())
            }),
            IpProtocol::AH => IpAuthHeaderSlice::from_slice(rest)
                .ok()
                .map(|header| (header.next_header(), header.slice().len())),
            _ => return Ok(()),
        };
        let Some((next, len)) = step else {
            ip.is_cut = true;
            return Ok(());
        };
        ip.protocol = IpProtocol(next.0);
        ip.header_len += len;
        if ip.is_later_fragment {
            return Ok(());
        }
        count += 1;
        if count > limits.ip_extension_count_max {
            let have = limits.ip_extension_count_max as usize;
            return Err(ParseError::new(Layer::Ipv6, ParseErrorKind::TooDeep, offset, count as usize, have));
        }
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
}

fn with_transport<'a>(frame: &Frame<'a>, policy: &KeyPolicy, found: &IpPacket, ip: &IpHeader) -> Packet<'a> {
    let transport_offset = found.offset + ip.header_len;
    // Padding behind the IP packet is none of its transport.
    let end = (found.offset + ip.len).min(frame.data.len());
    let captured = frame.data.get(transport_offset..end).unwrap_or_default();
    let transport = read_transport(captured, policy, ip);
    let is_without_ports = ip.protocol.has_ports() && transport.transport == Transport::Other;
    Packet {
        key: policy.complete(transport.key, frame, found.link.vlan_ids),
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
            .with(PacketMarks::CUT, ip.is_cut || transport.is_cut)
            .with(PacketMarks::BAD_IP_LEN, ip.is_bad_len),
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
        Found { key, side, transport, tcp, header_len: 0, payload_len: len, is_cut }
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
            let payload_len = match be16(captured, 4).map(usize::from) {
                Some(udp_len) if udp_len >= UDP_HEADER_LEN && udp_len <= len => udp_len - UDP_HEADER_LEN,
                _ => rest,
            };
            found(Transport::Udp, len.min(UDP_HEADER_LEN), payload_len, captured.len() < UDP_HEADER_LEN)
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
