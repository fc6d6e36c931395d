//! Protocols by which neighbors on a link find each other.

/// A protocol of messages between neighbors on a link, which do not belong to a flow or are of interest beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeighborProtocol {
    Arp,
    Rarp,
    Ndp,
    Igmp,
    Mld,
    Lldp,
    Cdp,
    Stp,
    Vrrp,
    Hsrp,
}

impl NeighborProtocol {
    #[cfg(feature = "protocols")]
    pub(crate) const ALL: [Self; 10] = [
        Self::Arp,
        Self::Rarp,
        Self::Ndp,
        Self::Igmp,
        Self::Mld,
        Self::Lldp,
        Self::Cdp,
        Self::Stp,
        Self::Vrrp,
        Self::Hsrp,
    ];

    /// Returns the name of the protocol.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::Rarp => "rarp",
            Self::Ndp => "ndp",
            Self::Igmp => "igmp",
            Self::Mld => "mld",
            Self::Lldp => "lldp",
            Self::Cdp => "cdp",
            Self::Stp => "stp",
            Self::Vrrp => "vrrp",
            Self::Hsrp => "hsrp",
        }
    }

    /// Returns whether the messages are in IP packets, which belong to flows.
    #[cfg(feature = "protocols")]
    pub(crate) const fn is_in_ip(self) -> bool {
        matches!(self, Self::Ndp | Self::Igmp | Self::Mld | Self::Vrrp | Self::Hsrp)
    }
}
