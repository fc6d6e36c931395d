//! Input of the pool: a fragment, and the key of its datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::pages::UNIT_LEN;
use crate::base::{IpProtocol, Timestamp};

/// Largest length, in octets, that the length field of an IP packet can hold.
const PACKET_LEN_MAX: u32 = 65_535;

/// Key of the datagram that a fragment belongs to (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramKey {
    source: u128,
    destination: u128,
    identification: u32,
    scope: u64,
    /// Protocol of an IPv4 datagram; zero for IPv6, where the fragments of a datagram may differ in the
    /// protocol.
    protocol: IpProtocol,
    is_ipv6: bool,
}

impl DatagramKey {
    /// Creates the key of an IPv4 datagram. `scope` separates datagrams that must not be mixed: tunnels,
    /// VLANs, interfaces, tenants.
    #[must_use]
    pub const fn v4(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        identification: u16,
        protocol: IpProtocol,
        scope: u64,
    ) -> Self {
        Self {
            source: source.to_bits() as u128,
            destination: destination.to_bits() as u128,
            identification: identification as u32,
            scope,
            protocol,
            is_ipv6: false,
        }
    }

    /// Creates the key of an IPv6 datagram. `identification` is that field of the fragment header. `scope`
    /// separates datagrams that must not be mixed: tunnels, VLANs, interfaces, tenants.
    #[must_use]
    pub const fn v6(source: Ipv6Addr, destination: Ipv6Addr, identification: u32, scope: u64) -> Self {
        Self {
            source: source.to_bits(),
            destination: destination.to_bits(),
            identification,
            scope,
            protocol: IpProtocol(0),
            is_ipv6: true,
        }
    }

    const fn address(&self, bits: u128) -> IpAddr {
        if self.is_ipv6 {
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        } else {
            IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
        }
    }

    /// Returns the source address of the datagram.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        self.address(self.source)
    }

    /// Returns the destination address of the datagram.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        self.address(self.destination)
    }

    /// Returns the identification field, which separates the datagrams between two hosts: 16 bits for IPv4,
    /// 32 bits for IPv6.
    #[must_use]
    pub const fn identification(&self) -> u32 {
        self.identification
    }

    /// Returns the scope, which separates datagrams that must not be mixed, such as those in different
    /// tunnels.
    #[must_use]
    pub const fn scope(&self) -> u64 {
        self.scope
    }

    /// Returns whether the datagram is IPv6.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }
}

/// One fragment, borrowed from the frame that carries it.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// Key of the datagram that the fragment belongs to.
    pub key: DatagramKey,
    /// Capture time of the fragment.
    pub timestamp: Timestamp,
    /// Protocol of the payload according to this fragment. For an IPv6 datagram, the fragment with offset
    /// zero is authoritative.
    pub protocol: IpProtocol,
    /// Offset of the fragment in the datagram's payload, in octets: eight times the fragment offset field.
    pub offset: u16,
    /// True if the header indicates that more fragments of the datagram follow.
    pub more_fragments: bool,
    /// Octets of headers that the length field of the reassembled packet counts in addition to the payload:
    /// an IPv4 header with its options, or the IPv6 extension headers in front of the fragment header (the 40
    /// octets of the IPv6 header itself do not count).
    pub header_len: u16,
    /// Length of the fragment's payload according to the length field of the IP header, in octets.
    pub len: u32,
    /// Captured part of the fragment's payload; octets beyond `len` are padding and are ignored.
    pub bytes: &'a [u8],
}

/// Range of a valid fragment within its datagram, in octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent<'a> {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) is_last: bool,
    /// Captured part of the fragment's payload.
    pub(super) bytes: &'a [u8],
}

impl Extent<'_> {
    /// Returns the range of units of eight octets that the fragment covers: the index of the first unit, and
    /// the index after the last unit.
    pub(super) const fn units(&self) -> (u32, u32) {
        (self.start / UNIT_LEN as u32, self.end.div_ceil(UNIT_LEN as u32))
    }
}

impl<'a> Fragment<'a> {
    /// Returns whether the fragment is a whole datagram: offset zero and no more fragments (RFC 6946).
    #[must_use]
    pub(crate) const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more_fragments
    }

    /// Returns the range of the fragment within its datagram. If more fragments follow and the length is not
    /// a multiple of eight octets, the octets after the last multiple are dropped if `rounds_down` is true;
    /// otherwise the fragment is malformed.
    pub(super) fn extent(&self, rounds_down: bool) -> Result<Extent<'a>, Malformed> {
        let start = u32::from(self.offset);
        if self.len == 0 {
            return Err(Malformed::Empty);
        }
        if start.saturating_add(self.len).saturating_add(self.header_len.into()) > PACKET_LEN_MAX {
            return Err(Malformed::BeyondMaximum);
        }
        let is_aligned = |octets: u32| octets.is_multiple_of(UNIT_LEN as u32);
        let len = if self.more_fragments && rounds_down { self.whole_units_len() } else { self.len };
        if !is_aligned(start) || (self.more_fragments && !is_aligned(len)) || len == 0 {
            return Err(Malformed::Unaligned);
        }
        let captured_len = self.bytes.len().min(len as usize);
        let bytes = self.bytes.get(..captured_len).unwrap_or_default();
        Ok(Extent { start, end: start + len, is_last: !self.more_fragments, bytes })
    }

    /// Returns the length of the fragment's payload, rounded down to a multiple of eight octets.
    const fn whole_units_len(&self) -> u32 {
        self.len - self.len % UNIT_LEN as u32
    }
}

/// Reason that a fragment cannot be part of any datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// The fragment has no payload.
    Empty,
    /// More fragments follow, but the length is not a multiple of eight octets (RFC 791, RFC 8200 section
    /// 4.5), and the fragment is IPv6, or the policy belongs to hosts that drop such a fragment, or no octets
    /// remain after rounding down; or the offset is not a multiple of eight, which the header field cannot
    /// express.
    Unaligned,
    /// The reassembled packet would exceed 65,535 octets (ping of death).
    BeyondMaximum,
}
