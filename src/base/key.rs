//! The Flow Key, which identifies a flow and has the same value for both directions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::code_point::IpProtocol;
use super::vlan::VlanIds;

/// One of the two ends of a flow, in the canonical order of its key.
///
/// `A` is the end with the lower address or, if the addresses are equal, with the lower port. The side is a property
/// of the key; the tracker determines which end is the initiator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Side {
    /// The end with the lower address or, if the addresses are equal, with the lower port.
    #[default]
    A = 0,
    /// The end with the higher address or, if the addresses are equal, with the higher port.
    B = 1,
}

impl Side {
    /// Returns the opposite side of the flow.
    #[must_use]
    #[inline]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Returns 0 for side A and 1 for side B, as an index of arrays with one element per side.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The meaning of the port fields of a flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ports {
    /// Transport port of end A, then of end B.
    Transport(u16, u16),
    /// ICMP types, paired as in the Community ID specification: the type that end A sends and the type of the reply.
    /// For a type without a reply: type and code, and end A is the sender.
    Icmp {
        /// The ICMP type that end A sends.
        kind: u8,
        /// The ICMP type of the reply or, for a type without a reply, the code.
        counterpart: u8,
        /// The ICMP echo identifier, if the [`KeyPolicy`](crate::decode::extractor::KeyPolicy) includes it in the
        /// key.
        echo_id: Option<u16>,
    },
    /// The key contains addresses only: the protocol has no ports, the policy excludes them, or the packet is a
    /// fragment or truncated and its ports are unknown.
    None,
}

/// The Flow Key (RFC 7011) of a biflow: two ends, the protocol, and optional identifiers of the network.
///
/// 48 octets, `Copy`, in canonical order: both directions of a conversation have the same key, and the [`Side`] of a
/// packet states which end sent it. Created by the [`extractor`](crate::decode::extractor), or by [`FlowKey::new`]
/// for look-ups.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    // [a high, a low, b high, b low, ports and scope, VLAN ids, VNI, protocol and flags]: six words compare and hash
    // in a few instructions, and the order of the words makes Ord sort by address first.
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
    /// Creates the key of a conversation between two ends with ports, and returns it with the side of `source`.
    ///
    /// Addresses of different families give a key that no packet has.
    #[must_use]
    pub fn new(protocol: IpProtocol, source: (IpAddr, u16), destination: (IpAddr, u16)) -> (Self, Side) {
        let is_ipv6 = source.0.is_ipv6() || destination.0.is_ipv6();
        Self::ordered(
            protocol,
            is_ipv6,
            (address_bits(source.0), source.1),
            (address_bits(destination.0), destination.1),
            true,
        )
    }

    /// Creates the key of a TCP connection, and returns it with the side of `source`.
    #[must_use]
    pub fn tcp(source: SocketAddr, destination: SocketAddr) -> (Self, Side) {
        Self::new(IpProtocol::TCP, (source.ip(), source.port()), (destination.ip(), destination.port()))
    }

    /// Creates the key of a UDP flow, and returns it with the side of `source`.
    #[must_use]
    pub fn udp(source: SocketAddr, destination: SocketAddr) -> (Self, Side) {
        Self::new(IpProtocol::UDP, (source.ip(), source.port()), (destination.ip(), destination.port()))
    }

    /// Creates the key of an address pair, for a protocol without ports, and returns it with the side of `source`.
    #[must_use]
    pub fn pair(protocol: IpProtocol, source: IpAddr, destination: IpAddr) -> (Self, Side) {
        let is_ipv6 = source.is_ipv6() || destination.is_ipv6();
        Self::ordered(protocol, is_ipv6, (address_bits(source), 0), (address_bits(destination), 0), false)
    }

    /// Flow key of a table entry without a flow; no packet has this key.
    pub(crate) const VACANT: Self = Self { words: [0, 0, 0, 0, 0, NO_KEY] };

    /// Returns the words of the key, for a checkpoint.
    pub(crate) const fn words(&self) -> [u64; 6] {
        self.words
    }

    /// Returns the key with the words that [`words`](Self::words) returned; `None` if no packet has such a key.
    pub(crate) fn from_words(words: [u64; 6]) -> Option<Self> {
        const KNOWN: u64 = IPV6 | PORTS | ICMP | ECHO_ID | VNI | ONE_WAY;
        let [a_high, a_low, b_high, b_low, _, rest] = words;
        let is_plain = rest & IPV6 != 0 || (a_high | b_high | a_low >> 32 | b_low >> 32) == 0;
        (is_plain && rest & 0xff & !KNOWN == 0).then_some(Self { words })
    }

    /// Creates a flow key with its ends in canonical order, and returns it with the side of the source. The ports are
    /// significant only if `has_ports`.
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

    /// Implements [`FlowKey::ordered`] for IPv4 with ports on the fast path: address and port compare as one integer.
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

    /// Creates a flow key whose end A is the sender, regardless of the order of the addresses: for ICMP types without
    /// a reply, and uniflows.
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

    /// Returns the key with its port fields marked as ICMP type and counterpart, and with the echo identifier, if
    /// any, in their high octets.
    pub(crate) fn with_icmp(mut self, is_one_way: bool, echo_id: Option<u16>) -> Self {
        self.words[5] = self.words[5] & !PORTS | ICMP | if is_one_way { ONE_WAY } else { 0 };
        if let Some(id) = echo_id {
            self.words[4] |= u64::from(id >> 8) << 56 | u64::from(id & 0xff) << 40;
            self.words[5] |= ECHO_ID;
        }
        self
    }

    /// Returns the flow key with a scope that the caller chooses: an interface, a tenant, an observation domain.
    #[must_use]
    #[inline]
    pub const fn with_scope(mut self, scope: u32) -> Self {
        self.words[4] = self.words[4] & !0xffff_ffff | scope as u64;
        self
    }

    /// Returns the flow key with VLAN ids.
    #[must_use]
    #[inline]
    pub const fn with_vlan_ids(mut self, vlan_ids: VlanIds) -> Self {
        self.words[5] = self.words[5] & 0x0000_00ff_ffff_ffff | (vlan_ids.to_bits() as u64) << 40;
        self
    }

    /// Returns the flow key with a virtual network identifier of 24 bits (VXLAN, GENEVE, NVGRE).
    #[must_use]
    #[inline]
    pub const fn with_vni(mut self, vni: u32) -> Self {
        self.words[5] = self.words[5] & !0xff_ffff_0000 | ((vni & 0xff_ffff) as u64) << 16 | VNI;
        self
    }

    /// Returns the address of one end of the flow.
    #[must_use]
    pub fn address(&self, side: Side) -> IpAddr {
        let [high, low] = [self.words[side.index() * 2], self.words[side.index() * 2 + 1]];
        if self.is_ipv6() {
            IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)))
        } else {
            IpAddr::V4(Ipv4Addr::from_bits(low as u32))
        }
    }

    /// Returns whether both addresses of the key are IPv6 addresses.
    #[must_use]
    #[inline]
    pub const fn is_ipv6(&self) -> bool {
        self.words[5] & IPV6 != 0
    }

    /// Returns the IP protocol of the key.
    #[must_use]
    #[inline]
    pub const fn protocol(&self) -> IpProtocol {
        IpProtocol((self.words[5] >> 8) as u8)
    }

    /// Returns the ports of the key, or the values that it contains in their place.
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

    /// Returns whether the key belongs to an ICMP type without a reply: end A is then the sender, regardless of the
    /// order of the addresses.
    #[must_use]
    pub const fn is_one_way_icmp(&self) -> bool {
        self.words[5] & ONE_WAY != 0
    }

    /// Returns the transport port of one end of the flow; `None` if the key has no ports. Port 0 is a valid port.
    #[must_use]
    #[inline]
    pub const fn port(&self, side: Side) -> Option<u16> {
        if self.words[5] & PORTS == 0 { None } else { Some(self.raw_ports()[side.index()]) }
    }

    /// Returns the transport port of one end of the flow, or zero if the key has no ports: for comparisons with
    /// nonzero ports.
    #[inline]
    pub(crate) const fn raw_port(&self, side: Side) -> u16 {
        if self.words[5] & PORTS == 0 { 0 } else { self.raw_ports()[side.index()] }
    }

    /// Returns whether the ends are in the order of their addresses and ports. Those of a uniflow, and of an ICMP type
    /// without a reply, need not be.
    #[cfg(feature = "serde")]
    pub(super) fn is_ordered(&self) -> bool {
        let [a_high, a_low, b_high, b_low, ..] = self.words;
        let [a_port, b_port] = self.raw_ports();
        let echo_id = if self.words[5] & ECHO_ID != 0 { 0xff } else { 0xffff };
        (a_high, a_low, a_port & echo_id) <= (b_high, b_low, b_port & echo_id)
    }

    const fn raw_ports(&self) -> [u16; 2] {
        [(self.words[4] >> 48) as u16, (self.words[4] >> 32) as u16]
    }

    /// Returns the scope of the key, which the caller chose with [`with_scope`](Self::with_scope).
    #[must_use]
    #[inline]
    pub const fn scope(&self) -> u32 {
        self.words[4] as u32
    }

    /// Returns the VLAN ids in the key; empty unless the key policy includes them.
    #[must_use]
    pub const fn vlan_ids(&self) -> VlanIds {
        VlanIds::from_bits((self.words[5] >> 40) as u32)
    }

    /// Returns the virtual network identifier in the key, if it contains one.
    #[must_use]
    pub const fn vni(&self) -> Option<u32> {
        if self.words[5] & VNI == 0 { None } else { Some((self.words[5] >> 16) as u32 & 0xff_ffff) }
    }
}

/// Converts an IP address to an integer. An IPv4 address is in the lower 32 bits.
pub(crate) fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(Ipv4Addr::to_bits(v4)),
        IpAddr::V6(v6) => Ipv6Addr::to_bits(v6),
    }
}

impl FlowKey {
    /// Returns a fast hash of the words of the key that differ most between flows, with good high bits. The hash has
    /// no secret seed, so it may be used only for guesses.
    #[inline(always)]
    pub(crate) const fn mixed(&self) -> u64 {
        let [_, a_low, _, b_low, ports, _] = self.words;
        (a_low ^ b_low.rotate_left(32) ^ ports.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl PartialEq for FlowKey {
    // A derived implementation would call memcmp.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let differences = self.words.iter().zip(&other.words).map(|(own, others)| own ^ others);
        differences.fold(0, |all, difference| all | difference) == 0
    }
}

impl Hash for FlowKey {
    /// Hashes the key two words at a time, without the upper halves of IPv4 addresses, which are zero.
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
    /// Writes the key as `tcp 10.0.0.1:80 <-> 10.0.0.2:3456`, followed by its optional parts.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> ((IpAddr, u16), (IpAddr, u16)) {
        (("10.0.0.9".parse().unwrap(), 40_000), ("10.0.0.1".parse().unwrap(), 80))
    }

    #[test]
    fn both_directions_have_the_same_key_and_opposite_sides() {
        let (client, server) = ends();
        let (there, side) = FlowKey::new(IpProtocol::TCP, client, server);
        let (back, back_side) = FlowKey::new(IpProtocol::TCP, server, client);
        assert_eq!((there, side), (back, back_side.other()));
        assert_eq!(side, Side::B);
        assert_eq!((there.address(side), there.port(side)), (client.0, Some(client.1)));
        assert_eq!((there.address(Side::A), there.port(Side::A)), (server.0, Some(server.1)));
    }

    #[test]
    fn the_fast_comparison_equals_the_general_one() {
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
    fn every_part_of_the_key_is_preserved() {
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
    fn icmp_keys_contain_types_and_the_echo_id() {
        let (key, _) = FlowKey::ordered(IpProtocol::ICMP, false, (1, 8), (2, 0), true);
        let with_id = key.with_icmp(false, Some(0xbeef));
        assert_eq!(with_id.ports(), Ports::Icmp { kind: 8, counterpart: 0, echo_id: Some(0xbeef) });
        assert_eq!(
            key.with_icmp(false, None).ports(),
            Ports::Icmp { kind: 8, counterpart: 0, echo_id: None }
        );
        assert_eq!((with_id.port(Side::A), with_id.raw_port(Side::A)), (None, 0));
    }

    #[test]
    fn port_zero_is_a_valid_port() {
        let (client, (server, _)) = ends();
        let (key, side) = FlowKey::new(IpProtocol::UDP, client, (server, 0));
        assert_eq!((key.port(side), key.port(side.other())), (Some(client.1), Some(0)));
        let (pair, side) = FlowKey::pair(IpProtocol::UDP, client.0, server);
        assert_eq!((pair.port(side), pair.port(side.other())), (None, None));
    }

    #[test]
    fn a_key_occupies_48_bytes() {
        assert_eq!(size_of::<FlowKey>(), 48);
    }
}
