//! Key policy: the fields that are part of a Flow Key.

use crate::base::{FlowKey, Frame, Limits, Side};
use crate::decode::link::{Decapsulation, LinkInfo, TunnelPorts, WalkSettings};

/// Number of flows per conversation: one for both directions, or one for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// One flow with two sides (RFC 5103).
    #[default]
    Biflow,
    /// One flow per direction; the sender is always side A.
    Uniflow,
}

/// Source of the scope in flow keys, which separates flows with the same five-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The given scope for all frames, such as the identifier of a tenant or of an observation domain.
    Fixed(u32),
    /// The index of the interface on which the frame was captured.
    Interface,
}

crate::base::configuration! {
    /// Fields that distinguish flows, in addition to addresses and protocol.
    ///
    /// A field that differs between the two directions of a conversation cannot be in a key, so tunnel endpoint
    /// identifiers and MPLS labels are not available.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeyPolicy {
        /// Ports, and ICMP types instead of ports for ICMP. If false, there is one flow per address pair and
        /// protocol. On by default.
        pub ports: bool,
        /// VLAN ids of the frame. Off by default, because many networks tag the two directions differently.
        pub vlan_ids: bool,
        /// The virtual network identifier of the innermost VXLAN, VXLAN-GPE, GENEVE or NVGRE header. A frame with another
        /// protocol than IP in such a tunnel counts for the flow of the tunnel, with the identifier of its network, unless
        /// flows are linked ([`Decapsulation::Both`]). Off by default.
        pub vni: bool,
        /// Decapsulation of tunnels. Enabled by default: a frame counts for its innermost flow.
        pub decapsulation: Decapsulation,
        /// UDP ports that identify tunnels.
        pub tunnel_ports: TunnelPorts,
        /// Identifier field of ICMP echo messages, so that each `ping` is a flow. Off by default, as in Community
        /// ID.
        pub echo_id: bool,
        /// Number of flows per conversation: one for both directions, or one for each direction. One flow for
        /// both directions by default.
        pub direction: Direction,
        /// Scope of the flow keys, which separates flows with the same five-tuple. Fixed at zero by default.
        pub scope: Scope,
    }
}

impl KeyPolicy {
    /// Default policy: five-tuple biflows with scope zero, and the defaults that are documented at the other
    /// fields.
    pub const DEFAULT: Self = Self {
        ports: true,
        vlan_ids: false,
        vni: false,
        decapsulation: Decapsulation::Innermost,
        tunnel_ports: TunnelPorts::DEFAULT,
        echo_id: false,
        direction: Direction::Biflow,
        scope: Scope::Fixed(0),
    };

    /// Returns the settings of a walk over a frame for this policy: decapsulation, ports of tunnels, and
    /// limits.
    #[inline(always)]
    pub(crate) const fn walk_settings<'a>(&'a self, limits: &'a Limits) -> WalkSettings<'a> {
        WalkSettings { decapsulation: self.decapsulation, tunnel_ports: &self.tunnel_ports, limits }
    }

    #[inline(always)]
    pub(crate) fn scope_of(&self, frame: &Frame<'_>) -> u32 {
        match self.scope {
            Scope::Fixed(scope) => scope,
            Scope::Interface => frame.interface,
        }
    }

    /// Returns the scope of all flow keys if this policy's keys are five-tuple biflows with a fixed scope and
    /// without VLAN ids.
    pub(crate) const fn plain_scope(&self) -> Option<u32> {
        match (self.scope, self.direction) {
            (Scope::Fixed(scope), Direction::Biflow) if self.ports && !self.vlan_ids => Some(scope),
            _ => None,
        }
    }

    /// Returns whether this policy's keys are five-tuples of biflows, to which VLAN ids, the VNI and the
    /// scope may be added.
    #[inline(always)]
    pub(crate) fn is_five_tuple(&self) -> bool {
        self.ports && matches!(self.direction, Direction::Biflow)
    }

    /// Returns the key with the fields that the policy adds to a five-tuple: the scope, the VLAN ids and the
    /// VNI.
    #[inline(always)]
    pub(crate) fn complete(&self, key: FlowKey, frame: &Frame<'_>, link: &LinkInfo) -> FlowKey {
        let key = key.with_scope(self.scope_of(frame));
        let key = if self.vlan_ids { key.with_vlan_ids(link.vlan_ids) } else { key };
        match link.vni {
            Some(vni) if self.vni => key.with_vni(vni),
            _ => key,
        }
    }

    /// Returns the flow key of two endpoints and the side of the source, as one flow for both directions or
    /// for one direction as configured. `source` and `destination` are each an address and a port.
    pub(crate) fn key(
        &self,
        protocol: crate::base::IpProtocol,
        is_ipv6: bool,
        source: (u128, u16),
        destination: (u128, u16),
        has_ports: bool,
    ) -> (FlowKey, Side) {
        match self.direction {
            Direction::Biflow => FlowKey::ordered(protocol, is_ipv6, source, destination, has_ports),
            Direction::Uniflow => {
                (FlowKey::directed(protocol, is_ipv6, source, destination, has_ports), Side::A)
            }
        }
    }
}

impl Default for KeyPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
