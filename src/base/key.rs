//! The Flow Key: whose packets these are, the same for both directions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::code_point::IpProtocol;
use super::vlan::VlanIds;

/// One of the two ends of a flow, in the canonical order of its key.
///
/// `A` is the end whose address (then port) is the lower one. That is a fact of the key; which end began the
/// conversation is a finding of the tracker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Side {
    /// The lower end.
    #[default]
    A = 0,
    /// The higher end.
    B = 1,
}

impl Side {
    /// The opposite end.
    #[must_use]
    #[inline]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// 0 or 1, for arrays that are kept per side.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What sort of number stands where a key keeps ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ports {
    /// Transport ports of end A and end B.
    Transport(u16, u16),
    /// ICMP, paired as the Community ID specification does: the type that end A sends and the type that
    /// answers it; for a type that has no answer, type and code, and A is the sender.
    Icmp {
        /// The type.
        kind: u8,
        /// The answering type, or the code.
        counterpart: u8,
        /// The echo identifier, if the [`KeyPolicy`](crate::extractor::KeyPolicy) puts it into the key.
        echo_id: Option<u16>,
    },
    /// The address pair alone: a protocol without ports, a policy that leaves them out, or a fragment or cut
    /// packet in which they cannot be seen.
    None,
}

/// The Flow Key (RFC 7011) of a biflow: two ends, the protocol, and what else tells networks apart.
///
/// 48 octets, `Copy`, in canonical order: both directions of a conversation have the same key, and the
/// [`Side`] of a packet says which of the ends sent it. Built by the [`extractor`](crate::extractor), or by
/// [`FlowKey::new`] for look-ups.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    // [a high, a low, b high, b low, ports and scope, VLAN ids, VNI, protocol and flags]: six words compare and
    // hash in a few instructions, and the order of the words makes Ord sort by address first.
    words: [u64; 6],
}

const IPV6: u64 = 1;
const PORTS: u64 = 1 << 1;
const ICMP: u64 = 1 << 2;
const ECHO_ID: u64 = 1 << 3;
const VNI: u64 = 1 << 4;
const ONE_WAY: u64 = 1 << 5;
const NO_KEY: u64 = 1 << 7;

impl FlowKey {
    /// The key of a conversation between two ends with ports, and the side on which `source` came to stand.
    ///
    /// Addresses of two families give a key that no packet has.
    #[must_use]
    pub fn new(protocol: IpProtocol, source: (IpAddr, u16), destination: (IpAddr, u16)) -> (Self, Side) {
        let bits = |address| match address {
            IpAddr::V4(v4) => u128::from(Ipv4Addr::to_bits(v4)),
            IpAddr::V6(v6) => Ipv6Addr::to_bits(v6),
        };
        let is_ipv6 = source.0.is_ipv6() || destination.0.is_ipv6();
        Self::ordered(
            protocol,
            is_ipv6,
            (bits(source.0), source.1),
            (bits(destination.0), destination.1),
            true,
        )
    }

    /// What no packet has: the key of an entry that holds no flow.
    pub(crate) const VACANT: Self = Self { words: [0, 0, 0, 0, 0, NO_KEY] };

    /// A key in canonical order and the side of the source; ports count only if `has_ports`.
    #[inline]
    pub(crate) fn ordered(
        protocol: IpProtocol,
        is_ipv6: bool,
        source: (u128, u16),
        destination: (u128, u16),
        has_ports: bool,
    ) -> (Self, Side) {
        let flags = if is_ipv6 { IPV6 } else { 0 } | if has_ports { PORTS } else { 0 };
        let (a, b, side) = if source <= destination {
            (source, destination, Side::A)
        } else {
            (destination, source, Side::B)
        };
        (Self::from_ends(protocol, flags, a, b), side)
    }

    /// The IPv4 case of [`FlowKey::ordered`] for the fast path: address and port compare as one integer.
    #[inline(always)]
    pub(crate) fn ordered_v4(
        protocol: IpProtocol,
        source: (u32, u16),
        destination: (u32, u16),
        scope: u32,
    ) -> (Self, Side) {
        let source = u64::from(source.0) << 16 | u64::from(source.1);
        let destination = u64::from(destination.0) << 16 | u64::from(destination.1);
        let side = if source > destination { Side::B } else { Side::A };
        let (a, b) = (source.min(destination), source.max(destination));
        let ports = (a & 0xffff) << 48 | (b & 0xffff) << 32;
        let words = [0, a >> 16, 0, b >> 16, ports | u64::from(scope), u64::from(protocol.0) << 8 | PORTS];
        (Self { words }, side)
    }

    /// A key whose end A is the sender, whatever the order of the addresses: one-way ICMP, and uniflows.
    pub(crate) fn directed(
        protocol: IpProtocol,
        is_ipv6: bool,
        source: (u128, u16),
        destination: (u128, u16),
        has_ports: bool,
    ) -> Self {
        let flags = if is_ipv6 { IPV6 } else { 0 } | if has_ports { PORTS } else { 0 };
        Self::from_ends(protocol, flags, source, destination)
    }

    #[inline]
    fn from_ends(protocol: IpProtocol, flags: u64, a: (u128, u16), b: (u128, u16)) -> Self {
        let high = |address: u128| (address >> 64) as u64;
        let ports = u64::from(a.1) << 48 | u64::from(b.1) << 32;
        let words = [high(a.0), a.0 as u64, high(b.0), b.0 as u64, ports, u64::from(protocol.0) << 8 | flags];
        Self { words }
    }

    /// Marks the ports as ICMP type and counterpart, with the echo identifier in their high octets if given.
    pub(crate) fn with_icmp(mut self, is_one_way: bool, echo_id: Option<u16>) -> Self {
        self.words[5] = self.words[5] & !PORTS | ICMP | if is_one_way { ONE_WAY } else { 0 };
        if let Some(id) = echo_id {
            self.words[4] |= u64::from(id >> 8) << 56 | u64::from(id & 0xff) << 40;
            self.words[5] |= ECHO_ID;
        }
        self
    }

    /// The key with the caller's scope: an interface, a tenant, an observation domain.
    #[must_use]
    #[inline]
    pub const fn with_scope(mut self, scope: u32) -> Self {
        self.words[4] = self.words[4] & !0xffff_ffff | scope as u64;
        self
    }

    /// The key with VLAN ids as a part of it.
    #[must_use]
    #[inline]
    pub const fn with_vlan_ids(mut self, vlan_ids: VlanIds) -> Self {
        self.words[5] = self.words[5] & 0x0000_00ff_ffff_ffff | (vlan_ids.to_bits() as u64) << 40;
        self
    }

    /// The key with a virtual network identifier of 24 bits (VXLAN, GENEVE, NVGRE) as a part of it.
    #[must_use]
    #[inline]
    pub const fn with_vni(mut self, vni: u32) -> Self {
        self.words[5] = self.words[5] & !0xff_ffff_0000 | ((vni & 0xff_ffff) as u64) << 16 | VNI;
        self
    }

    /// The address of an end.
    #[must_use]
    pub fn address(&self, side: Side) -> IpAddr {
        let [high, low] = [self.words[side.index() * 2], self.words[side.index() * 2 + 1]];
        if self.is_ipv6() {
            IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
        } else {
            IpAddr::V4(Ipv4Addr::from_bits(low as u32))
        }
    }

    /// Whether both addresses are of IPv6.
    #[must_use]
    #[inline]
    pub const fn is_ipv6(&self) -> bool {
        self.words[5] & IPV6 != 0
    }

    /// The IP protocol.
    #[must_use]
    #[inline]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol((self.words[5] >> 8) as u8)
    }

    /// What stands in place of the ports.
    #[must_use]
    pub const fn ports(&self) -> Ports {
        let [a, b] = self.raw_ports();
        let flags = self.words[5];
        if flags & ICMP != 0 {
            let echo_id = if flags & ECHO_ID != 0 { Some(a & 0xff00 | b >> 8) } else { None };
            Ports::Icmp { kind: a as u8, counterpart: b as u8, echo_id }
        } else if flags & PORTS != 0 {
            Ports::Transport(a, b)
        } else {
            Ports::None
        }
    }

    /// Whether this is an ICMP type that nothing answers: end A sent it, whatever the order of the addresses.
    #[must_use]
    pub const fn is_one_way_icmp(&self) -> bool {
        self.words[5] & ONE_WAY != 0
    }

    /// The transport port of an end; zero where the key has none.
    #[must_use]
    #[inline]
    pub const fn port(&self, side: Side) -> u16 {
        if self.words[5] & PORTS == 0 { 0 } else { self.raw_ports()[side.index()] }
    }

    const fn raw_ports(&self) -> [u16; 2] {
        [(self.words[4] >> 48) as u16, (self.words[4] >> 32) as u16]
    }

    /// The caller's scope.
    #[must_use]
    #[inline]
    pub const fn scope(&self) -> u32 {
        self.words[4] as u32
    }

    /// The VLAN ids that are a part of the key; empty unless the policy asks for them.
    #[must_use]
    pub const fn vlan_ids(&self) -> VlanIds {
        VlanIds::from_bits((self.words[5] >> 40) as u32)
    }

    /// The virtual network identifier, if it is a part of the key.
    #[must_use]
    pub const fn vni(&self) -> Option<u32> {
        if self.words[5] & VNI == 0 { None } else { Some((self.words[5] >> 16) as u32 & 0xff_ffff) }
    }
}

impl FlowKey {
    /// A cheap mixture of what differs most between flows, good in its high bits; not keyed, so only for guesses.
    #[inline(always)]
    pub(crate) const fn mixed(&self) -> u64 {
        let [_, a_low, _, b_low, ports, _] = self.words;
        (a_low ^ b_low.rotate_left(32) ^ ports.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl PartialEq for FlowKey {
    // Derived, this would be a call of memcmp.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let differences = self.words.iter().zip(&other.words).map(|(own, others)| own ^ others);
        differences.fold(0, |all, difference| all | difference) == 0
    }
}

impl Hash for FlowKey {
    /// Two words at a time; the upper halves of IPv4 addresses, which are zero, are left out.
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let [a_high, a_low, b_high, b_low, ports, rest] = self.words;
        if self.is_ipv6() {
            state.write_u128(join(a_high, b_high));
        }
        state.write_u128(join(a_low, b_low));
        state.write_u128(join(ports, rest));
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowKey({self})")
    }
}

impl fmt::Display for FlowKey {
    /// `tcp 10.0.0.1:80 <-> 10.0.0.2:3456`, with what else is in the key behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = [self.address(Side::A), self.address(Side::B)];
        let end = |address: IpAddr, port: u16| match address {
            IpAddr::V4(v4) => format!("{v4}:{port}"),
            IpAddr::V6(v6) => format!("[{v6}]:{port}"),
        };
        write!(f, "{} ", self.protocol())?;
        match self.ports() {
            Ports::Transport(port_a, port_b) => write!(f, "{} <-> {}", end(a, port_a), end(b, port_b))?,
            Ports::Icmp { kind, counterpart, echo_id } => {
                write!(f, "{a} <-> {b} {kind}/{counterpart}")?;
                if let Some(id) = echo_id {
                    write!(f, " id {id}")?;
                }
            }
            Ports::None => write!(f, "{a} <-> {b}")?,
        }
        if !self.vlan_ids().is_empty() {
            write!(f, " vlan {}", self.vlan_ids())?;
        }
        if let Some(vni) = self.vni() {
            write!(f, " vni {vni}")?;
        }
        if self.scope() != 0 {
            write!(f, " scope {}", self.scope())?;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for FlowKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("FlowKey", 7)?;
        out.serialize_field("protocol", &self.protocol())?;
        out.serialize_field("a_address", &self.address(Side::A))?;
        out.serialize_field("b_address", &self.address(Side::B))?;
        match self.ports() {
            Ports::Transport(a, b) => {
                out.serialize_field("a_port", &a)?;
                out.serialize_field("b_port", &b)?;
            }
            Ports::Icmp { kind, counterpart, echo_id } => {
                out.serialize_field("icmp_type", &kind)?;
                out.serialize_field("icmp_counterpart", &counterpart)?;
                out.serialize_field("icmp_echo_id", &echo_id)?;
            }
            Ports::None => {}
        }
        out.serialize_field("vlan_ids", &self.vlan_ids())?;
        out.serialize_field("vni", &self.vni())?;
        out.serialize_field("scope", &self.scope())?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> ((IpAddr, u16), (IpAddr, u16)) {
        (("10.0.0.9".parse().unwrap(), 40_000), ("10.0.0.1".parse().unwrap(), 80))
    }

    #[test]
    fn both_directions_have_one_key_and_opposite_sides() {
        let (client, server) = ends();
        let (there, side) = FlowKey::new(IpProtocol::TCP, client, server);
        let (back, back_side) = FlowKey::new(IpProtocol::TCP, server, client);
        assert_eq!((there, side), (back, back_side.other()));
        assert_eq!(side, Side::B);
        assert_eq!((there.address(side), there.port(side)), client);
        assert_eq!((there.address(Side::A), there.port(Side::A)), server);
    }

    #[test]
    fn the_fast_order_is_the_general_order() {
        let cases = [
            (1, 2, 3, 4),
            (3, 4, 1, 2),
            (7, 9, 7, 8),
            (7, 8, 7, 9),
            (5, 5, 5, 5),
            (u32::MAX, 0, 0, u16::MAX),
        ];
        for (source, source_port, destination, destination_port) in cases {
            let fast = FlowKey::ordered_v4(
                IpProtocol::UDP,
                (source, source_port),
                (destination, destination_port),
                6,
            );
            let (key, side) = FlowKey::ordered(
                IpProtocol::UDP,
                false,
                (source.into(), source_port),
                (destination.into(), destination_port),
                true,
            );
            assert_eq!(fast, (key.with_scope(6), side));
        }
    }

    #[test]
    fn every_part_of_the_key_comes_back() {
        let (client, server) = ends();
        let vlan_ids = VlanIds::default().push(100).push(4095);
        let (plain, _) = FlowKey::new(IpProtocol::SCTP, client, server);
        let key = plain.with_scope(u32::MAX).with_vlan_ids(vlan_ids).with_vni(0xab_cdef);
        assert_eq!(key.scope(), u32::MAX);
        assert_eq!(key.vlan_ids(), vlan_ids);
        assert_eq!(key.vni(), Some(0xab_cdef));
        assert_eq!(key.protocol(), IpProtocol::SCTP);
        assert_eq!(key.ports(), Ports::Transport(80, 40_000));
        assert_eq!(plain.vni(), None);
        assert_eq!(
            key.to_string(),
            "sctp 10.0.0.1:80 <-> 10.0.0.9:40000 vlan 100.4095 vni 11259375 scope 4294967295"
        );
    }

    #[test]
    fn icmp_carries_types_and_the_echo_id() {
        let (key, _) = FlowKey::ordered(IpProtocol::ICMP, false, (1, 8), (2, 0), true);
        let with_id = key.with_icmp(false, Some(0xbeef));
        assert_eq!(with_id.ports(), Ports::Icmp { kind: 8, counterpart: 0, echo_id: Some(0xbeef) });
        assert_eq!(
            key.with_icmp(false, None).ports(),
            Ports::Icmp { kind: 8, counterpart: 0, echo_id: None }
        );
        assert_eq!(with_id.port(Side::A), 0);
    }

    #[test]
    fn a_key_is_48_octets() {
        assert_eq!(size_of::<FlowKey>(), 48);
    }
}
