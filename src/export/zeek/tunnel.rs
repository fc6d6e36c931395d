//! Rows of `tunnel.log`.

use crate::base::{IpProtocol, Side};
use crate::row::Name;
use crate::tracker::FlowView;

/// A tunnel in `tunnel.log`, behind the [`Head`](super::Head) of the flow that carries it.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    kind: Kind,
    is_closed: bool,
}

/// The kinds of tunnels that Zeek distinguishes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Ip,
    Gre,
    Vxlan,
    Geneve,
    Teredo,
    Gtp,
}

impl Tunnel {
    /// Returns the tunnel that a flow carries; `None` if it carries no other flow, in this record or an earlier one.
    pub(super) fn of(view: &FlowView<'_>, was_tunnel: bool) -> Option<Self> {
        let carries = view.encapsulation().is_some_and(|record| record.carried_packet_count > 0);
        if !carries && !was_tunnel {
            return None;
        }
        let key = view.key();
        let has_port = |wanted| [Side::A, Side::B].iter().any(|side| key.port(*side) == Some(wanted));
        let kind = match key.protocol() {
            IpProtocol::GRE => Kind::Gre,
            IpProtocol::UDP if has_port(4789) => Kind::Vxlan,
            IpProtocol::UDP if has_port(6081) => Kind::Geneve,
            IpProtocol::UDP if has_port(2152) => Kind::Gtp,
            IpProtocol::UDP if has_port(3544) => Kind::Teredo,
            _ => Kind::Ip,
        };
        Some(Self { kind, is_closed: false })
    }

    /// Returns the row of the end of the tunnel.
    pub(super) const fn closed(self) -> Self {
        Self { is_closed: true, ..self }
    }

    const fn tunnel_type(self) -> &'static str {
        match self.kind {
            Kind::Ip => "Tunnel::IP",
            Kind::Gre => "Tunnel::GRE",
            Kind::Vxlan => "Tunnel::VXLAN",
            Kind::Geneve => "Tunnel::GENEVE",
            Kind::Teredo => "Tunnel::TEREDO",
            Kind::Gtp => "Tunnel::GTPv1",
        }
    }

    /// Returns Zeek's name of the service of the flow that carries the tunnel.
    pub(super) const fn service(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Ip | Kind::Gre => None,
            Kind::Vxlan => Some("vxlan"),
            Kind::Geneve => Some("geneve"),
            Kind::Teredo => Some("teredo"),
            Kind::Gtp => Some("gtpv1"),
        }
    }
}

crate::table! {
    /// Flows that carry other flows, if the run tracks both.
    impl "zeek.tunnel" for Tunnel as row {
        /// Zeek's name of the tunnel, by IP protocol or port: `Tunnel::GRE`, `Tunnel::VXLAN`, `Tunnel::GENEVE`, `Tunnel::GTPv1`,
        /// `Tunnel::TEREDO`, otherwise `Tunnel::IP`.
        "tunnel_type": Name = Name(row.tunnel_type());
        /// `Tunnel::DISCOVER` with the time of the first packet, and `Tunnel::CLOSE` with that of the last one.
        "action": Name = Name(if row.is_closed { "Tunnel::CLOSE" } else { "Tunnel::DISCOVER" });
    }
}
