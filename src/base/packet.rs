//! A packet, which the decoder finds in a frame and the layers above it process.

use super::key::{FlowKey, Side};
use super::mac_addresses::MacAddresses;
use super::seq::SeqNum;
use super::tcp_flags::TcpFlags;
use super::time::Timestamp;
use super::vlan::VlanIds;

/// Kind of transport header that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// No transport header was read: another protocol, a later fragment, or a frame truncated before the
    /// ports.
    #[default]
    Other,
    /// TCP; [`Packet::tcp`] contains the fields of the header.
    Tcp,
    /// TCP with only the ports known: the header is truncated, or its length field is wrong.
    TcpPorts,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP or ICMPv6; [`Packet::icmp`] returns the type and the code.
    Icmp,
}

/// Fields of a TCP header that describe the position of a segment in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpSegment {
    /// Sequence number of the first octet of the segment, or of SYN.
    pub seq: SeqNum,
    /// Acknowledgment number; valid if the ACK flag is set.
    pub ack: SeqNum,
    /// Window field as sent, without scaling.
    pub window: u16,
    /// TCP control bits.
    pub flags: TcpFlags,
}

/// Set of flags for unusual properties of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketMarks(u16);

impl PacketMarks {
    /// The packet is a fragment of a datagram; the first fragment is included.
    pub const FRAGMENT: Self = Self(1);
    /// The packet contains no ports although its protocol has ports, so it counts for the flow of its address
    /// pair.
    pub const WITHOUT_PORTS: Self = Self(1 << 1);
    /// The capture ends before the end of the transport header, although the packet continues: a snap length.
    pub const TRUNCATED: Self = Self(1 << 2);
    /// A length field is inconsistent with the outer headers: the IP length is zero or too large, or the
    /// length in UDP or in an outer header (PPPoE, PPTP, L2TP, GTP-U, MACsec) is too large. The packet then
    /// ends where the outer payload ends.
    pub const BAD_IP_LEN: Self = Self(1 << 3);
    /// The payload is a tunnel nested deeper than [`Limits`](super::Limits) allows, and was not
    /// decapsulated.
    pub const TOO_DEEP: Self = Self(1 << 4);

    /// The packet completes a fragmented datagram: `frame` is the reassembled datagram, and `payload_len`
    /// covers all of its payload; `wire_len` and `ip_len` describe only the fragment that completes it.
    pub const REASSEMBLED: Self = Self(1 << 5);

    /// The packet has outer headers in its frame: a tunnel, a label stack or PPPoE, but not VLAN tags alone.
    /// This mark does not indicate an unusual packet.
    pub(crate) const ENCAPSULATED: Self = Self(1 << 6);

    /// The frame contains a message between neighbors on a link: in the packet, or in a tunnel that the packet carries. This
    /// mark does not indicate an unusual packet.
    pub(crate) const NEIGHBOR: Self = Self(1 << 8);

    /// The packet is a super-packet of segmentation offload: `payload_len` covers the payload of all its segments, and
    /// `wire_len` is the sum of their lengths, each with its headers. [`Packet::segment_count`] returns their number.
    pub const SUPER_PACKET: Self = Self(1 << 7);

    /// Returns whether at least one of the marks in `other` is set.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether a packet with these marks can be counted without further checks.
    #[inline(always)]
    pub(crate) const fn is_ordinary(self) -> bool {
        self.0 & !(Self::ENCAPSULATED.0 | Self::NEIGHBOR.0) == 0
    }

    pub(crate) const fn with(self, other: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | other.0) } else { self }
    }
}

/// One packet and the flow to which it belongs. Borrows the frame's bytes; 128 octets, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// Flow Key of the packet.
    pub key: FlowKey,
    /// Capture time of the frame.
    pub timestamp: Timestamp,
    /// Captured octets of the frame. If a pipeline reassembles fragments and the packet is a fragment: only
    /// the hardware addresses, or the whole datagram if the fragment completes it.
    pub frame: &'a [u8],
    /// Length of the frame on the wire, in octets.
    pub wire_len: u32,
    /// Length of the innermost IP packet according to its length field, in octets, including the header and
    /// limited by the outer headers. The fields from `ip_len` on describe the innermost packet.
    pub ip_len: u32,
    /// Length of the transport payload according to the length fields, in octets, at most `ip_len`,
    /// regardless of how many octets were captured.
    pub payload_len: u32,
    /// Octets from the start of the frame to the IP header.
    pub ip_offset: u32,
    /// Octets from the start of the frame to the transport header.
    pub transport_offset: u32,
    /// Octets from the start of the frame to the transport payload; may exceed the length of a truncated
    /// frame.
    pub payload_offset: u32,
    /// Index of the interface on which the frame was captured.
    pub interface: u32,
    /// Fields of the TCP header, if `transport` is [`Transport::Tcp`].
    pub tcp: TcpSegment,
    /// Position of the hardware addresses in the frame.
    pub mac_addresses: MacAddresses,
    /// VLAN ids of the frame, even if they are not part of the key.
    pub vlan_ids: VlanIds,
    /// Side of the flow key that sent the packet.
    pub side: Side,
    /// Kind of transport header that was read.
    pub transport: Transport,
    /// IPv4 time to live or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv4 type of service or IPv6 traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// Unusual properties of the packet.
    pub marks: PacketMarks,
}

impl<'a> Packet<'a> {
    /// Placeholder that belongs to no flow, which [`Extractor::extract_into`](crate::decode::extractor::Extractor::extract_into)
    /// can overwrite.
    pub const EMPTY: Self = Self {
        key: FlowKey::VACANT,
        timestamp: Timestamp::ZERO,
        frame: &[],
        wire_len: 0,
        ip_len: 0,
        payload_len: 0,
        ip_offset: 0,
        transport_offset: 0,
        payload_offset: 0,
        interface: 0,
        tcp: TcpSegment { seq: SeqNum(0), ack: SeqNum(0), window: 0, flags: TcpFlags(0) },
        mac_addresses: MacAddresses::NONE,
        vlan_ids: VlanIds::NONE,
        side: Side::A,
        transport: Transport::Other,
        hop_limit: 0,
        traffic_class: 0,
        marks: PacketMarks(0),
    };

    /// Creates a packet with a key, the side of its sender, a capture time and a frame; the other fields are
    /// empty. For callers that implement extraction themselves and fill in the fields that they know.
    #[must_use]
    pub fn new(key: FlowKey, side: Side, timestamp: Timestamp, frame: &'a [u8]) -> Self {
        Self { key, side, timestamp, frame, wire_len: frame.len() as u32, ..Self::EMPTY }
    }

    /// Returns the captured part of the transport payload, without padding.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let start = self.payload_offset as usize;
        let end = (start + self.payload_len as usize).min(self.frame.len());
        self.frame.get(start..end).unwrap_or_default()
    }

    /// Returns the captured part of the transport header and its payload, without padding. The slice extends
    /// to the end of the frame if the payload is not known (`payload_offset` is zero).
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn transport_bytes(&self) -> &'a [u8] {
        let end = match self.payload_offset {
            0 => self.frame.len(),
            offset => (offset as usize + self.payload_len as usize).min(self.frame.len()),
        };
        self.frame.get(self.transport_offset as usize..end).unwrap_or_default()
    }

    /// Returns the number of segments in the packet: more than one only for a super-packet of segmentation offload.
    #[must_use]
    pub fn segment_count(&self) -> u32 {
        if !self.marks.contains(PacketMarks::SUPER_PACKET) {
            return 1;
        }
        // Each segment after the first has a copy of all headers, and at least one octet of payload.
        let copied_len = self.wire_len.saturating_sub(self.frame.len() as u32);
        let copy_count = copied_len.checked_div(self.payload_offset).unwrap_or_default();
        1 + copy_count.min(self.payload_len.saturating_sub(1))
    }

    /// Returns the Differentiated Services code point of the packet (RFC 2474).
    #[must_use]
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_occupies_two_cache_lines() {
        assert_eq!(size_of::<Packet<'_>>(), 128);
    }

    #[test]
    fn segments_of_a_super_packet_are_bounded_by_its_payload() {
        let data = [0; 3040];
        let segments = |wire_len, payload_len| Packet {
            wire_len,
            payload_len,
            payload_offset: 40,
            marks: PacketMarks::SUPER_PACKET,
            frame: &data,
            ..Packet::EMPTY
        };
        assert_eq!(segments(3040, 3000).segment_count(), 1);
        assert_eq!(segments(3040 + 2 * 40, 3000).segment_count(), 3);
        assert_eq!(segments(u32::MAX, 3000).segment_count(), 3000);
        assert_eq!(segments(u32::MAX, 0).segment_count(), 1);
        assert_eq!(Packet { payload_offset: 0, ..segments(u32::MAX, 3000) }.segment_count(), 1);
        assert_eq!(Packet { marks: PacketMarks(0), ..segments(3120, 3000) }.segment_count(), 1);
    }
}
