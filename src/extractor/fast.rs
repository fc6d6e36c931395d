//! The fast path: common frames, read in place.
//!
//! Gives a packet only where every length agrees and every header is captured whole; anything else is left to the
//! general path, so that there is one place for each rule about odd packets.

use super::{KeyPolicy, Packet, PacketMarks, Transport};
use crate::base::{EtherType, FlowKey, Frame, IpProtocol, LinkType, Side, VlanIds};
use crate::link::MacAddresses;
use crate::wire::tcp::{self, TcpSegment};
use crate::wire::{be16, be32, ethernet};

const IPV4_HEADER_LEN: usize = 20;
const IPV6_HEADER_LEN: usize = 40;
const UDP_HEADER_LEN: usize = 8;

/// VLAN tags that the fast path walks.
const VLAN_TAGS: usize = 2;

/// What the IP header says, as the transport part needs it.
struct Ip {
    protocol: IpProtocol,
    is_ipv6: bool,
    /// Octets of the packet by its length field.
    len: usize,
    header_len: usize,
    hop_limit: u8,
    traffic_class: u8,
}

#[inline(always)]
pub(super) fn packet<'a>(frame: &Frame<'a>, policy: &KeyPolicy) -> Option<Packet<'a>> {
    let data = frame.data;
    if frame.link_type != LinkType::ETHERNET
        || !policy.is_five_tuple()
        || data.len() > frame.wire_len as usize
    {
        return None;
    }
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
    match ether_type {
        EtherType::IPV4 => ipv4(frame, policy, at, vlan_ids),
        EtherType::IPV6 => ipv6(frame, policy, at, vlan_ids),
        _ => None,
    }
}

#[inline(always)]
fn ipv4<'a>(frame: &Frame<'a>, policy: &KeyPolicy, at: usize, vlan_ids: VlanIds) -> Option<Packet<'a>> {
    const VERSION_AND_LEN: u8 = 0x45;
    const MORE_FRAGMENTS_AND_OFFSET: u16 = 0x3fff;
    let header: &[u8; IPV4_HEADER_LEN] = frame.data.get(at..)?.first_chunk()?;
    if header[0] != VERSION_AND_LEN || be16(header, 6)? & MORE_FRAGMENTS_AND_OFFSET != 0 {
        return None;
    }
    let ip = Ip {
        protocol: IpProtocol(header[9]),
        is_ipv6: false,
        len: usize::from(be16(header, 2)?),
        header_len: IPV4_HEADER_LEN,
        hop_limit: header[8],
        traffic_class: header[1],
    };
    let (source, destination) = (be32(header, 12)?, be32(header, 16)?);
    let scope = policy.scope_of(frame);
    transport(frame, policy, at, vlan_ids, &ip, |ports| {
        FlowKey::ordered_v4(ip.protocol, (source, ports[0]), (destination, ports[1]), scope)
    })
}

#[inline(always)]
fn ipv6<'a>(frame: &Frame<'a>, policy: &KeyPolicy, at: usize, vlan_ids: VlanIds) -> Option<Packet<'a>> {
    let header: &[u8; IPV6_HEADER_LEN] = frame.data.get(at..)?.first_chunk()?;
    let payload_len = usize::from(be16(header, 4)?);
    if header[0] >> 4 != 6 || payload_len == 0 {
        return None;
    }
    let ip = Ip {
        protocol: IpProtocol(header[6]),
        is_ipv6: true,
        len: IPV6_HEADER_LEN + payload_len,
        header_len: IPV6_HEADER_LEN,
        hop_limit: header[7],
        traffic_class: header[0] << 4 | header[1] >> 4,
    };
    let address = |at: usize| header.get(at..at + 16)?.first_chunk().map(|bytes| u128::from_be_bytes(*bytes));
    let (source, destination) = (address(8)?, address(24)?);
    let scope = policy.scope_of(frame);
    transport(frame, policy, at, vlan_ids, &ip, |ports| {
        let (key, side) =
            FlowKey::ordered(ip.protocol, true, (source, ports[0]), (destination, ports[1]), true);
        (key.with_scope(scope), side)
    })
}

/// TCP or UDP behind an IP header at `at`, if all lengths agree.
#[inline(always)]
fn transport<'a>(
    frame: &Frame<'a>,
    policy: &KeyPolicy,
    at: usize,
    vlan_ids: VlanIds,
    ip: &Ip,
    key: impl Fn([u16; 2]) -> (FlowKey, Side),
) -> Option<Packet<'a>> {
    let transport_offset = at + ip.header_len;
    if ip.len > frame.wire_len as usize - at {
        return None;
    }
    let len = ip.len.checked_sub(ip.header_len)?;
    let header = frame.data.get(transport_offset..)?;
    let (transport, segment, header_len, payload_len) = match ip.protocol {
        IpProtocol::TCP => {
            let fields: &[u8; tcp::HEADER_LEN_MIN] = header.first_chunk()?;
            let header_len = tcp::header_len(fields)?;
            if header_len < tcp::HEADER_LEN_MIN || header_len > len {
                return None;
            }
            (Transport::Tcp, TcpSegment::read(fields)?, header_len, len - header_len)
        }
        IpProtocol::UDP => {
            let fields: &[u8; UDP_HEADER_LEN] = header.first_chunk()?;
            let udp_len = usize::from(be16(fields, 4)?);
            if udp_len < UDP_HEADER_LEN || udp_len > len {
                return None;
            }
            (Transport::Udp, TcpSegment::default(), UDP_HEADER_LEN, udp_len - UDP_HEADER_LEN)
        }
        _ => return None,
    };
    // Options that the capture cut off are the general path's business.
    if header.len() < header_len {
        return None;
    }
    let (mut key, side) = key([be16(header, 0)?, be16(header, 2)?]);
    if policy.vlan_ids {
        key = key.with_vlan_ids(vlan_ids);
    }
    debug_assert_eq!(key.is_ipv6(), ip.is_ipv6);
    Some(Packet {
        key,
        timestamp: frame.timestamp,
        frame: frame.data,
        wire_len: frame.wire_len,
        ip_len: ip.len as u32,
        payload_len: payload_len as u32,
        ip_offset: at as u32,
        transport_offset: transport_offset as u32,
        payload_offset: (transport_offset + header_len) as u32,
        interface: frame.interface,
        tcp: segment,
        mac_addresses: MacAddresses::Ethernet { offset: 0 },
        vlan_ids,
        side,
        transport,
        hop_limit: ip.hop_limit,
        traffic_class: ip.traffic_class,
        marks: PacketMarks::default(),
    })
}
