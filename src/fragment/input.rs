//! What goes in: a fragment, and the key of the datagram that it is a part of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::outcome::Malformed;
use super::pages::UNIT_LEN;
use crate::base::{IpProtocol, Timestamp};

/// The most that the length field of a whole packet can say.
const PACKET_LEN_MAX: u32 = 65_535;

/// Which datagram a fragment is a part of (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatagramKey {
    source: u128,
    destination: u128,
    identification: u32,
    scope: u64,
    /// Zero for IPv6, whose fragments need not agree on it.
    protocol: IpProtocol,
    is_ipv6: bool,
}

impl DatagramKey {
    /// The key of an IPv4 datagram. `scope` keeps apart what must not be mixed: tunnels, VLANs, interfaces, tenants.
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

    /// The key of an IPv6 datagram; the identification is that of the fragment header.
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

    /// Who sent it.
    #[must_use]
    pub const fn source(&self) -> IpAddr {
        self.address(self.source)
    }

    /// Whom it is for.
    #[must_use]
    pub const fn destination(&self) -> IpAddr {
        self.address(self.destination)
    }

    /// What tells the datagrams of two hosts apart: 16 bits for IPv4, 32 for IPv6.
    #[must_use]
    pub const fn identification(&self) -> u32 {
        self.identification
    }

    /// The scope that was given.
    #[must_use]
    pub const fn scope(&self) -> u64 {
        self.scope
    }

    /// Whether it is IPv6.
    #[must_use]
    pub const fn is_ipv6(&self) -> bool {
        self.is_ipv6
    }
}

/// One fragment, borrowed from the frame that carries it.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// The datagram that it is a part of.
    pub key: DatagramKey,
    /// When it was captured.
    pub timestamp: Timestamp,
    /// The protocol of the payload as this fragment tells it. Of an IPv6 datagram, the one with offset zero counts.
    pub protocol: IpProtocol,
    /// Where in the datagram's payload it begins, in octets: eight times the field.
    pub offset: u16,
    /// Whether more fragments follow it.
    pub more_fragments: bool,
    /// Octets of the header that the length field of the whole packet will count: an IPv4 header with its options, or
    /// the IPv6 extension headers in front of the fragment header (the 40 octets of IPv6's own do not count).
    pub header_len: u16,
    /// Octets of payload by the length field of the IP header.
    pub len: u32,
    /// The payload as far as it was captured; what exceeds `len` is padding and not looked at.
    pub bytes: &'a [u8],
}

/// Where a fragment that may be kept lies, in octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent<'a> {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) is_last: bool,
    /// What was captured of it.
    pub(super) bytes: &'a [u8],
}

impl Extent<'_> {
    /// From the first unit of eight octets to the one behind the last.
    pub(super) const fn units(&self) -> (u32, u32) {
        (self.start / UNIT_LEN as u32, self.end.div_ceil(UNIT_LEN as u32))
    }
}

impl<'a> Fragment<'a> {
    /// Whether it is a whole datagram: offset zero, and nothing follows (RFC 6946).
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more_fragments
    }

    /// Where it lies. `rounds_down` leaves off what follows the last unit of eight octets of a fragment that is not the
    /// last one; without it, such a fragment is malformed.
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

    /// Octets of its payload in whole units of eight.
    const fn whole_units_len(&self) -> u32 {
        self.len - self.len % UNIT_LEN as u32
    }
}
