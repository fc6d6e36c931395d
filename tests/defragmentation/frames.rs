//! IP packets as fragments and in tunnels, written octet by octet.

use etherparse::PacketBuilder;
use flowgauge::base::{Frame, LinkType, Timestamp};

pub(crate) const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const TUNNEL_ENDS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// Returns a UDP datagram in IPv4 or IPv6 with a payload that depends on the position.
pub(crate) fn udp(is_ipv6: bool, payload_len: usize) -> Vec<u8> {
    let payload = payload(payload_len);
    let mut packet = Vec::new();
    if is_ipv6 {
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(5000, 6000).write(&mut packet, &payload).unwrap();
    } else {
        PacketBuilder::ipv4(HOSTS[0], HOSTS[1], 64).udp(5000, 6000).write(&mut packet, &payload).unwrap();
    }
    packet
}

pub(crate) fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|position| (position * 7 + position / 251) as u8).collect()
}

/// Returns a TCP segment in IPv4.
pub(crate) fn tcp(payload_len: usize) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(HOSTS[0], HOSTS[1], 64).tcp(5000, 80, 1000, 4096).ack(7);
    let mut packet = Vec::new();
    builder.write(&mut packet, &payload(payload_len)).unwrap();
    packet
}

/// Encapsulates a packet in Ethernet, VXLAN, UDP, and IPv4.
pub(crate) fn vxlan(vni: u32, packet: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = vni.to_be_bytes();
    let ether_type = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    let inner = [&[8, 0, 0, 0, high, middle, low, 0], &MACS[1][..], &MACS[0], &ether_type, packet].concat();
    let mut outer = Vec::new();
    PacketBuilder::ipv4(TUNNEL_ENDS[0], TUNNEL_ENDS[1], 64)
        .udp(50_000, 4789)
        .write(&mut outer, &inner)
        .unwrap();
    outer
}

/// Splits a packet at the given offsets, in units of eight octets of its payload.
pub(crate) fn fragments(packet: &[u8], identification: u32, splits: &[usize]) -> Vec<Vec<u8>> {
    let header_len = if packet[0] >> 4 == 6 { 40 } else { 20 };
    let (header, payload) = packet.split_at(header_len);
    let mut offsets: Vec<_> =
        splits.iter().map(|offset| offset * 8).filter(|offset| (1..payload.len()).contains(offset)).collect();
    offsets.extend([0, payload.len()]);
    offsets.sort_unstable();
    offsets.dedup();
    let parts = offsets.windows(2).map(|ends| (ends[0], ends[1]));
    parts
        .map(|(from, to)| fragment(header, identification, from, to < payload.len(), &payload[from..to]))
        .collect()
}

/// Returns a fragment with an adjusted header.
pub(crate) fn fragment(header: &[u8], id: u32, offset: usize, more: bool, part: &[u8]) -> Vec<u8> {
    let mut header = header.to_vec();
    if header[0] >> 4 == 6 {
        let position = (offset as u16 | u16::from(more)).to_be_bytes();
        header[4..6].copy_from_slice(&(8 + part.len() as u16).to_be_bytes());
        let next = std::mem::replace(&mut header[6], 44);
        header.extend([next, 0, position[0], position[1]]);
        header.extend(id.to_be_bytes());
    } else {
        header[2..4].copy_from_slice(&(20 + part.len() as u16).to_be_bytes());
        header[4..6].copy_from_slice(&(id as u16).to_be_bytes());
        let position = (offset as u16 / 8) | if more { 0x2000 } else { 0 };
        header[6..8].copy_from_slice(&position.to_be_bytes());
    }
    header.extend(part);
    header
}

/// Returns a packet in an Ethernet frame.
pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&MACS[1][..], &MACS[0], &ether_type, packet].concat()
}

/// Returns a frame at a time in milliseconds.
pub(crate) fn frame(data: &[u8], millis: u64) -> Frame<'_> {
    Frame {
        timestamp: Timestamp::from_parts(1000 + millis / 1000, millis % 1000 * 1_000_000),
        link_type: LinkType::ETHERNET,
        data,
        wire_len: data.len() as u32,
        interface: 0,
    }
}
