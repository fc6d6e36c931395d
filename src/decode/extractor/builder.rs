//! Packets that a program parsed itself.

use std::fmt;
use std::net::IpAddr;

use super::{KeyPolicy, Packet, general};
use crate::base::{EtherType, Frame, IpProtocol, LinkType, MacAddresses, Timestamp, VlanIds};
use crate::decode::link::{IpHeader, IpPacket};

/// Creates a [`Packet`] from a frame whose link and IP headers the program parsed itself: with another parser, in XDP, or
/// in the memory of a device. The transport header is read from the frame, so that a [`Tracker`](crate::tracker::Tracker)
/// creates the same records as from the frame alone. Another parser has to accept frames that the capture truncated
/// (`LaxSlicedPacket` of etherparse). Datagrams are not reassembled, as with
/// [`FragmentHandling::AsTheyCome`](crate::decode::FragmentHandling::AsTheyCome).
///
/// ```
/// use std::net::IpAddr;
///
/// use flowgauge::base::{IpProtocol, Timestamp};
/// use flowgauge::decode::extractor::Packet;
///
/// // An IPv4 header without a link header, and UDP from port 4000 to port 53 with four octets.
/// let octets = [
///     0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, //
///     0x0f, 0xa0, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4,
/// ];
/// let [source, destination] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
/// let packet = Packet::builder(Timestamp::ZERO, &octets)
///     .ip(source, destination, IpProtocol::UDP)
///     .ip_header(0, 20, 32)
///     .hop_limit(64)
///     .build()?;
/// assert_eq!((packet.payload(), packet.key.port(packet.side)), (&[1, 2, 3, 4][..], Some(4000)));
/// # Ok::<(), flowgauge::decode::extractor::PacketError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct PacketBuilder<'a> {
    frame: Frame<'a>,
    found: IpPacket,
    addresses: Option<(IpAddr, IpAddr)>,
    policy: KeyPolicy,
}

/// Reason why [`PacketBuilder::build`] refuses a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// Addresses and protocol were not given.
    NoAddresses,
    /// One address is an IPv4 address and the other one an IPv6 address.
    MixedAddresses,
    /// The IP header is not within the frame, or its first octet is not of the version of the addresses.
    NoHeader,
    /// The IP packet is shorter than its header.
    ShortPacket,
    /// The length of the frame on the wire is less than its captured octets.
    ShortFrame,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddresses => "addresses and protocol are missing",
            Self::MixedAddresses => "the addresses are of different IP versions",
            Self::NoHeader => "the frame has no IP header of the version of the addresses at the offset",
            Self::ShortPacket => "the IP packet is shorter than its header",
            Self::ShortFrame => "the frame is shorter on the wire than its captured octets",
        })
    }
}

impl std::error::Error for PacketError {}

impl<'a> Packet<'a> {
    /// Begins a packet whose headers the program parsed itself, with its capture time and the captured octets of its
    /// frame.
    pub fn builder(timestamp: Timestamp, frame: &'a [u8]) -> PacketBuilder<'a> {
        let wire_len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        PacketBuilder {
            frame: Frame { timestamp, link_type: LinkType::RAW, data: frame, wire_len, interface: 0 },
            found: IpPacket::EMPTY,
            addresses: None,
            policy: KeyPolicy::DEFAULT,
        }
    }
}

impl<'a> PacketBuilder<'a> {
    /// Sets the addresses, and the protocol after all extension headers.
    pub const fn ip(mut self, source: IpAddr, destination: IpAddr, protocol: IpProtocol) -> Self {
        self.addresses = Some((source, destination));
        self.found.ip.protocol = protocol;
        self
    }

    /// Sets the position of the IP packet: octets from the start of the frame to its header, the length of the header
    /// with options and extension headers, and the length of the packet according to its length field.
    pub const fn ip_header(mut self, offset: usize, header_len: usize, packet_len: usize) -> Self {
        self.found.offset = offset;
        self.found.ip.header_len = header_len;
        self.found.ip.len = packet_len;
        self
    }

    /// Sets the IPv4 time to live or IPv6 hop limit.
    pub const fn hop_limit(mut self, hop_limit: u8) -> Self {
        self.found.ip.hop_limit = hop_limit;
        self
    }

    /// Sets the IPv4 type of service or IPv6 traffic class.
    pub const fn traffic_class(mut self, traffic_class: u8) -> Self {
        self.found.ip.traffic_class = traffic_class;
        self
    }

    /// Marks the packet as a fragment; only the first fragment of a datagram has a transport header.
    pub const fn fragment(mut self, is_first: bool) -> Self {
        self.found.ip.is_fragment = true;
        self.found.ip.is_later_fragment = !is_first;
        self
    }

    /// Sets the length of the frame on the wire, if the capture ends before the end of the frame.
    pub const fn wire_len(mut self, wire_len: u32) -> Self {
        self.frame.wire_len = wire_len;
        self
    }

    /// Sets the index of the interface on which the frame was captured.
    pub const fn interface(mut self, interface: u32) -> Self {
        self.frame.interface = interface;
        self
    }

    /// Sets the position of an Ethernet header, whose addresses the record contains, in octets from the start of the
    /// frame, and the VLAN ids that follow it.
    pub const fn ethernet(mut self, offset: u32, vlan_ids: VlanIds) -> Self {
        self.found.link.mac_addresses = MacAddresses::ethernet(offset);
        self.found.link.vlan_ids = vlan_ids;
        self
    }

    /// Sets the policy for the key, which should be that of the tracker.
    pub const fn key_policy(mut self, policy: KeyPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Reads the transport header and returns the packet. Does not allocate.
    ///
    /// # Errors
    ///
    /// Returns an error if the values contradict each other or the frame. A truncated transport header is none; the
    /// packet is then marked, as one that the [`Extractor`](super::Extractor) read.
    pub fn build(mut self) -> Result<Packet<'a>, PacketError> {
        let (is_ipv6, source, destination) = match self.addresses.ok_or(PacketError::NoAddresses)? {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                (false, source.to_bits().into(), destination.to_bits().into())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => (true, source.to_bits(), destination.to_bits()),
            _ => return Err(PacketError::MixedAddresses),
        };
        let found = &mut self.found;
        let first = self.frame.data.get(found.offset).ok_or(PacketError::NoHeader)?;
        if first >> 4 != if is_ipv6 { 6 } else { 4 } {
            return Err(PacketError::NoHeader);
        }
        if found.ip.len < found.ip.header_len {
            return Err(PacketError::ShortPacket);
        }
        if (self.frame.wire_len as usize) < self.frame.data.len() {
            return Err(PacketError::ShortFrame);
        }
        found.ether_type = if is_ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
        let is_truncated = self.frame.data.len() < found.offset + found.ip.header_len;
        // A packet longer than its frame on the wire ends there.
        let len_max = (self.frame.wire_len as usize).saturating_sub(found.offset);
        let is_over_long = found.ip.len > len_max;
        found.ip = IpHeader {
            is_ipv6,
            source,
            destination,
            len: found.ip.len.min(len_max),
            is_truncated,
            is_bad_len: is_over_long,
            is_over_long,
            ..found.ip
        };
        Ok(general::with_transport(&self.frame, &self.policy, found))
    }
}
