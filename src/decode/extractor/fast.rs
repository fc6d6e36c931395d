//! Fast path of extraction: reads the fields of common frames in place.
//!
//! Yields a packet only if all lengths are consistent and every header is captured completely. The general
//! path processes everything else, so each rule about unusual packets has a single implementation.

use super::{KeyPolicy, Packet, PacketMarks, Transport};
use crate::base::TcpSegment;
use crate::base::{EtherType, FlowKey, Frame, IpProtocol, LinkType, Side, VlanIds};
use crate::decode::link::{MacAddresses, PortSet};
use crate::wire::ethernet;
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};
use crate::wire::ports::ports;
use crate::wire::tcp::{self, Tcp};
use crate::wire::udp::{self, Udp};

/// Number of VLAN tags that the fast path walks.
pub(super) const VLAN_TAGS: usize = 2;

/// Reads a common frame: writes its packet to `out` and returns true. For any other frame, returns false,
/// with `out` partly written.
///
/// Each field is written in place as soon as it is known, for speed: a packet is two cache lines, and
/// collecting and copying it would cost more than reading the headers.
#[inline(always)]
pub(super) fn read<'a>(
    frame: &Frame<'a>,
    policy: &KeyPolicy,
    plain_scope: Option<u32>,
    tunnel_ports: &PortSet,
    out: &mut Packet<'a>,
) -> bool {
    read_link(frame, policy, plain_scope, tunnel_ports, out).is_some()
}

#[inline(always)]
fn read_link<'a>(
    frame: &Frame<'a>,
    policy: &KeyPolicy,
    plain_scope: Option<u32>,
    tunnel_ports: &PortSet,
    out: &mut Packet<'a>,
) -> Option<()> {
    let data = frame.data;
    if frame.link_type != LinkType::ETHERNET || data.len() > frame.wire_len as usize {
        return None;
    }
    // The most common frame and policy are the cheapest: the compiler knows all offsets.
    let ether_type = ethernet::ether_type(data)?;
    if let Some(scope) = plain_scope
        && ether_type == EtherType::IPV4
    {
        return read_ipv4(frame, Added { scope, vlan_ids: false }, Start::UNTAGGED, tunnel_ports, out);
    }
    read_other(frame, policy, tunnel_ports, out)
}

#[inline(never)]
fn read_other<'a>(
    frame: &Frame<'a>,
    policy: &KeyPolicy,
    tunnel_ports: &PortSet,
    out: &mut Packet<'a>,
) -> Option<()> {
    if !policy.is_five_tuple() {
        return None;
    }
    let data = frame.data;
    let mut ether_type = ethernet::ether_type(data)?;
    let mut at = ethernet::HEADER_LEN;
    let mut vlan_ids = VlanIds::NONE;
    for _ in 0..VLAN_TAGS {
        if !ethernet::is_vlan(ether_type) {
            break;
        }
        let tag = ethernet::vlan_tag(data.get(at..)?)?;
        vlan_ids = vlan_ids.push(tag.id);
        ether_type = tag.ether_type;
        at += ethernet::VLAN_TAG_LEN;
    }
    let start = Start { at, vlan_ids };
    let added = Added { scope: policy.scope_of(frame), vlan_ids: policy.vlan_ids };
    match ether_type {
        EtherType::IPV4 => read_ipv4(frame, added, start, tunnel_ports, out),
        EtherType::IPV6 => read_ipv6(frame, added, start, tunnel_ports, out),
        _ => None,
    }
}

/// Fields that the key policy adds to the five-tuple: the value of the scope, and whether VLAN ids are part
/// of the key.
#[derive(Clone, Copy)]
struct Added {
    scope: u32,
    vlan_ids: bool,
}

/// Position of the IP header in the frame, and the VLAN ids before it.
#[derive(Clone, Copy)]
struct Start {
    at: usize,
    vlan_ids: VlanIds,
}

impl Start {
    const UNTAGGED: Self = Self { at: ethernet::HEADER_LEN, vlan_ids: VlanIds::NONE };
}

/// Fields of the IP header that the transport layer needs.
#[derive(Clone, Copy)]
struct Ip {
    protocol: IpProtocol,
    /// Length of the IP packet according to its length field, in octets, including the header.
    len: usize,
    header_len: usize,
}

#[inline(always)]
fn read_ipv4<'a>(
    frame: &Frame<'a>,
    added: Added,
    start: Start,
    tunnel_ports: &PortSet,
    out: &mut Packet<'a>,
) -> Option<()> {
    let header = Ipv4::read(frame.data.get(start.at..)?)?;
    if !header.is_plain() || header.is_fragment() {
        return None;
    }
    let protocol = header.protocol();
    let ip = Ip { protocol, len: header.total_len(), header_len: ipv4::HEADER_LEN_MIN };
    out.hop_limit = header.hop_limit();
    out.traffic_class = header.traffic_class();
    let [source_port, destination_port] = read_transport(frame, start, ip, tunnel_ports, out)?;
    let source = (header.source(), source_port);
    let destination = (header.destination(), destination_port);
    let (key, side) = FlowKey::ordered_v4(protocol, source, destination, added.scope);
    finish(added, start, key, side, out);
    Some(())
}

#[inline(always)]
fn read_ipv6<'a>(
    frame: &Frame<'a>,
    added: Added,
    start: Start,
    tunnel_ports: &PortSet,
    out: &mut Packet<'a>,
) -> Option<()> {
    let header = Ipv6::read(frame.data.get(start.at..)?)?;
    let payload_len = header.payload_len();
    if header.version() != 6 || payload_len == 0 {
        return None;
    }
    let protocol = header.next_header();
    let ip = Ip { protocol, len: ipv6::HEADER_LEN + payload_len, header_len: ipv6::HEADER_LEN };
    out.hop_limit = header.hop_limit();
    out.traffic_class = header.traffic_class();
    let [source_port, destination_port] = read_transport(frame, start, ip, tunnel_ports, out)?;
    let (source, destination) = ((header.source(), source_port), (header.destination(), destination_port));
    let (key, side) = FlowKey::ordered(protocol, true, source, destination, true);
    finish(added, start, key.with_scope(added.scope), side, out);
    Some(())
}

/// Reads the TCP or UDP header after an IP header and fills in the fields of `out` that do not depend on the
/// key. Returns the source and destination ports, or `None` if a length is inconsistent or the packet needs
/// the general path.
#[inline(always)]
fn read_transport<'a>(
    frame: &Frame<'a>,
    start: Start,
    ip: Ip,
    tunnel_ports: &PortSet,
    out: &mut Packet<'a>,
) -> Option<[u16; 2]> {
    if ip.len > frame.wire_len as usize - start.at {
        return None;
    }
    let len = ip.len.checked_sub(ip.header_len)?;
    let transport_offset = start.at + ip.header_len;
    let header = frame.data.get(transport_offset..)?;
    match ip.protocol {
        IpProtocol::TCP => {
            let fields = Tcp::read(header)?;
            let header_len = fields.header_len();
            // The general path handles options that the snap length truncated.
            if header_len < tcp::HEADER_LEN_MIN || header_len > len || header_len > header.len() {
                return None;
            }
            out.transport = Transport::Tcp;
            out.tcp = fields.segment();
            out.payload_offset = (transport_offset + header_len) as u32;
            out.payload_len = (len - header_len) as u32;
        }
        IpProtocol::UDP => {
            let fields = Udp::read(header)?;
            let udp_len = fields.len();
            // The general path determines whether there is a tunnel behind these ports.
            if udp_len < udp::HEADER_LEN
                || udp_len > len
                || tunnel_ports.has_any([fields.source_port(), fields.destination_port()])
            {
                return None;
            }
            out.transport = Transport::Udp;
            out.tcp = TcpSegment::default();
            out.payload_offset = (transport_offset + udp::HEADER_LEN) as u32;
            out.payload_len = (udp_len - udp::HEADER_LEN) as u32;
        }
        _ => return None,
    }
    out.timestamp = frame.timestamp;
    out.frame = frame.data;
    out.wire_len = frame.wire_len;
    out.interface = frame.interface;
    out.ip_len = ip.len as u32;
    out.ip_offset = start.at as u32;
    out.transport_offset = transport_offset as u32;
    ports(header)
}

#[inline(always)]
fn finish(added: Added, start: Start, key: FlowKey, side: Side, out: &mut Packet<'_>) {
    out.key = if added.vlan_ids { key.with_vlan_ids(start.vlan_ids) } else { key };
    out.side = side;
    out.mac_addresses = MacAddresses::ethernet(0);
    out.vlan_ids = start.vlan_ids;
    out.marks = PacketMarks::default();
}
