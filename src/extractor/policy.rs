//! What goes into a Flow Key.

use crate::base::{FlowKey, Frame, Side};
use crate::link::{Decapsulation, LinkInfo, TunnelPorts};

/// Whether both directions of a conversation are one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// One flow with two sides (RFC 5103).
    #[default]
    Biflow,
    /// A flow per direction; the sender is always side A.
    Uniflow,
}

/// Where a key's scope comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The same for all frames: a tenant, an observation domain.
    Fixed(u32),
    /// The interface on which the frame was captured.
    Interface,
}

/// What tells flows apart, besides addresses and protocol.
///
/// Nothing that differs between the two directions of a conversation may be in a key, so tunnel endpoint
/// identifiers and MPLS labels cannot be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyPolicy {
    /// Ports, and ICMP types in their place. Off: one flow per address pair and protocol. On by default.
    pub ports: bool,
    /// VLAN ids. Off by default: many networks tag the two directions differently.
    pub vlan_ids: bool,
    /// The virtual network identifier of the innermost VXLAN, VXLAN-GPE, GENEVE or NVGRE header. Off by default.
    pub vni: bool,
    /// Whether tunnels are looked into. They are by default: a frame counts for its innermost flow.
    pub decapsulation: Decapsulation,
    /// The UDP ports that make a tunnel.
    pub tunnel_ports: TunnelPorts,
    /// The identifier of ICMP echo, so that each `ping` is a flow. Off by default, as Community ID has it.
    pub echo_id: bool,
    /// One flow for both directions, or one for each. Both by default.
    pub direction: Direction,
    /// The scope. Fixed at zero by default.
    pub scope: Scope,
}

impl KeyPolicy {
    /// Five-tuple biflows without scope: the defaults named at each field.
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

    #[inline(always)]
    pub(crate) fn scope_of(&self, frame: &Frame<'_>) -> u32 {
        match self.scope {
            Scope::Fixed(scope) => scope,
            Scope::Interface => frame.interface,
        }
    }

    /// The scope of all keys, if they are five-tuples with nothing else added.
    pub(crate) const fn plain_scope(&self) -> Option<u32> {
        match (self.scope, self.direction) {
            (Scope::Fixed(scope), Direction::Biflow) if self.ports && !self.vlan_ids => Some(scope),
            _ => None,
        }
    }

    /// Whether the key is a five-tuple, to which at most VLAN ids and the scope are added.
    #[inline(always)]
    pub(crate) fn is_five_tuple(&self) -> bool {
        self.ports && matches!(self.direction, Direction::Biflow)
    }

    /// Adds what the link layer and the caller contribute.
    #[inline(always)]
    pub(crate) fn complete(&self, key: FlowKey, frame: &Frame<'_>, link: &LinkInfo) -> FlowKey {
        let key = key.with_scope(self.scope_of(frame));
        let key = if self.vlan_ids { key.with_vlan_ids(link.vlan_ids) } else { key };
        match link.vni {
            Some(vni) if self.vni => key.with_vni(vni),
            _ => key,
        }
    }

    /// The key of two ends and the side of the source, in the direction that the policy asks for.
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
