//! Packet: the input of the tracker.

use crate::base::{FlowKey, SeqNum, Side, TcpFlags, Timestamp, VlanIds};
use crate::decode::link::MacAddresses;
use crate::wire::icmp;
use crate::wire::tcp::TcpSegment;

/// Kind of transport header that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// None: another protocol, a later fragment, or a frame truncated before the ports.
    #[default]
    Other,
    /// TCP; [`Packet::tcp`] holds the fields.
    Tcp,
    /// TCP with only the ports known: the header is truncated, or its length field is wrong.
    TcpPorts,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP or ICMPv6; [`Packet::icmp`] holds type and code.
    Icmp,
}

/// Unusual properties of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketMarks(u8);

impl PacketMarks {
    /// A fragment of a datagram, the first one included.
    pub const FRAGMENT: Self = Self(1);
    /// A fragment that carries no ports, counted under its address pair.
    pub const WITHOUT_PORTS: Self = Self(1 << 1);
    /// The capture ends before the end of the transport header, although the packet continues: a snap length.
    pub const TRUNCATED: Self = Self(1 << 2);
    /// A length field is inconsistent with the outer headers: that of IP is zero or too large, or that of UDP
    /// or of an outer header (PPPoE, PPTP, L2TP, GTP-U, MACsec) is too large. The packet then ends where the
    /// outer payload ends.
    pub const BAD_IP_LEN: Self = Self(1 << 3);
    /// The payload is a tunnel nested deeper than [`Limits`](crate::base::Limits) allows, and was not
    /// decapsulated.
    pub const TOO_DEEP: Self = Self(1 << 4);

    /// The packet completes a fragmented datagram: `frame` is the reassembled datagram, and `payload_len`
    /// covers all of its payload; `wire_len` and `ip_len` are those of this fragment.
    pub const REASSEMBLED: Self = Self(1 << 5);

    /// The packet has outer headers in its frame: a tunnel, a label stack or PPPoE, but not VLAN tags alone.
    /// This is not unusual.
    pub(crate) const ENCAPSULATED: Self = Self(1 << 6);

    /// Returns whether a mark is set, or at least one of several marks.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether a packet with these marks can be counted without further checks.
    #[inline(always)]
    pub(crate) const fn is_ordinary(self) -> bool {
        self.0 & !Self::ENCAPSULATED.0 == 0
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
    /// Capture time.
    pub timestamp: Timestamp,
    /// Captured octets of the frame. For a fragment in a pipeline that reassembles, only the hardware
    /// addresses, or the whole datagram if this fragment completes it.
    pub frame: &'a [u8],
    /// Octets of the frame on the wire.
    pub wire_len: u32,
    /// Octets of the IP packet according to its length field, header included, limited by the outer headers.
    /// This and all following fields describe the innermost packet.
    pub ip_len: u32,
    /// Octets of transport payload according to the length fields, within `ip_len`, regardless of how many
    /// were captured.
    pub payload_len: u32,
    /// Octets from the start of the frame to the IP header.
    pub ip_offset: u32,
    /// Octets from the start of the frame to the transport header.
    pub transport_offset: u32,
    /// Octets from the start of the frame to the payload; may exceed the length of a truncated frame.
    pub payload_offset: u32,
    /// Interface on which the frame was captured.
    pub interface: u32,
    /// The fields of the TCP header, if `transport` is [`Transport::Tcp`].
    pub tcp: TcpSegment,
    /// Hardware addresses.
    pub mac_addresses: MacAddresses,
    /// VLAN ids of the frame, even if they are not part of the key.
    pub vlan_ids: VlanIds,
    /// Side that sent the packet.
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
    /// Packet of no flow, which [`Extractor::extract_into`](super::Extractor::extract_into) can overwrite.
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

    /// Creates a packet with a key and a time and no other known fields, for callers that implement
    /// extraction themselves and fill in the fields that they have.
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

    /// Returns type and code if the packet is ICMP and both were captured.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        match self.transport {
            Transport::Icmp => icmp::kind_and_code(self.transport_bytes()),
            _ => None,
        }
    }

    /// Returns the Differentiated Services code point (RFC 2474).
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
}
