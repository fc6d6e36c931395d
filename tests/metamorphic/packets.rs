//! Headers: where they are in a frame, and new ones around it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flowgauge::base::LinkType;

use super::capture::Owned;

const ETHERNET_LEN: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Longest packet that is put into another one.
const PACKET_LEN_MAX: usize = 60_000;

fn word(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]))
}

/// Returns the offset of the IP header in a frame of Ethernet, with any number of VLAN tags, or of raw IP.
pub(crate) fn ip_offset(frame: &Owned) -> Option<usize> {
    let data = &frame.data;
    let offset = match frame.link_type {
        LinkType::ETHERNET => {
            let mut at = 12;
            while matches!(word(data, at)?, 0x8100 | 0x88a8 | 0x9100) {
                at += 4;
            }
            matches!(word(data, at)?, IPV4 | IPV6).then_some(at + 2)?
        }
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => 0,
        _ => return None,
    };
    matches!(data.get(offset)? >> 4, 4 | 6).then_some(offset)
}

/// Returns a frame with a VLAN tag behind the addresses of Ethernet; `None` for other frames.
pub(crate) fn with_vlan_tag(frame: &Owned, id: u16) -> Option<Owned> {
    if frame.link_type != LinkType::ETHERNET || frame.data.len() < ETHERNET_LEN {
        return None;
    }
    let mut wrapped = frame.clone();
    let tag = [0x81, 0, (id >> 8) as u8, id as u8];
    wrapped.data.splice(12..12, tag);
    wrapped.wire_len += tag.len() as u32;
    Some(wrapped)
}

/// Returns a frame of Ethernet with IP as one with an MPLS label.
pub(crate) fn with_mpls_label(frame: &Owned) -> Option<Owned> {
    let is_direct = frame.link_type == LinkType::ETHERNET && ip_offset(frame) == Some(ETHERNET_LEN);
    is_direct.then(|| {
        let mut wrapped = frame.clone();
        // Label 100, bottom of the stack, TTL 64.
        wrapped.data.splice(12..14, [0x88, 0x47, 0, 6, 0x41, 64]);
        wrapped.wire_len += 4;
        wrapped
    })
}

/// Number of octets that [`in_udp`] adds in front of a frame, without the header of the tunnel.
const UDP_LEN: usize = ETHERNET_LEN + 20 + 8;

fn outer_ipv4(protocol: u8, payload_len: usize) -> Vec<u8> {
    let mut header = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2, 8, 0, 0x45, 0];
    header.extend(((20 + payload_len) as u16).to_be_bytes());
    header.extend([0, 0, 0, 0, 64, protocol, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2]);
    header
}

/// Returns a frame of Ethernet in a UDP datagram to a port, behind the header of a tunnel.
fn in_udp(frame: &Owned, port: u16, header: &[u8]) -> Option<Owned> {
    let len = header.len() + frame.wire_len as usize;
    if frame.link_type != LinkType::ETHERNET || len > PACKET_LEN_MAX {
        return None;
    }
    let mut data = outer_ipv4(17, 8 + len);
    for field in [50_000, port, (8 + len) as u16, 0] {
        data.extend(field.to_be_bytes());
    }
    data.extend_from_slice(header);
    data.extend_from_slice(&frame.data);
    Some(Owned { data, wire_len: frame.wire_len + (UDP_LEN + header.len()) as u32, ..frame.clone() })
}

pub(crate) fn in_vxlan(frame: &Owned) -> Option<Owned> {
    in_udp(frame, 4789, &[8, 0, 0, 0, 0, 0, 7, 0])
}

pub(crate) fn in_geneve(frame: &Owned) -> Option<Owned> {
    in_udp(frame, 6081, &[0, 0, 0x65, 0x58, 0, 0, 7, 0])
}

/// Returns a frame of Ethernet in GRE.
pub(crate) fn in_gre(frame: &Owned) -> Option<Owned> {
    let len = 4 + frame.wire_len as usize;
    if frame.link_type != LinkType::ETHERNET || len > PACKET_LEN_MAX {
        return None;
    }
    let mut data = outer_ipv4(47, len);
    data.extend([0, 0, 0x65, 0x58]);
    data.extend_from_slice(&frame.data);
    Some(Owned { data, wire_len: frame.wire_len + (ETHERNET_LEN + 20 + 4) as u32, ..frame.clone() })
}

/// Returns the two fragments of an IPv4 packet; `None` if it is a fragment, short, or not complete.
pub(crate) fn fragments(frame: &Owned) -> Option<[Owned; 2]> {
    let at = ip_offset(frame)?;
    let ip = frame.data.get(at..)?;
    if ip[0] >> 4 != 4 || !frame.is_complete() {
        return None;
    }
    let header_len = usize::from(ip[0] & 15) * 4;
    let total_len = usize::from(word(ip, 2)?);
    let is_fragment = word(ip, 6)? & 0x3fff != 0;
    if header_len < 20 || total_len > ip.len() || total_len < header_len + 24 || is_fragment {
        return None;
    }
    // Most of the packet is in the first fragment, with the header of the transport layer.
    let first_len = (total_len - header_len - 1) / 8 * 8;
    let part = |range: std::ops::Range<usize>, offset: usize, has_more: bool| {
        let mut data = frame.data[..at + header_len].to_vec();
        data.extend_from_slice(&ip[header_len..][range.clone()]);
        let word = (offset / 8) as u16 | u16::from(has_more) << 13;
        data[at + 2..at + 4].copy_from_slice(&((header_len + range.len()) as u16).to_be_bytes());
        data[at + 6..at + 8].copy_from_slice(&word.to_be_bytes());
        Owned { wire_len: data.len() as u32, data, ..frame.clone() }
    };
    let payload_len = total_len - header_len;
    Some([part(0..first_len, 0, true), part(first_len..payload_len, first_len, false)])
}

/// Gives the fragments of each packet another identification, as a host does.
pub(crate) fn set_identification(frame: &mut Owned, id: u16) {
    let at = ip_offset(frame).expect("a fragment");
    frame.data[at + 4..at + 6].copy_from_slice(&id.to_be_bytes());
}

/// Returns whether an address is one that both sides of a flow may have.
fn is_of_host(octets: &[u8]) -> bool {
    match (<[u8; 4]>::try_from(octets), <[u8; 16]>::try_from(octets)) {
        (Ok(octets), _) => is_host(Ipv4Addr::from(octets).into()),
        (_, Ok(octets)) => is_host(Ipv6Addr::from(octets).into()),
        _ => false,
    }
}

/// Returns whether an address is neither multicast nor broadcast nor unspecified.
pub(crate) fn is_host(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !address.is_multicast() && !address.is_unspecified() && !is_broadcast
}

/// Swaps the addresses in the outermost IP header of a frame if both are those of hosts, and in the header that an ICMP
/// error quotes.
pub(crate) fn swap_addresses(frame: &mut Owned) {
    let Some(at) = ip_offset(frame) else { return };
    let payload = swap_in(&mut frame.data, at);
    let Some((protocol, offset)) = payload else { return };
    let is_error = match (protocol, frame.data.get(offset)) {
        (1, Some(icmp_type)) => matches!(icmp_type, 3 | 4 | 5 | 11 | 12),
        (58, Some(icmp_type)) => matches!(icmp_type, 1..=4),
        _ => false,
    };
    if is_error {
        swap_in(&mut frame.data, offset + 8);
    }
}

/// Swaps the addresses in the IP header at an offset. Returns the protocol and the offset behind the header.
fn swap_in(data: &mut [u8], at: usize) -> Option<(u8, usize)> {
    let (first, len, protocol, end) = match data.get(at)? >> 4 {
        4 => (at + 12, 4, data.get(at + 9), at + usize::from(data[at] & 15) * 4),
        6 => (at + 8, 16, data.get(at + 6), at + 40),
        _ => return None,
    };
    let protocol = *protocol?;
    let addresses = data.get_mut(first..first + 2 * len)?;
    let (source, destination) = addresses.split_at_mut(len);
    if is_of_host(source) && is_of_host(destination) {
        source.swap_with_slice(destination);
    }
    Some((protocol, end))
}
