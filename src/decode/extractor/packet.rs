//! Properties of a packet that the decoder reads from its headers.

use crate::base::{Limits, LinkType, Packet, PacketMarks, Transport};
use crate::decode::link::fragment_header;
use crate::wire::{icmp, ip};

impl Packet<'_> {
    /// Marks the packet if the link type of its frame is that of super-packets. Called after the packet was written,
    /// because packets of other frames must be written in place. Devices accept only plain TCP and UDP as super-packets;
    /// anything else is one packet.
    #[inline(always)]
    pub(in crate::decode) fn note_link_type(&mut self, link_type: LinkType) {
        if link_type.is_super_packet() {
            self.mark_super_packet();
        }
    }

    #[cold]
    #[inline(never)]
    fn mark_super_packet(&mut self) {
        let is_plain = !self.marks.contains(PacketMarks::FRAGMENT.with(PacketMarks::ENCAPSULATED, true));
        let has_segments = is_plain && matches!(self.transport, Transport::Tcp | Transport::Udp);
        self.marks = self.marks.with(PacketMarks::SUPER_PACKET, has_segments);
    }

    /// Returns the ICMP type and code if the packet is ICMP or ICMPv6 and both fields were captured.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        match self.transport {
            Transport::Icmp => icmp::kind_and_code(self.transport_bytes()),
            _ => None,
        }
    }

    /// Returns the identification of the datagram of which the packet is a fragment, and the offset of the fragment in the
    /// datagram's payload, in octets: 16 bits of identification for IPv4, 32 bits for IPv6 (RFC 791 section 3.1, RFC 8200
    /// section 4.5). `None` for other packets, and for fragments of which a pipeline kept no header
    /// ([`FragmentHandling::Reassemble`](crate::decode::FragmentHandling)).
    #[must_use]
    pub fn fragment(&self) -> Option<(u32, u16)> {
        let packet = self
            .frame
            .get(self.ip_offset as usize..)
            .filter(|_| self.marks.contains(PacketMarks::FRAGMENT))?;
        let header = fragment_header(packet, ip::ether_type(packet)?, &Limits::DEFAULT)?;
        Some((header.identification, header.offset))
    }
}
