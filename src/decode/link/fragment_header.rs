//! Fragment fields of IPv4 and IPv6 headers.

use etherparse::{IpAuthHeaderSlice, Ipv6FragmentHeaderSlice, Ipv6RawExtHeaderSlice};

use crate::base::{EtherType, IpProtocol, Limits};
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6;

/// Fragment fields of the IP header (RFC 791 section 3.1, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentHeader {
    /// Identification field of the datagram: 16 bits for IPv4, 32 bits for IPv6.
    pub(crate) identification: u32,
    /// Offset of the fragment in the datagram's payload, in octets.
    pub(crate) offset: u16,
    /// True if more fragments of the datagram follow.
    pub(crate) more_fragments: bool,
    /// Protocol of the payload according to this fragment; authentication headers are part of the payload.
    pub(crate) protocol: IpProtocol,
    /// Octets from the start of the IP header to the fragment's payload.
    pub(crate) payload_offset: usize,
    /// Octets that the length field of the whole packet counts in addition to the payload: an IPv4 header
    /// with its options, or the IPv6 extension headers in front of the fragment header.
    pub(crate) header_len: u16,
}

/// Returns the fragment fields of an IP packet, or `None` if the packet is not a fragment or its header is
/// truncated. `packet` starts with the IP header.
///
/// Linear in the number of IPv6 extension headers, at most `limits.ip_extension_count_max` of them.
#[must_use]
pub(crate) fn fragment_header(
    packet: &[u8],
    ether_type: EtherType,
    limits: &Limits,
) -> Option<FragmentHeader> {
    match ether_type {
        EtherType::IPV6 => ipv6(packet, limits),
        _ => ipv4(packet),
    }
}

fn ipv4(packet: &[u8]) -> Option<FragmentHeader> {
    let header = Ipv4::read(packet)?;
    let is_complete_header =
        header.header_len() >= ipv4::HEADER_LEN_MIN && packet.len() >= header.header_len();
    (is_complete_header && header.is_fragment()).then_some(FragmentHeader {
        identification: header.identification().into(),
        offset: header.fragment_offset(),
        more_fragments: header.has_more_fragments(),
        protocol: header.protocol(),
        payload_offset: header.header_len(),
        header_len: header.header_len() as u16,
    })
}

fn ipv6(packet: &[u8], limits: &Limits) -> Option<FragmentHeader> {
    let mut protocol = ipv6::next_header(packet)?;
    let mut at = ipv6::HEADER_LEN;
    for _ in 0..=limits.ip_extension_count_max {
        let rest = packet.get(at..)?;
        let (next, len) = match protocol {
            IpProtocol::HOP_BY_HOP | IpProtocol::IPV6_ROUTE | IpProtocol::IPV6_OPTS => {
                let header = Ipv6RawExtHeaderSlice::from_slice(rest).ok()?;
                (header.next_header(), header.slice().len())
            }
            IpProtocol::AH => {
                let header = IpAuthHeaderSlice::from_slice(rest).ok()?;
                (header.next_header(), header.slice().len())
            }
            IpProtocol::IPV6_FRAG => {
                let header = Ipv6FragmentHeaderSlice::from_slice(rest).ok()?;
                if header.is_fragmenting_payload() {
                    return Some(FragmentHeader {
                        identification: header.identification(),
                        offset: header.fragment_offset().value() << 3,
                        more_fragments: header.more_fragments(),
                        protocol: IpProtocol(header.next_header().0),
                        payload_offset: at + header.slice().len(),
                        header_len: u16::try_from(at - ipv6::HEADER_LEN).ok()?,
                    });
                }
                (header.next_header(), header.slice().len())
            }
            _ => return None,
        };
        protocol = IpProtocol(next.0);
        at += len;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_header_gives_the_fragment_offset() {
        let mut packet = [0; 28];
        packet[0] = 0x46;
        packet[4..8].copy_from_slice(&[0x12, 0x34, 0x20, 0xb9]);
        packet[9] = 17;
        let header = fragment_header(&packet, EtherType::IPV4, &Limits::DEFAULT).unwrap();
        assert_eq!((header.identification, header.offset, header.more_fragments), (0x1234, 1480, true));
        assert_eq!((header.protocol, header.payload_offset, header.header_len), (IpProtocol::UDP, 24, 24));
        // "Do not fragment" alone does not make a fragment; neither does a truncated header.
        packet[6..8].copy_from_slice(&[0x40, 0]);
        assert_eq!(fragment_header(&packet, EtherType::IPV4, &Limits::DEFAULT), None);
        packet[6..8].copy_from_slice(&[0x20, 0]);
        assert_eq!(fragment_header(&packet[..23], EtherType::IPV4, &Limits::DEFAULT), None);
    }

    #[test]
    fn an_ipv6_fragment_header_may_follow_other_extensions() {
        let mut packet = [0; 64];
        packet[0] = 0x60;
        packet[6] = 0;
        packet[40] = 44;
        packet[48..56].copy_from_slice(&[6, 0, 0x05, 0xa8, 0xde, 0xad, 0xbe, 0xef]);
        let header = fragment_header(&packet, EtherType::IPV6, &Limits::DEFAULT).unwrap();
        assert_eq!((header.identification, header.offset, header.more_fragments), (0xdead_beef, 1448, false));
        assert_eq!((header.protocol, header.payload_offset, header.header_len), (IpProtocol::TCP, 56, 8));
        // Atomic (RFC 6946): a whole packet.
        packet[50..52].copy_from_slice(&[0, 0]);
        assert_eq!(fragment_header(&packet, EtherType::IPV6, &Limits::DEFAULT), None);
    }
}
