//! Checksums of the packet in a frame: IPv4 header, TCP, UDP.

use super::IpPacket;
use crate::base::IpProtocol;
use crate::wire::checksum::{fold, pseudo_header_sum, sum};
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6_extension::Extension;
use crate::wire::{ipv6, tcp, udp};

/// Result of verifying a checksum.
///
/// A network card that computes checksums receives packets whose fields are not filled in, and a capture on
/// the sending host contains them in that form: [`Zero`](Self::Zero) and [`Partial`](Self::Partial) do not
/// indicate corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Checksum {
    /// No checksum: IPv6 has no header checksum, and protocols other than TCP and UDP are not verified.
    None,
    /// The checksum matches the octets.
    Right,
    /// The packet is UDP over IPv4 and was sent without a checksum (RFC 768).
    Absent,
    /// The checksum field is zero where zero is not valid: the network card computes the checksum. In UDP
    /// over IPv6, the sender may also be a tunnel that uses no checksum (RFC 6935).
    Zero,
    /// The checksum field holds the sum of the pseudo-header alone; the network card computes the rest.
    Partial,
    /// The checksum does not match.
    Wrong,
    /// The checksum cannot be verified: some of the octets are missing (truncated by a snap length, or in
    /// another fragment), or a length field is wrong.
    Unknown,
}

/// Results of verifying the checksums of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checksums {
    /// Result of verifying the checksum of the IPv4 header.
    pub header: Checksum,
    /// Result of verifying the checksum of TCP or UDP.
    pub transport: Checksum,
}

impl Checksums {
    /// Returns whether the checksum of the IPv4 header or of the transport is wrong, which indicates
    /// corruption.
    #[must_use]
    pub(crate) fn is_wrong(&self) -> bool {
        self.header == Checksum::Wrong || self.transport == Checksum::Wrong
    }
}

/// Verifies the checksums of the packet that was found in `frame`. The pseudo-header contains the addresses
/// of the endpoints: the last destination of a source route or of a routing header of type 0, 2 or 4, and the
/// home address (RFC 6275). Linear in the length of the packet, without allocation.
///
/// A checksum field counts as a partial sum if it matches the pseudo-header with the segment's length, or
/// with a length of zero as for segmentation offload; two of 65,536 corrupted fields match by chance.
#[must_use]
pub fn checksums(frame: &[u8], found: &IpPacket) -> Checksums {
    let packet = frame.get(found.offset..).unwrap_or_default();
    Checksums { header: header(packet, found), transport: transport(packet, found) }
}

fn header(packet: &[u8], found: &IpPacket) -> Checksum {
    if found.ip.is_ipv6 {
        return Checksum::None;
    }
    let len = ipv4::header_len(packet).unwrap_or_default();
    let (Some(header), Some(fields)) = (packet.get(..len), Ipv4::read(packet)) else {
        return Checksum::Unknown;
    };
    match fields.checksum() {
        _ if fold(sum(header)) == 0xffff => Checksum::Right,
        0 => Checksum::Zero,
        _ => Checksum::Wrong,
    }
}

fn transport(packet: &[u8], found: &IpPacket) -> Checksum {
    let ip = &found.ip;
    let captured = packet.get(ip.header_len..ip.len.min(packet.len())).unwrap_or_default();
    let (field, len_min) = match ip.protocol {
        IpProtocol::TCP | IpProtocol::UDP if ip.is_later_fragment => return Checksum::Unknown,
        IpProtocol::TCP => (tcp::checksum(captured), tcp::CHECKSUM_END),
        IpProtocol::UDP => (udp::checksum(captured), udp::CHECKSUM_END),
        _ => return Checksum::None,
    };
    let Some(field) = field else { return Checksum::Unknown };
    let is_udp = ip.protocol == IpProtocol::UDP;
    if is_udp && field == 0 {
        return if ip.is_ipv6 { Checksum::Zero } else { Checksum::Absent };
    }
    // Without a length, the packet ends where the frame does, which may be too late.
    let has_ip_len = !ip.is_without_len();
    let (len, has_len) = match udp::len(captured).unwrap_or_default() {
        // A length of zero indicates a jumbogram (RFC 2675), or is left to the network card.
        len if is_udp => (if len != 0 { len } else { ip.len - ip.header_len.min(ip.len) }, len != 0),
        _ => (ip.len - ip.header_len.min(ip.len), has_ip_len),
    };
    let segment = match captured.get(..len) {
        Some(segment) if !ip.is_fragment && !ip.is_truncated && len >= len_min => segment,
        _ => return Checksum::Unknown,
    };
    let Some((source, destination)) = ends(packet, found) else { return Checksum::Unknown };
    let pseudo = pseudo_header_sum(source, destination, ip.protocol);
    let len = segment.len() as u64;
    match field {
        _ if fold(pseudo + len + sum(segment)) == 0xffff => Checksum::Right,
        0 => Checksum::Zero,
        _ if field == fold(pseudo + len) || field == fold(pseudo) => Checksum::Partial,
        _ if !has_len => Checksum::Unknown,
        _ => Checksum::Wrong,
    }
}

/// Returns the source and the final destination of a packet, as in the pseudo-header. With a routing header,
/// the destination is the last address in that header (RFC 8200 section 8.1); with a home address option, the
/// source is the home address (RFC 6275 section 6.3).
fn ends(packet: &[u8], found: &IpPacket) -> Option<(u128, u128)> {
    let (mut source, mut destination) = (found.ip.source, found.ip.destination);
    if !found.ip.is_ipv6 {
        let end = ipv4::source_route_end(ipv4::options(packet)?);
        return Some((source, end.map_or(destination, u128::from)));
    }
    let mut protocol = ipv6::next_header(packet)?;
    let mut at = ipv6::HEADER_LEN;
    while at < found.ip.header_len {
        let header = Extension::read(protocol, packet.get(at..found.ip.header_len)?)?;
        destination = header.last_segment(destination)?;
        source = header.home_address().unwrap_or(source);
        protocol = header.next_header;
        at += header.len();
    }
    Some((source, destination))
}
