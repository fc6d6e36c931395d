//! Checksums of a packet that was found: IPv4 header, TCP, UDP.

use super::IpPacket;
use crate::base::IpProtocol;
use crate::wire::be16;
use crate::wire::checksum::{fold, sum};

/// What a checksum says.
///
/// A network card that computes checksums gets packets whose fields are not filled in, and a capture on the sending host
/// shows them so: [`Zero`](Self::Zero) and [`Partial`](Self::Partial) are no sign of corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Checksum {
    /// There is none: IPv6 has no header checksum, and other protocols than TCP and UDP are not looked at.
    None,
    /// It agrees with the octets.
    Right,
    /// UDP over IPv4 that was sent without one (RFC 768).
    Absent,
    /// The field is zero where it must not be: left to the network card; in UDP over IPv6 also a tunnel's (RFC 6935).
    Zero,
    /// The field holds the sum of the pseudo-header alone: the rest is left to the network card.
    Partial,
    /// It does not agree.
    Wrong,
    /// Not all of the octets are there: cut by a snap length, or a fragment; or a length field is wrong.
    Unknown,
}

/// The checksums of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checksums {
    /// That of the IPv4 header.
    pub header: Checksum,
    /// That of TCP or UDP.
    pub transport: Checksum,
}

impl Checksums {
    /// Whether one of them shows corruption.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.header == Checksum::Wrong || self.transport == Checksum::Wrong
    }
}

/// Verifies the checksums of the packet that was found in `frame`. The addresses that count are those of the ends: behind
/// a source route or a routing header of type 0, 2 or 4 the last destination, and the home address (RFC 6275). Linear in the length of the packet, without allocation.
///
/// A partial sum is taken for one with the segment's length in the pseudo-header, or with zero as for segmentation offload;
/// two of 65,536 corrupted fields look so.
#[must_use]
pub fn checksums<E>(frame: &[u8], found: &IpPacket<E>) -> Checksums {
    let packet = frame.get(found.offset..).unwrap_or_default();
    Checksums { header: header(packet, found), transport: transport(packet, found) }
}

fn header<E>(packet: &[u8], found: &IpPacket<E>) -> Checksum {
    const FIELD: usize = 10;
    if found.ip.is_ipv6 {
        return Checksum::None;
    }
    let len = usize::from(packet.first().map_or(0, |octet| octet & 0xf)) * 4;
    let (Some(header), Some(field)) = (packet.get(..len), be16(packet, FIELD)) else {
        return Checksum::Unknown;
    };
    match field {
        _ if fold(sum(header)) == 0xffff => Checksum::Right,
        0 => Checksum::Zero,
        _ => Checksum::Wrong,
    }
}

fn transport<E>(packet: &[u8], found: &IpPacket<E>) -> Checksum {
    const TCP_FIELD: usize = 16;
    const UDP_FIELD: usize = 6;
    let ip = &found.ip;
    let field_at = match ip.protocol {
        IpProtocol::TCP | IpProtocol::UDP if ip.is_later_fragment => return Checksum::Unknown,
        IpProtocol::TCP => TCP_FIELD,
        IpProtocol::UDP => UDP_FIELD,
        _ => return Checksum::None,
    };
    let captured = packet.get(ip.header_len..ip.len.min(packet.len())).unwrap_or_default();
    let Some(field) = be16(captured, field_at) else { return Checksum::Unknown };
    let is_udp = ip.protocol == IpProtocol::UDP;
    if is_udp && field == 0 {
        return if ip.is_ipv6 { Checksum::Zero } else { Checksum::Absent };
    }
    // Without a length the packet ends where the frame does, which may be too late.
    let has_ip_len = !ip.is_without_len();
    let (len, has_len) = match be16(captured, 4).map_or(0, usize::from) {
        // A length of zero is a jumbogram's (RFC 2675), or left to the network card.
        len if is_udp => (if len != 0 { len } else { ip.len - ip.header_len.min(ip.len) }, len != 0),
        _ => (ip.len - ip.header_len.min(ip.len), has_ip_len),
    };
    let segment = match captured.get(..len) {
        Some(segment) if !ip.is_fragment && !ip.is_cut && len >= field_at + 2 => segment,
        _ => return Checksum::Unknown,
    };
    let Some((source, destination)) = ends(packet, found) else { return Checksum::Unknown };
    let addresses = sum(&source.to_be_bytes()) + sum(&destination.to_be_bytes());
    let pseudo = addresses + u64::from(ip.protocol.0);
    let len = segment.len() as u64;
    match field {
        _ if fold(pseudo + len + sum(segment)) == 0xffff => Checksum::Right,
        0 => Checksum::Zero,
        _ if field == fold(pseudo + len) || field == fold(pseudo) => Checksum::Partial,
        _ if !has_len => Checksum::Unknown,
        _ => Checksum::Wrong,
    }
}

/// Whom the packet is from and where it is to arrive in the end: with a routing header, its last address (RFC 8200 section
/// 8.1); with a home address option, that one (RFC 6275 section 6.3).
fn ends<E>(packet: &[u8], found: &IpPacket<E>) -> Option<(u128, u128)> {
    const IPV4_HEADER_LEN: usize = 20;
    const IPV6_HEADER_LEN: usize = 40;
    let (mut source, mut destination) = (found.ip.source, found.ip.destination);
    if !found.ip.is_ipv6 {
        let options_end = usize::from(packet.first()? & 0xf) * 4;
        let options = packet.get(IPV4_HEADER_LEN..options_end)?;
        return Some((source, source_route_end(options).unwrap_or(destination)));
    }
    let mut protocol = IpProtocol(*packet.get(6)?);
    let mut at = IPV6_HEADER_LEN;
    while at < found.ip.header_len {
        let header = packet.get(at..found.ip.header_len)?;
        let (next, units) = (*header.first()?, usize::from(*header.get(1)?));
        let len = match protocol {
            IpProtocol::IPV6_FRAG => 8,
            IpProtocol::AH => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        let header = header.get(..len)?;
        match protocol {
            IpProtocol::IPV6_ROUTE => destination = last_segment(header, destination)?,
            IpProtocol::IPV6_OPTS => source = home_address(header).unwrap_or(source),
            _ => {}
        }
        protocol = IpProtocol(next);
        at += len;
    }
    Some((source, destination))
}

/// Where an IPv4 source route leads (RFC 791 section 3.1), unless it is over or there is none.
fn source_route_end(mut options: &[u8]) -> Option<u128> {
    const END: u8 = 0;
    const NOP: u8 = 1;
    const LOOSE_ROUTE: u8 = 131;
    const STRICT_ROUTE: u8 = 137;
    loop {
        let (kind, len) = match *options {
            [] | [END, ..] => return None,
            [NOP, ref rest @ ..] => {
                options = rest;
                continue;
            }
            [kind, len, ..] if len >= 2 => (kind, usize::from(len)),
            _ => return None,
        };
        let option = options.get(..len)?;
        if matches!(kind, LOOSE_ROUTE | STRICT_ROUTE) {
            let is_over = usize::from(*option.get(2)?) > len;
            let last = option.get(3..)?.last_chunk().map(|octets| u32::from_be_bytes(*octets).into());
            return last.filter(|_| !is_over);
        }
        options = options.get(len..)?;
    }
}

/// Where a routing header leads: to the destination itself when no segments are left.
fn last_segment(header: &[u8], destination: u128) -> Option<u128> {
    let addresses = header.get(8..)?;
    let last = match (*header.get(2)?, *header.get(3)?) {
        (_, 0) => return Some(destination),
        // In the order of the way (RFC 2460 section 4.4, RFC 6275 section 6.4).
        (0 | 2, _) => addresses.last_chunk(),
        // Segments stand in reverse order (RFC 8754 section 2).
        (4, _) => addresses.first_chunk(),
        _ => None,
    };
    last.map(|octets| u128::from_be_bytes(*octets))
}

/// The home address among destination options.
fn home_address(header: &[u8]) -> Option<u128> {
    const PAD1: u8 = 0;
    const HOME_ADDRESS: u8 = 201;
    let mut options = header.get(2..)?;
    loop {
        options = match *options {
            [PAD1, ref rest @ ..] => rest,
            [HOME_ADDRESS, 16, ref rest @ ..] => return rest.first_chunk().map(|o| u128::from_be_bytes(*o)),
            [_, len, ref rest @ ..] => rest.get(usize::from(len)..)?,
            _ => return None,
        };
    }
}
