//! Records the headers around the packets in a frame.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::IpPacket;
use crate::base::{EncapsulationHeader, HeaderKind};
use crate::wire::ip::is_ipv6;
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::Ipv6;

/// Position of an outer header in a frame. `Copy`, 12 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeaderPosition {
    pub(crate) kind: HeaderKind,
    /// Octets from the start of the frame to the header.
    pub(crate) offset: u32,
    /// Identifier in the header, such as a VLAN id or an MPLS label; its meaning depends on the kind of
    /// header.
    pub(crate) id: u32,
}

impl HeaderPosition {
    /// Returns the outer header at this position of a frame; for IP, with its addresses if they were
    /// captured.
    pub(crate) fn header(&self, frame: &[u8]) -> EncapsulationHeader {
        if self.kind != HeaderKind::Ip {
            return EncapsulationHeader::new(self.kind, self.id);
        }
        let data = frame.get(self.offset as usize..).unwrap_or_default();
        let ends: Option<(IpAddr, IpAddr)> = if is_ipv6(data) {
            Ipv6::read(data).map(|ip| {
                (Ipv6Addr::from_bits(ip.source()).into(), Ipv6Addr::from_bits(ip.destination()).into())
            })
        } else {
            Ipv4::read(data).map(|ip| {
                (Ipv4Addr::from_bits(ip.source()).into(), Ipv4Addr::from_bits(ip.destination()).into())
            })
        };
        match ends {
            Some((source, destination)) => EncapsulationHeader::ip(source, destination),
            None => EncapsulationHeader::new(HeaderKind::Ip, 0),
        }
    }
}

/// Receives the outer headers that a walk over a frame reads. The implementation for `()` ignores them, which
/// avoids writing them.
///
/// A walk may read headers that lead to no packet; only headers around a packet that was found are kept.
pub(crate) trait HeaderRecorder {
    /// Clears the headers that an earlier walk recorded.
    fn begin(&mut self);

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32);

    /// Marks the headers recorded so far as the headers around a packet that was found.
    fn settle(&mut self);

    /// Returns whether [`keep`](Self::keep) is to be called for each IP packet of the frame.
    fn keeps_packets(&self) -> bool {
        false
    }

    /// Records an IP packet that the walk just found, with the number of headers around it.
    fn keep(&mut self, _packet: IpPacket) {}

    /// Removes the headers that were recorded after the last packet that was found.
    fn finish(&mut self);
}

impl HeaderRecorder for () {
    fn begin(&mut self) {}

    fn push(&mut self, _kind: HeaderKind, _offset: usize, _id: u32) {}

    fn settle(&mut self) {}

    fn finish(&mut self) {}
}

/// Ignores the headers of a walk, as `()` does. With a type of its own, the walk of
/// [`decapsulate`](super::decapsulate) is a separate instance, so that the instance for `()` has one caller, the
/// general path of the extractor, and is inlined into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unrecorded;

impl HeaderRecorder for Unrecorded {
    fn begin(&mut self) {}

    fn push(&mut self, _kind: HeaderKind, _offset: usize, _id: u32) {}

    fn settle(&mut self) {}

    fn finish(&mut self) {}
}

/// Positions of the headers around the innermost packet of a frame, and the outer IP packets. Its memory is
/// reused from walk to walk, so it allocates only when a frame has more nested packets than any frame before.
///
/// Holds [`LEN_MAX`](Self::LEN_MAX) headers; if there are more, the innermost are omitted.
pub(crate) struct FrameEncapsulation {
    headers: [HeaderPosition; Self::LEN_MAX],
    len: u8,
    /// Number of headers around the last packet that the walk found.
    settled_len: u8,
    is_all_kept: bool,
    /// IP packets of the frame, the outermost first, each with the number of headers around it.
    packets: Vec<(IpPacket, u8)>,
}

impl FrameEncapsulation {
    /// Maximum number of headers that are kept.
    const LEN_MAX: usize = 16;

    /// Creates an empty record, which keeps all IP packets of a frame if `is_all_kept` is true.
    pub(crate) const fn new(is_all_kept: bool) -> Self {
        Self {
            headers: [HeaderPosition { kind: HeaderKind::Ethernet, offset: 0, id: 0 }; Self::LEN_MAX],
            len: 0,
            settled_len: 0,
            is_all_kept,
            packets: Vec::new(),
        }
    }

    /// Returns the headers around the innermost packet, outermost first.
    pub(crate) fn headers(&self) -> &[HeaderPosition] {
        self.headers.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns the IP packets around the innermost packet, outermost first, each with the headers around it;
    /// none unless the record keeps all packets.
    pub(crate) fn outer_packets(&self) -> impl Iterator<Item = (&IpPacket, &[HeaderPosition])> {
        let (_, outer) = self.packets.split_last().unwrap_or((&EMPTY, &[]));
        outer.iter().map(|(packet, header_count)| {
            (packet, self.headers().get(..usize::from(*header_count)).unwrap_or_default())
        })
    }
}

const EMPTY: (IpPacket, u8) = (IpPacket::EMPTY, 0);

impl HeaderRecorder for FrameEncapsulation {
    fn begin(&mut self) {
        (self.len, self.settled_len) = (0, 0);
        self.packets.clear();
    }

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32) {
        if let Some(header) = self.headers.get_mut(usize::from(self.len)) {
            *header = HeaderPosition { kind, offset: offset as u32, id };
            self.len += 1;
        }
    }

    fn settle(&mut self) {
        self.settled_len = self.len;
    }

    fn keeps_packets(&self) -> bool {
        self.is_all_kept
    }

    fn keep(&mut self, packet: IpPacket) {
        self.packets.push((packet, self.len));
    }

    fn finish(&mut self) {
        self.len = self.settled_len;
    }
}

impl fmt::Debug for FrameEncapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Frame, Limits, Timestamp};
    use crate::decode::link::{Decapsulation, TunnelPorts, WalkSettings, Walked, find_packet};

    fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let len = 20 + payload.len() as u8;
        let fixed = [0x45, 0, 0, len, 0, 0, 0, 0, 64, protocol, 0, 0];
        [&fixed[..], &[192, 0, 2, 1], &[192, 0, 2, 2], payload].concat()
    }

    #[test]
    fn positions_lead_to_the_headers() {
        let tagged = [&[2; 12][..], &[0x81, 0, 0, 7, 8, 0], &ipv4(4, &ipv4(17, &[0; 8]))].concat();
        let frame = Frame::ethernet(Timestamp::ZERO, &tagged);
        for (decapsulation, position_count) in [(Decapsulation::Innermost, 2), (Decapsulation::Outermost, 1)]
        {
            let (tunnel_ports, limits) = (&TunnelPorts::DEFAULT, &Limits::DEFAULT);
            let mut walked = Walked::new(FrameEncapsulation::new(true));
            let settings = WalkSettings { decapsulation, tunnel_ports, limits };
            assert!(find_packet(&frame, None, &settings, &mut walked).is_ok());
            let positions = walked.encapsulation.headers();
            assert_eq!(positions.len(), position_count);
            assert!(positions.is_sorted_by_key(|position| position.offset));
            let text: Vec<_> = positions.iter().map(|at| at.header(&tagged).to_string()).collect();
            assert_eq!(text, ["VLAN 7", "IP 192.0.2.1>192.0.2.2"][..position_count]);
            assert_eq!(walked.packet.offset, 18 + 20 * (position_count - 1));
            let outer: Vec<_> = walked
                .encapsulation
                .outer_packets()
                .map(|(packet, around)| (packet.offset, around.len()))
                .collect();
            assert_eq!(outer, [(18, 1)][..position_count - 1]);
        }
    }
}
