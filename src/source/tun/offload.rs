//! Segmentation offload: segments of a super-packet, and checksums that the kernel leaves to the device.

use crate::base::{EtherType, IpProtocol};
use crate::wire::virtio_net::{Segmentation, VirtioNet};
use crate::wire::{checksum, ethernet, ip, ipv4, ipv6, set_be16, tcp, udp};

/// Position and size of the segments of a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SuperPacket {
    segmentation: Segmentation,
    /// Offset of the IP header.
    ip_offset: usize,
    /// Offset of the transport header.
    transport_offset: usize,
    /// Octets of all headers, which each segment repeats.
    header_len: usize,
    /// Octets of payload in each segment but the last.
    segment_len: usize,
    segment_count: usize,
}

impl SuperPacket {
    /// Returns the segments of a packet with the given virtio-net header. Returns `None` if the packet is a single
    /// segment, or if its headers contradict the virtio-net header; such a packet counts as one.
    pub(crate) fn new(packet: &[u8], header: &VirtioNet, is_ethernet: bool) -> Option<Self> {
        let segmentation = header.segmentation?;
        let (transport_offset, _) = header.checksum?;
        let transport = packet.get(transport_offset..)?;
        let transport_len = match segmentation {
            Segmentation::Tcp => tcp::header_len(transport).filter(|len| *len >= tcp::HEADER_LEN_MIN)?,
            Segmentation::Udp => udp::HEADER_LEN,
        };
        let header_len = transport_offset + transport_len;
        let payload_len = packet.len().checked_sub(header_len)?;
        let segment_count = payload_len.checked_add(header.segment_len)?.checked_sub(1)?;
        let segment_count = segment_count.checked_div(header.segment_len)?;
        let ip_offset = if is_ethernet { ip_offset(packet)? } else { 0 };
        if segment_count < 2 || ip_offset >= transport_offset {
            return None;
        }
        let segment_len = header.segment_len;
        Some(Self { segmentation, ip_offset, transport_offset, header_len, segment_len, segment_count })
    }

    /// Returns the octets that all segments have together, each with its headers. `len` is the length of the
    /// super-packet.
    pub(crate) const fn wire_len(&self, len: usize) -> usize {
        len + (self.segment_count - 1) * self.header_len
    }

    /// Calls `each` with the segments of a super-packet in order. Each segment is complete, with lengths and checksums,
    /// in `buffer`, which is cleared and reused. Allocates only until the buffer has the size of a segment. Returns `None` if a header is inconsistent; no segment was
    /// passed to `each` then.
    pub(crate) fn split<E>(
        &self,
        packet: &[u8],
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        let headers = packet.get(..self.header_len)?;
        let payload = packet.get(self.header_len..)?;
        let version = ip::ether_type(headers.get(self.ip_offset..)?)?;
        let mut octet_count = 0_usize;
        for (number, part) in payload.chunks(self.segment_len).enumerate() {
            let is_last = number + 1 == self.segment_count;
            buffer.clear();
            buffer.extend_from_slice(headers);
            buffer.extend_from_slice(part);
            let network = buffer.get_mut(self.ip_offset..)?;
            let total_len = network.len();
            let transport_at = self.transport_offset - self.ip_offset;
            let transport_len = total_len.checked_sub(transport_at)?;
            match version {
                EtherType::IPV4 => {
                    ipv4::set_segment(network, u16::try_from(total_len).ok()?, number as u16);
                }
                _ => {
                    let payload_len = u16::try_from(total_len.checked_sub(ipv6::HEADER_LEN)?).ok()?;
                    ipv6::set_payload_len(network, payload_len);
                }
            }
            let (addresses, protocol) = pseudo_header(network, version, self.segmentation)?;
            let transport = network.get_mut(transport_at..)?;
            let field = match self.segmentation {
                Segmentation::Tcp => {
                    tcp::set_segment(transport, octet_count as u32, is_last);
                    tcp::CHECKSUM_END - 2
                }
                Segmentation::Udp => {
                    udp::set_len(transport, u16::try_from(transport_len).ok()?);
                    udp::CHECKSUM_END - 2
                }
            };
            set_be16(transport, field, 0);
            let sum = addresses + u64::from(protocol.0) + transport_len as u64 + checksum::sum(transport);
            set_be16(transport, field, transmitted(!checksum::fold(sum), self.segmentation));
            octet_count += part.len();
            if let Err(error) = each(buffer) {
                return Some(Err(error));
            }
        }
        Some(Ok(()))
    }
}

/// Completes the checksum of a packet, whose field contains the sum of the pseudo-header: `start` is the offset of the
/// transport header, and `offset` that of the checksum behind it. Returns whether the positions are within the packet.
pub(crate) fn complete_checksum(packet: &mut [u8], (start, offset): (usize, usize)) -> bool {
    let Some(transport) = packet.get_mut(start..) else { return false };
    if offset.saturating_add(2) > transport.len() {
        return false;
    }
    let segmentation = if offset == udp::CHECKSUM_END - 2 { Segmentation::Udp } else { Segmentation::Tcp };
    let value = transmitted(!checksum::fold(checksum::sum(transport)), segmentation);
    set_be16(transport, offset, value);
    true
}

/// Returns the value of a checksum field: UDP transmits zero as 0xffff (RFC 768).
const fn transmitted(checksum: u16, segmentation: Segmentation) -> u16 {
    match segmentation {
        Segmentation::Udp if checksum == 0 => u16::MAX,
        _ => checksum,
    }
}

fn pseudo_header(
    network: &[u8],
    version: EtherType,
    segmentation: Segmentation,
) -> Option<(u64, IpProtocol)> {
    let addresses = match version {
        EtherType::IPV4 => checksum::sum(ipv4::addresses(network)?),
        _ => checksum::sum(ipv6::addresses(network)?),
    };
    let protocol = match segmentation {
        Segmentation::Tcp => IpProtocol::TCP,
        Segmentation::Udp => IpProtocol::UDP,
    };
    Some((addresses, protocol))
}

/// Returns the offset of the IP header in an Ethernet frame with up to two VLAN tags; `None` if there is none.
pub(crate) fn ip_offset(frame: &[u8]) -> Option<usize> {
    let mut offset = ethernet::HEADER_LEN;
    let mut ether_type = ethernet::ether_type(frame)?;
    for _ in 0..2 {
        if !ethernet::is_vlan(ether_type) {
            break;
        }
        ether_type = ethernet::vlan_tag(frame.get(offset..)?)?.ether_type;
        offset += ethernet::VLAN_TAG_LEN;
    }
    matches!(ether_type, EtherType::IPV4 | EtherType::IPV6).then_some(offset)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;

    fn tcp_packet(is_ipv6: bool, is_ethernet: bool, payload: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        let link = [[2; 6], [4; 6]];
        macro_rules! ip {
            ($builder:expr) => {
                match is_ipv6 {
                    true => $builder.ipv6([1; 16], [2; 16], 9),
                    false => $builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9),
                }
                .tcp(1000, 2000, u32::MAX - 1000, 512)
                .psh()
                .fin()
                .ack(5)
                .options_raw(&[1; 12])
                .unwrap()
                .write(&mut octets, payload)
                .unwrap()
            };
        }
        match is_ethernet {
            true => ip!(PacketBuilder::ethernet2(link[0], link[1])),
            false if is_ipv6 => PacketBuilder::ipv6([1; 16], [2; 16], 9)
                .tcp(1000, 2000, u32::MAX - 1000, 512)
                .psh()
                .fin()
                .ack(5)
                .options_raw(&[1; 12])
                .unwrap()
                .write(&mut octets, payload)
                .unwrap(),
            false => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9)
                .tcp(1000, 2000, u32::MAX - 1000, 512)
                .psh()
                .fin()
                .ack(5)
                .options_raw(&[1; 12])
                .unwrap()
                .write(&mut octets, payload)
                .unwrap(),
        }
        octets
    }

    fn header(transport_offset: usize, segment_len: usize) -> VirtioNet {
        VirtioNet {
            segmentation: Some(Segmentation::Tcp),
            segment_len,
            checksum: Some((transport_offset, 16)),
        }
    }

    proptest! {
        #[test]
        fn segments_repeat_headers_and_have_right_checksums(
            is_ipv6: bool,
            is_ethernet: bool,
            payload in prop::collection::vec(any::<u8>(), 2..9000),
            segment_len in 1_usize..3000,
        ) {
            let packet = tcp_packet(is_ipv6, is_ethernet, &payload);
            let ip_at = if is_ethernet { 14 } else { 0 };
            let transport_at = ip_at + if is_ipv6 { 40 } else { 20 };
            let segments = SuperPacket::new(&packet, &header(transport_at, segment_len), is_ethernet);
            let Some(segments) = segments else {
                prop_assert!(payload.len() <= segment_len);
                return Ok(());
            };
            let (mut joined, mut wire_len, mut count) = (Vec::new(), 0, 0);
            let result = segments.split(&packet, &mut Vec::new(), |segment| {
                wire_len += segment.len();
                let sliced = match is_ethernet {
                    true => SlicedPacket::from_ethernet(segment),
                    false => SlicedPacket::from_ip(segment),
                }
                .expect("lengths are consistent");
                let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("TCP") };
                let seq = (u32::MAX - 1000).wrapping_add((count * segment_len) as u32);
                assert_eq!(tcp.sequence_number(), seq);
                count += 1;
                let is_last = joined.len() + tcp.payload().len() == payload.len();
                assert_eq!((tcp.fin(), tcp.psh()), (is_last, is_last));
                let checksum = match &sliced.net {
                    Some(etherparse::NetSlice::Ipv4(ip)) => {
                        let header = ip.header();
                        assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
                        tcp.calc_checksum_ipv4(header.source(), header.destination())
                    }
                    Some(etherparse::NetSlice::Ipv6(ip)) => {
                        tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
                    }
                    _ => panic!("IP"),
                };
                assert_eq!(checksum.unwrap(), tcp.checksum());
                joined.extend_from_slice(tcp.payload());
                Ok::<_, Infallible>(())
            });
            prop_assert_eq!(result, Some(Ok(())));
            prop_assert_eq!(joined, payload);
            prop_assert_eq!(wire_len, segments.wire_len(packet.len()));
            prop_assert_eq!(count, segments.segment_count);
        }

        #[test]
        fn any_octets_are_split_without_panic(
            packet in prop::collection::vec(any::<u8>(), 0..300),
            transport_offset in 0_usize..300,
            segment_len in 0_usize..20,
            is_udp: bool,
            is_ethernet: bool,
        ) {
            let segmentation = if is_udp { Segmentation::Udp } else { Segmentation::Tcp };
            let header = VirtioNet { segmentation: Some(segmentation), ..header(transport_offset, segment_len) };
            let mut octet_count = 0;
            if let Some(segments) = SuperPacket::new(&packet, &header, is_ethernet) {
                segments.split(&packet, &mut Vec::new(), |segment| {
                    octet_count += segment.len();
                    Ok::<_, Infallible>(())
                });
                prop_assert!(octet_count <= segments.wire_len(packet.len()));
            }
            complete_checksum(&mut packet.clone(), (transport_offset, segment_len));
        }
    }

    #[test]
    fn partial_checksums_are_completed() {
        let complete = tcp_packet(false, false, b"payload");
        let mut partial = complete.clone();
        let sum = checksum::sum(&partial[12..20]) + 6 + (partial.len() - 20) as u64;
        set_be16(&mut partial, 36, checksum::fold(sum));
        assert!(complete_checksum(&mut partial, (20, 16)));
        assert_eq!(partial, complete);
        assert!(!complete_checksum(&mut partial, (20, usize::MAX)));
        assert!(!complete_checksum(&mut partial, (200, 16)));
    }
}
