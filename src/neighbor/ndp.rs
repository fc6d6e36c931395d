//! Neighbor discovery of IPv6 (RFC 4861; preference of routers: RFC 4191; DNS servers: RFC 8106).

use std::net::IpAddr;
use std::time::Duration;

use super::reading::{Reading, add, addresses, v6, whole};
use crate::codec::{ReadError, Reader};
use crate::row::{Group, Name};
use crate::session::kit::names;

names! {
    /// Type of a message of ICMPv6.
    pub struct NdpKind: u8 {
        133 => "router_solicitation", 134 => "router_advertisement", 135 => "neighbor_solicitation",
        136 => "neighbor_advertisement", 137 => "redirect",
    }
}

crate::message! {
    /// A message of neighbor discovery: who has an address of IPv6, which router is there, and with which prefixes.
    #[derive(Clone, Debug, Default)]
    "neighbor.ndp" pub struct Ndp {
        /// Type of the message, such as `neighbor_advertisement`.
        pub ndp_type: NdpKind,
        /// Address that is asked for or announced; of a redirect, the better first hop.
        pub target_address: Option<IpAddr>,
        /// Address to which a redirect applies.
        pub redirected_address: Option<IpAddr>,
        /// MAC address of the sender in an option.
        pub sender_mac: Option<[u8; 6]>,
        /// MAC address of the target in an option.
        pub target_mac: Option<[u8; 6]>,
        /// True if the sender is a router.
        pub is_router: Option<bool>,
        /// True if an advertisement answers a solicitation.
        pub is_solicited: Option<bool>,
        /// True if an advertisement replaces a known MAC address.
        pub is_override: Option<bool>,
        /// Hop limit that a router proposes; null if it leaves it open.
        pub proposed_hop_limit: Option<u8>,
        /// True if addresses are given by DHCPv6.
        pub is_managed: Option<bool>,
        /// True if other configuration is given by DHCPv6.
        pub is_other_managed: Option<bool>,
        /// Preference of the router: `high`, `medium` or `low`.
        pub router_preference: Option<Name>,
        /// Time for which the sender is a default router; zero if it is none.
        pub router_time: Option<Duration>,
        /// MTU of the link.
        pub link_mtu: Option<u32> [octets],
        /// Prefixes of the link.
        pub prefixes: Vec<Group<Prefix>> [sparse],
        /// Addresses of DNS servers.
        pub router_dns_servers: Vec<IpAddr> [sparse],
    }
}

/// A prefix that a router announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prefix {
    /// First address.
    pub address: IpAddr,
    /// Number of bits.
    pub len: u8,
    /// True if hosts with the prefix are on the link.
    pub is_on_link: bool,
    /// True if hosts may form addresses with it.
    pub is_autonomous: bool,
    /// Time for which it is valid, in seconds; `u32::MAX` is without end.
    pub valid_seconds: u32,
}

crate::table! {
    /// A prefix that a router announces.
    impl "neighbor.prefix" for Prefix as prefix {
        /// First address.
        "address": IpAddr = prefix.address;
        /// Number of bits.
        "prefix_len": u8 = prefix.len;
        /// True if hosts with the prefix are on the link.
        "is_on_link": bool = prefix.is_on_link;
        /// True if hosts may form addresses with it.
        "is_autonomous": bool = prefix.is_autonomous;
        /// Time for which the prefix is valid; 4,294,967,295 s is without end.
        "valid_time": Duration = Duration::from_secs(prefix.valid_seconds.into());
    }
}

/// Kinds of options (IANA "IPv6 Neighbor Discovery Option Formats").
mod option {
    pub(super) const SOURCE: u8 = 1;
    pub(super) const TARGET: u8 = 2;
    pub(super) const PREFIX: u8 = 3;
    pub(super) const MTU: u8 = 5;
    pub(super) const DNS_SERVERS: u8 = 25;
}

impl Ndp {
    pub(super) fn read(octets: &[u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        let mut ndp = whole(|| Ok((Self::fixed(&mut reader)?, true)))?.0;
        let mut options = reader.rest();
        while let [kind, units, ..] = *options {
            let len = usize::from(units) * 8;
            let Some((option, rest)) = options.split_at_checked(len).filter(|_| len > 0) else { break };
            if ndp.option(kind, option.get(2..).unwrap_or_default()).is_err() {
                return Some((ndp, false));
            }
            options = rest;
        }
        let is_valid = options.is_empty();
        Some((ndp, is_valid))
    }

    fn fixed(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let mut ndp = Self { ndp_type: NdpKind(reader.be()?), ..Self::default() };
        // Code and checksum.
        reader.skip(3)?;
        if ndp.ndp_type.0 == 134 {
            let (hop_limit, flags): (u8, u8) = (reader.be()?, reader.be()?);
            ndp.proposed_hop_limit = Some(hop_limit).filter(|hop_limit| *hop_limit > 0);
            ndp.is_managed = Some(flags & 0x80 != 0);
            ndp.is_other_managed = Some(flags & 0x40 != 0);
            ndp.router_preference = match flags >> 3 & 3 {
                0 => Some(Name("medium")),
                1 => Some(Name("high")),
                3 => Some(Name("low")),
                _ => None,
            };
            ndp.router_time = Some(Duration::from_secs(reader.be::<u16>()?.into()));
            ndp.is_router = Some(true);
            // Times of reachability and of retransmission.
            reader.skip(8)?;
            return Ok(ndp);
        }
        let flags: u32 = reader.be()?;
        if ndp.ndp_type.0 != 133 {
            ndp.target_address = Some(v6(reader.array()?));
        }
        match ndp.ndp_type.0 {
            136 => {
                ndp.is_router = Some(flags >> 31 & 1 == 1);
                ndp.is_solicited = Some(flags >> 30 & 1 == 1);
                ndp.is_override = Some(flags >> 29 & 1 == 1);
            }
            137 => ndp.redirected_address = Some(v6(reader.array()?)),
            _ => {}
        }
        Ok(ndp)
    }

    /// Reads the content of an option.
    fn option(&mut self, kind: u8, content: &[u8]) -> Result<(), ReadError> {
        let mut reader = Reader::new(content);
        match kind {
            option::SOURCE if content.len() == 6 => self.sender_mac = Some(reader.array()?),
            option::TARGET if content.len() == 6 => self.target_mac = Some(reader.array()?),
            option::PREFIX => {
                let [len, flags] = reader.array()?;
                let valid_seconds = reader.be()?;
                reader.skip(8)?;
                let prefix = Prefix {
                    address: v6(reader.array()?),
                    len,
                    is_on_link: flags & 0x80 != 0,
                    is_autonomous: flags & 0x40 != 0,
                    valid_seconds,
                };
                add(&mut self.prefixes, Group(prefix));
            }
            option::MTU => {
                reader.skip(2)?;
                self.link_mtu = Some(reader.be()?);
            }
            option::DNS_SERVERS => {
                reader.skip(2)?;
                // Servers with no time left are withdrawn.
                if reader.be::<u32>()? == 0 {
                    return Ok(());
                }
                addresses(reader.rest(), v6)
                    .into_iter()
                    .for_each(|server| add(&mut self.router_dns_servers, server));
            }
            _ => {}
        }
        Ok(())
    }
}
