//! Rows of `tunnel.log`.

use crate::base::HeaderKind;
use crate::row::Name;

/// A tunnel in `tunnel.log`, behind the [`Head`](super::Head) of the flow that carries it.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    kind: HeaderKind,
    is_closed: bool,
}

impl Tunnel {
    pub(super) const fn new(kind: HeaderKind, is_closed: bool) -> Self {
        Self { kind, is_closed }
    }

    const fn tunnel_type(self) -> &'static str {
        match self.kind {
            HeaderKind::Gre | HeaderKind::Pptp | HeaderKind::Nvgre | HeaderKind::Erspan => "Tunnel::GRE",
            HeaderKind::Vxlan | HeaderKind::VxlanGpe => "Tunnel::VXLAN",
            HeaderKind::Geneve => "Tunnel::GENEVE",
            HeaderKind::GtpU => "Tunnel::GTPv1",
            HeaderKind::Teredo => "Tunnel::TEREDO",
            _ => "Tunnel::IP",
        }
    }
}

crate::table! {
    /// Flows that carry other flows, if the run tracks both.
    impl "zeek.tunnel" for Tunnel as row {
        /// Zeek's name of the innermost header of the tunnel: `Tunnel::GRE` also for PPTP, NVGRE and ERSPAN; `Tunnel::IP` also
        /// for L2TP, EtherIP and headers that Zeek has no name for.
        "tunnel_type": Name = Name(row.tunnel_type());
        /// `Tunnel::DISCOVER` when the first flow inside ends, `Tunnel::CLOSE` when the carrying flow ends.
        "action": Name = Name(if row.is_closed { "Tunnel::CLOSE" } else { "Tunnel::DISCOVER" });
    }
}
