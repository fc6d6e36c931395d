//! The fast path: common frames, read in place.
//!
//! Gives a packet only where every length agrees and every header is captured whole; anything else is left to the
//! general path, so that there is one place for each rule about odd packets.

use super::{KeyPolicy, Packet, PacketMarks, Transport};
use crate::base::{EtherType, FlowKey, Frame, IpProtocol, LinkType, Side, VlanIds};
use crate::link::{MacAddresses, PortSet};
use crate::wire::tcp::{self, TcpSegment};
use crate::wire::{be16, be32, ethernet};

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
const UDP_HEADER_LEN: usize = 8;

/// VLAN tags that the fast path walks.
pub(super) const VLAN_TAGS: usize = 2;

/// Fills in `out` if the frame is a common one; otherwise leaves it half-written. Whether it did.
///
/// Writing each field in place as soon as it is known matters: a packet is two cache lines, and to gather it and copy
/// it costs more than to read the headers.
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
    // The most common frame and policy are the cheapest: all offsets are known to the compiler.
    let ether_type = EtherType(be16(data, ethernet::HEADER_LEN - 2)?);
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
    let mut ether_type = EtherType(be16(data, ethernet::HEADER_LEN - 2)?);
    let mut at = ethernet::HEADER_LEN;
    let mut vlan_ids = VlanIds::NONE;
    for _ in 0..VLAN_TAGS {
        if !ethernet::is_vlan(ether_type) {
            break;
        }
        vlan_ids = vlan_ids.push(be16(data, at)? & 0xfff);
        ether_type = EtherType(be16(data, at + 2)?);
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

/// What the policy adds to the five-tuple.
#[derive(Clone, Copy)]
struct Added {
    scope: u32,
    vlan_ids: bool,
}

/// Where the IP header begins, and behind which tags.
#[derive(Clone, Copy)]
struct Start {
    at: usize,
    vlan_ids: VlanIds,
}

impl Start {
    const UNTAGGED: Self = Self { at: ethernet::HEADER_LEN, vlan_ids: VlanIds::NONE };
}

/// What the transport part needs of the IP header.
#[derive(Clone, Copy)]
struct Ip {
    protocol: IpProtocol,
    /// Octets of the packet by its length field.
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
    const VERSION_AND_LEN: u8 = 0x45;
    const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;
    let header: &[u8; IPV4_HEADER_LEN] = frame.data.get(start.at..)?.first_chunk()?;
    if header[0] != VERSION_AND_LEN || be16(header, 6)? & MORE_FRAGMENTS_AND_OFFSET != 0 {
        return None;
    }
    let protocol = IpProtocol(header[9]);
    let ip = Ip { protocol, len: usize::from(be16(header, 2)?), header_len: IPV4_HEADER_LEN };
    out.hop_limit = header[8];
    out.traffic_class = header[1];
    let [source_port, destination_port] = read_transport(frame, start, ip, tunnel_ports, out)?;
    let source = (be32(header, 12)?, source_port);
    let destination = (be32(header, 16)?, destination_port);
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
    let header: &[u8; IPV6_HEADER_LEN] = frame.data.get(start.at..)?.first_chunk()?;
    let payload_len = usize::from(be16(header, 4)?);
    if header[0] >> 4 != 6 || payload_len == 0 {
        return None;
    }
    let protocol = IpProtocol(header[6]);
    let ip = Ip { protocol, len: IPV6_HEADER_LEN + payload_len, header_len: IPV6_HEADER_LEN };
    out.hop_limit = header[7];
    out.traffic_class = header[0] << 4 | header[1] >> 4;
    let [source_port, destination_port] = read_transport(frame, start, ip, tunnel_ports, out)?;
    let address = |at: usize| header.get(at..at + 16)?.first_chunk().map(|bytes| u128::from_be_bytes(*bytes));
    let (source, destination) = ((address(8)?, source_port), (address(24)?, destination_port));
    let (key, side) = FlowKey::ordered(protocol, true, source, destination, true);
    finish(added, start, key.with_scope(added.scope), side, out);
    Some(())
}

/// Reads TCP or UDP behind an IP header, if all lengths agree, and fills in all but the key. The ports.
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
            let fields: &[u8; tcp::HEADER_LEN_MIN] = header.first_chunk()?;
            let header_len = tcp::header_len(fields)?;
            // Options that the capture cut off are the general path's business.
            if header_len < tcp::HEADER_LEN_MIN || header_len > len || header_len > header.len() {
                return None;
            }
            out.transport = Transport::Tcp;
            out.tcp = TcpSegment::read(fields)?;
            out.payload_offset = (transport_offset + header_len) as u32;
            out.payload_len = (len - header_len) as u32;
        }
        IpProtocol::UDP => {
            let fields: &[u8; UDP_HEADER_LEN] = header.first_chunk()?;
            let udp_len = usize::from(be16(fields, 4)?);
            // Whether there is a tunnel behind these ports is the general path's business.
            if udp_len < UDP_HEADER_LEN
                || udp_len > len
                || tunnel_ports.has_any([be16(fields, 0)?, be16(fields, 2)?])
            {
                return None;
            }
            out.transport = Transport::Udp;
            out.tcp = TcpSegment::default();
            out.payload_offset = (transport_offset + UDP_HEADER_LEN) as u32;
            out.payload_len = (udp_len - UDP_HEADER_LEN) as u32;
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
    Some([be16(header, 0)?, be16(header, 2)?])
}

#[inline(always)]
fn finish(added: Added, start: Start, key: FlowKey, side: Side, out: &mut Packet<'_>) {
    out.key = if added.vlan_ids { key.with_vlan_ids(start.vlan_ids) } else { key };
    out.side = side;
    out.mac_addresses = MacAddresses::ethernet(0);
    out.vlan_ids = start.vlan_ids;
    out.marks = PacketMarks::default();
}
