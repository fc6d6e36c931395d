//! Settings of the walk: decapsulation, and the UDP ports that identify tunnels.

/// Selection of the packet that a frame counts for, among several nested IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decapsulation {
    /// The innermost packet: tunnels are decapsulated.
    #[default]
    Innermost,
    /// The outermost packet: a tunnel is a flow like any other.
    Outermost,
    /// The innermost packet and, in a [`Pipeline`](crate::pipeline::Pipeline), also each packet around it;
    /// the flows of these packets are linked to each other. Functions that return only one packet, such as
    /// [`decapsulate`](super::decapsulate), return the innermost.
    Both,
}

/// Tunnel protocol in UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UdpTunnel {
    /// VXLAN (RFC 7348), by destination port.
    Vxlan,
    /// VXLAN-GPE, by destination port.
    VxlanGpe,
    /// GENEVE (RFC 8926), by destination port.
    Geneve,
    /// GTP-U (3GPP TS 29.281), by either port.
    GtpU,
    /// Teredo (RFC 4380), by either port.
    Teredo,
    /// MPLS (RFC 7510), by destination port.
    Mpls,
    /// L2TP (RFC 2661, RFC 3931), by either port.
    L2tp,
    /// GRE (RFC 8086), by destination port.
    Gre,
    /// TaZmen Sniffer Protocol, by destination port.
    Tzsp,
    /// LISP (RFC 9300), by destination port.
    Lisp,
    /// Remote mirroring by switches of HP, by destination port.
    HpErm,
    /// AYIYA (draft-massar-v6ops-ayiya-02), by either port.
    Ayiya,
    /// Data of CAPWAP (RFC 5415), by either port.
    Capwap,
}

impl UdpTunnel {
    /// Returns whether the source port identifies the tunnel protocol too, because a server replies from its
    /// well-known port.
    const fn is_by_either_port(self) -> bool {
        matches!(self, Self::Teredo | Self::L2tp | Self::GtpU | Self::Ayiya | Self::Capwap)
    }
}

/// UDP ports that identify tunnels, at most [`TunnelPorts::COUNT_MAX`] of them. `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelPorts {
    entries: [Option<(u16, UdpTunnel)>; Self::COUNT_MAX],
}

impl TunnelPorts {
    /// Maximum number of ports in the list.
    pub const COUNT_MAX: usize = 16;

    /// Empty list: no UDP port identifies a tunnel.
    pub const NONE: Self = Self { entries: [None; Self::COUNT_MAX] };

    /// Default ports: VXLAN 4789 (and 8472, the old default of Linux), VXLAN-GPE 4790, GENEVE 6081, GTP-U
    /// 2152, Teredo 3544, MPLS 6635, L2TP 1701, GRE 4754, TZSP 37008, LISP 4341, mirroring of HP 7932, AYIYA 5072,
    /// CAPWAP 5247.
    pub const DEFAULT: Self = {
        let mut ports = Self::NONE;
        ports.entries[0] = Some((4789, UdpTunnel::Vxlan));
        ports.entries[1] = Some((8472, UdpTunnel::Vxlan));
        ports.entries[2] = Some((4790, UdpTunnel::VxlanGpe));
        ports.entries[3] = Some((6081, UdpTunnel::Geneve));
        ports.entries[4] = Some((2152, UdpTunnel::GtpU));
        ports.entries[5] = Some((3544, UdpTunnel::Teredo));
        ports.entries[6] = Some((6635, UdpTunnel::Mpls));
        ports.entries[7] = Some((1701, UdpTunnel::L2tp));
        ports.entries[8] = Some((4754, UdpTunnel::Gre));
        ports.entries[9] = Some((37_008, UdpTunnel::Tzsp));
        ports.entries[10] = Some((4341, UdpTunnel::Lisp));
        ports.entries[11] = Some((7932, UdpTunnel::HpErm));
        ports.entries[12] = Some((5072, UdpTunnel::Ayiya));
        ports.entries[13] = Some((5247, UdpTunnel::Capwap));
        ports
    };

    /// Returns the list with a port and its tunnel protocol added, or with the protocol of a listed port
    /// replaced; `None` if the list is full.
    #[must_use]
    pub fn with(mut self, port: u16, tunnel: UdpTunnel) -> Option<Self> {
        let is_of = |entry: &Option<(u16, UdpTunnel)>| entry.is_some_and(|(own, _)| own == port);
        let index = self.entries.iter().position(is_of);
        let index = index.or_else(|| self.entries.iter().position(Option::is_none))?;
        *self.entries.get_mut(index)? = Some((port, tunnel));
        Some(self)
    }

    /// Returns the list with a port removed.
    #[must_use]
    pub fn without(mut self, port: u16) -> Self {
        for entry in &mut self.entries {
            *entry = entry.filter(|(own, _)| *own != port);
        }
        self
    }

    /// Returns the ports in the list with their tunnel protocols.
    pub fn iter(&self) -> impl Iterator<Item = (u16, UdpTunnel)> {
        self.entries.iter().flatten().copied()
    }

    /// Returns the tunnel protocol of a UDP datagram with the given source and destination ports.
    pub(crate) fn tunnel(&self, source: u16, destination: u16) -> Option<UdpTunnel> {
        let by_destination = self.iter().find(|(port, _)| *port == destination);
        let by_source = || self.iter().find(|(port, tunnel)| *port == source && tunnel.is_by_either_port());
        by_destination.or_else(by_source).map(|(_, tunnel)| tunnel)
    }

    /// Returns the set of all ports in the list, for a fast check; it has none if tunnels are not decapsulated. The ports
    /// `others`, whose packets take the general path too, are added as long as there is room.
    #[cfg_attr(not(test), expect(clippy::indexing_slicing, reason = "the loop ends where both arrays do"))]
    pub(crate) const fn all(&self, decapsulation: Decapsulation, others: [u16; 2]) -> PortSet {
        let mut ports = [0; Self::COUNT_MAX];
        let mut index = 0;
        while index < Self::COUNT_MAX {
            if let Some((port, _)) = self.entries[index]
                && !matches!(decapsulation, Decapsulation::Outermost)
            {
                ports[index] = port;
            }
            index += 1;
        }
        let (mut other, mut index) = (0, 0);
        while other < others.len() && index < Self::COUNT_MAX {
            if ports[index] == 0 {
                ports[index] = others[other];
                other += 1;
            }
            index += 1;
        }
        PortSet(ports)
    }
}

impl Default for TunnelPorts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Set of UDP ports that identify tunnels; unused entries are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortSet([u16; TunnelPorts::COUNT_MAX]);

impl PortSet {
    /// Returns whether at least one of two ports is in the set (or is zero, if the set has unused entries).
    /// Compares both ports with all entries without a branch.
    #[inline(always)]
    pub(crate) fn has_any(&self, [source, destination]: [u16; 2]) -> bool {
        self.0.iter().fold(false, |found, port| found | (*port == source) | (*port == destination))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnel_ports_are_configurable() {
        let ports = TunnelPorts::DEFAULT.without(8472).with(4789, UdpTunnel::Geneve).unwrap();
        assert_eq!(ports.tunnel(1, 4789), Some(UdpTunnel::Geneve));
        assert_eq!((ports.tunnel(4789, 1), ports.tunnel(1, 8472)), (None, None));
        assert_eq!(ports.tunnel(3544, 1), Some(UdpTunnel::Teredo));
        let full = (1..=3).try_fold(TunnelPorts::DEFAULT, |ports, port| ports.with(port, UdpTunnel::Vxlan));
        assert_eq!(full, None);
    }

    #[test]
    fn the_fast_check_finds_all_tunnel_ports() {
        let set = TunnelPorts::DEFAULT.all(Decapsulation::Innermost, [1985, 2029]);
        for (port, _) in TunnelPorts::DEFAULT.iter() {
            assert!(set.has_any([port, 9]) && set.has_any([9, port]));
        }
        assert!(set.has_any([1985, 1985]) && set.has_any([2029, 2029]));
        assert!(!set.has_any([53, 40_000]));
        let none = TunnelPorts::DEFAULT.all(Decapsulation::Outermost, [1985, 2029]);
        assert!(!none.has_any([4789, 4789]) && none.has_any([1985, 1985]));
    }
}
