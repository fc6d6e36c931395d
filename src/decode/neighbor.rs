//! Recognizes frames with messages between neighbors on a link.

use super::link::{OtherPayload, Unsupported};
use crate::base::{
    EtherType, Frame, IpProtocol, MacAddresses, NeighborProtocol, Packet, PacketMarks, Transport,
};

/// EtherType of RARP (RFC 903).
const RARP: EtherType = EtherType(0x8035);
/// Destination service access point of the spanning tree in LLC.
const STP: u8 = 0x42;
/// Protocols of Cisco in SNAP.
const CDP: u16 = 0x2000;
const PVST: u16 = 0x010b;
/// UDP ports of HSRP, for both ends: for IPv4, and for IPv6.
pub(in crate::decode) const HSRP_PORTS: [u16; 2] = [1985, 2029];

/// Lengths of the headers of LLC before the messages of protocols with and without SNAP, in octets.
const LLC_LEN: usize = 3;
const SNAP_LEN: usize = 8;

/// Returns the protocol of a message in a payload without an IP packet, and the length of the headers before the message that
/// the walk has not passed.
const fn in_other(what: Unsupported) -> Option<(NeighborProtocol, usize)> {
    Some(match what {
        Unsupported::EtherType(EtherType::ARP) => (NeighborProtocol::Arp, 0),
        Unsupported::EtherType(RARP) => (NeighborProtocol::Rarp, 0),
        Unsupported::EtherType(EtherType::LLDP) => (NeighborProtocol::Lldp, 0),
        // CDP on serial lines.
        Unsupported::EtherType(EtherType(CDP)) => (NeighborProtocol::Cdp, 0),
        Unsupported::Llc(STP) => (NeighborProtocol::Stp, LLC_LEN),
        Unsupported::CiscoSnap(CDP) => (NeighborProtocol::Cdp, SNAP_LEN),
        Unsupported::CiscoSnap(PVST) => (NeighborProtocol::Stp, SNAP_LEN),
        _ => return None,
    })
}

/// Returns the message in a payload without an IP packet, as a packet without a key, whose transport header is the message.
pub(in crate::decode) fn message_in<'a>(
    frame: &Frame<'a>,
    other: &OtherPayload,
) -> Option<(NeighborProtocol, Packet<'a>)> {
    let (protocol, header_len) = in_other(other.what)?;
    if protocol == NeighborProtocol::Rarp && other.link.mac_addresses == MacAddresses::NONE {
        // Keepalives of serial lines have the same number.
        return None;
    }
    let at = u32::try_from(other.offset + header_len).ok()?;
    let packet = Packet {
        timestamp: frame.timestamp,
        frame: frame.data,
        wire_len: frame.wire_len,
        interface: frame.interface,
        transport_offset: at,
        payload_offset: at,
        payload_len: u32::try_from(other.len.saturating_sub(header_len)).unwrap_or(u32::MAX),
        mac_addresses: other.link.mac_addresses,
        vlan_ids: other.link.vlan_ids,
        ..Packet::EMPTY
    };
    Some((protocol, packet))
}

/// Marks a packet if it, or a tunnel in it, contains a message between neighbors.
#[inline]
pub(in crate::decode) fn mark(packet: &mut Packet<'_>, other: Option<&OtherPayload>) {
    if other.is_some() || !matches!(packet.transport, Transport::Tcp | Transport::TcpPorts) {
        mark_other(packet, other);
    }
}

/// Marks a packet that is not TCP, or that a tunnel contains.
#[inline(never)]
fn mark_other(packet: &mut Packet<'_>, other: Option<&OtherPayload>) {
    if neighbor_protocol(packet).is_some() || other.is_some_and(|other| in_other(other.what).is_some()) {
        packet.marks = packet.marks.with(PacketMarks::NEIGHBOR, true);
    }
}

/// Returns the protocol of a packet with a message between neighbors. Fragments have none.
#[inline]
pub(in crate::decode) fn neighbor_protocol(packet: &Packet<'_>) -> Option<NeighborProtocol> {
    match packet.transport {
        Transport::Tcp | Transport::TcpPorts => None,
        Transport::Udp => {
            let is_hsrp = |side| packet.key.port(side).is_some_and(|port| HSRP_PORTS.contains(&port));
            let is_whole = !packet.marks.contains(PacketMarks::FRAGMENT);
            (is_hsrp(packet.side.other()) && is_hsrp(packet.side) && is_whole)
                .then_some(NeighborProtocol::Hsrp)
        }
        _ => in_ip(packet),
    }
}

#[cold]
fn in_ip(packet: &Packet<'_>) -> Option<NeighborProtocol> {
    if packet.marks.contains(PacketMarks::FRAGMENT) {
        return None;
    }
    match packet.key.protocol() {
        IpProtocol::ICMPV6 => match packet.transport_bytes().first()? {
            130..=132 | 143 => Some(NeighborProtocol::Mld),
            133..=137 => Some(NeighborProtocol::Ndp),
            _ => None,
        },
        IpProtocol::IGMP => Some(NeighborProtocol::Igmp),
        IpProtocol::VRRP => Some(NeighborProtocol::Vrrp),
        _ => None,
    }
}
