//! A packet as the tracker sees it.

use crate::base::{FlowKey, SeqNum, Side, TcpFlags, Timestamp, VlanIds};
use crate::link::MacAddresses;
use crate::wire::tcp::TcpSegment;

/// What could be read of the transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Nothing: another protocol, a later fragment, or cut before the ports.
    #[default]
    Other,
    /// TCP; [`Packet::tcp`] holds the fields.
    Tcp,
    /// TCP of which only the ports are known: the header is cut, or its length field is wrong.
    TcpPorts,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP or ICMPv6; [`Packet::icmp`] holds type and code.
    Icmp,
}

/// What is unusual about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketMarks(u8);

impl PacketMarks {
    /// A fragment of a datagram, the first one included.
    pub const FRAGMENT: Self = Self(1);
    /// A fragment that carries no ports, counted under its address pair.
    pub const WITHOUT_PORTS: Self = Self(1 << 1);
    /// The capture ends before the transport header does, though the packet goes on: a snap length.
    pub const CUT: Self = Self(1 << 2);
    /// A length field contradicts what encloses its header: that of IP is zero or too large, or that of UDP or of a header
    /// around the packet (PPPoE, PPTP, L2TP, GTP-U, MACsec) is too large. The packet ends where what encloses it ends.
    pub const BAD_IP_LEN: Self = Self(1 << 3);
    /// Its payload is a tunnel nested deeper than [`Limits`](crate::base::Limits) allows, and was not looked into.
    pub const TOO_DEEP: Self = Self(1 << 4);

    /// It completes a datagram that came in fragments: `frame` is the datagram put together, and `payload_len` all of its
    /// payload; `wire_len` and `ip_len` are those of this fragment.
    pub const REASSEMBLED: Self = Self(1 << 5);

    /// Something encloses it in its frame: a tunnel, a label stack, PPPoE; VLAN tags alone do not. Nothing unusual.
    pub(crate) const ENCAPSULATED: Self = Self(1 << 6);

    /// Whether a mark is set; of several, one of them.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a packet with these marks may be counted without a further look.
    #[inline(always)]
    pub(crate) const fn is_ordinary(self) -> bool {
        self.0 & !Self::ENCAPSULATED.0 == 0
    }

    pub(crate) const fn with(self, other: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | other.0) } else { self }
    }
}

/// One packet and the flow that it belongs to. Borrows the frame's bytes; 128 octets, `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// Whose packet it is.
    pub key: FlowKey,
    /// When it was captured.
    pub timestamp: Timestamp,
    /// The captured octets of its frame. Of a fragment in a pipeline that puts fragments together, nothing but the hardware
    /// addresses, or the whole datagram if this one completes it.
    pub frame: &'a [u8],
    /// Octets of the frame on the wire.
    pub wire_len: u32,
    /// Octets of the IP packet by its length field, header included, but no more than what encloses it has; of the innermost
    /// one, as all that follows.
    pub ip_len: u32,
    /// Octets of transport payload by the length fields, within `ip_len`, whatever was captured of them.
    pub payload_len: u32,
    /// Octets from the start of the frame to the IP header.
    pub ip_offset: u32,
    /// Octets from the start of the frame to the transport header.
    pub transport_offset: u32,
    /// Octets from the start of the frame to the payload; may lie beyond a cut frame.
    pub payload_offset: u32,
    /// Where it was captured.
    pub interface: u32,
    /// The fields of the TCP header, if `transport` is [`Transport::Tcp`].
    pub tcp: TcpSegment,
    /// Hardware addresses.
    pub mac_addresses: MacAddresses,
    /// VLAN ids of the frame, whether or not they are a part of the key.
    pub vlan_ids: VlanIds,
    /// Which side sent it.
    pub side: Side,
    /// What could be read of the transport header.
    pub transport: Transport,
    /// IPv4 time to live or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv4 type of service or IPv6 traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// What is unusual about it.
    pub marks: PacketMarks,
}

impl<'a> Packet<'a> {
    /// A packet of no flow: what [`Extractor::extract_into`](super::Extractor::extract_into) writes over.
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

    /// A packet with a key and a time, and nothing else known: for callers that extract by means of their own and
    /// fill in the fields that they have.
    #[must_use]
    pub fn new(key: FlowKey, side: Side, timestamp: Timestamp, frame: &'a [u8]) -> Self {
        Self { key, side, timestamp, frame, wire_len: frame.len() as u32, ..Self::EMPTY }
    }

    /// The transport payload as far as it was captured, padding excluded.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let start = self.payload_offset as usize;
        let end = (start + self.payload_len as usize).min(self.frame.len());
        self.frame.get(start..end).unwrap_or_default()
    }

    /// The transport header and its payload as far as captured, padding excluded. Up to the end of the frame, if the payload
    /// is not known (`payload_offset` is zero).
    #[must_use]
    #[inline]
    pub fn transport_bytes(&self) -> &'a [u8] {
        let end = match self.payload_offset {
            0 => self.frame.len(),
            offset => (offset as usize + self.payload_len as usize).min(self.frame.len()),
        };
        self.frame.get(self.transport_offset as usize..end).unwrap_or_default()
    }

    /// Type and code, if it is ICMP and both were captured.
    #[must_use]
    pub fn icmp(&self) -> Option<(u8, u8)> {
        match (self.transport, self.transport_bytes()) {
            (Transport::Icmp, [kind, code, ..]) => Some((*kind, *code)),
            _ => None,
        }
    }

    /// The Differentiated Services code point (RFC 2474).
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
    fn a_packet_is_two_cache_lines() {
        assert_eq!(size_of::<Packet<'_>>(), 128);
    }
}
