//! What a packet came through.

use std::fmt;

/// The kind of an [`EncapsulationHeader`]; what its `id` is stands beside each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HeaderKind {
    /// An Ethernet header inside something else. Id: none.
    Ethernet,
    /// A VLAN tag: its VLAN id, zero for a priority tag.
    Vlan,
    /// IEEE 802.1ah: its service identifier, 24 bits.
    ProviderBackbone,
    /// MACsec without encryption. Id: none.
    Macsec,
    /// VN-tag: the destination interface.
    VnTag,
    /// An MPLS label.
    Mpls,
    /// PPPoE: its session.
    Pppoe,
    /// An IP packet that encloses another; its addresses are the tunnel's endpoints. Id: none.
    Ip,
    /// GRE: its key, or zero.
    Gre,
    /// PPTP's GRE: its call id.
    Pptp,
    /// NVGRE: its virtual subnet id.
    Nvgre,
    /// ERSPAN type I, II or III: its session.
    Erspan,
    /// VXLAN: its network identifier.
    Vxlan,
    /// VXLAN-GPE: its network identifier.
    VxlanGpe,
    /// GENEVE: its network identifier.
    Geneve,
    /// GTP-U: the receiver's tunnel endpoint identifier.
    GtpU,
    /// Teredo. Id: none.
    Teredo,
    /// L2TP: version 2 tunnel id in the upper half and session id in the lower, version 3 session id.
    L2tp,
    /// Network Service Header: its service path.
    Nsh,
    /// EtherIP. Id: none.
    EtherIp,
}

impl HeaderKind {
    /// The name in use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN",
            Self::ProviderBackbone => "802.1ah",
            Self::Macsec => "MACsec",
            Self::VnTag => "VN-tag",
            Self::Mpls => "MPLS",
            Self::Pppoe => "PPPoE",
            Self::Ip => "IP",
            Self::Gre => "GRE",
            Self::Pptp => "PPTP",
            Self::Nvgre => "NVGRE",
            Self::Erspan => "ERSPAN",
            Self::Vxlan => "VXLAN",
            Self::VxlanGpe => "VXLAN-GPE",
            Self::Geneve => "GENEVE",
            Self::GtpU => "GTP-U",
            Self::Teredo => "Teredo",
            Self::L2tp => "L2TP",
            Self::Nsh => "NSH",
            Self::EtherIp => "EtherIP",
        }
    }

    /// Whether its id is a virtual network identifier of 24 bits.
    #[must_use]
    pub const fn is_virtual_network(self) -> bool {
        matches!(self, Self::Vxlan | Self::VxlanGpe | Self::Geneve | Self::Nvgre)
    }
}

impl fmt::Display for HeaderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A header that encloses the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncapsulationHeader {
    /// What it is.
    pub kind: HeaderKind,
    /// Octets from the start of the frame to it.
    pub offset: u32,
    /// A number that it carries, as its kind says.
    pub id: u32,
}

/// The headers that enclose a packet, outermost first, without the link's own. `Copy`, 12 octets a header.
///
/// Holds [`Encapsulation::LEN_MAX`] headers; of more than these, the innermost are left out.
#[derive(Clone, Copy)]
pub struct Encapsulation {
    headers: [EncapsulationHeader; Self::LEN_MAX],
    len: u8,
}

impl Encapsulation {
    /// Headers that are kept.
    pub const LEN_MAX: usize = 16;

    /// No header.
    pub const NONE: Self = Self {
        headers: [EncapsulationHeader { kind: HeaderKind::Ethernet, offset: 0, id: 0 }; Self::LEN_MAX],
        len: 0,
    };

    /// The headers, outermost first.
    #[must_use]
    pub fn headers(&self) -> &[EncapsulationHeader] {
        self.headers.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// What a walk notes of its way: the headers, or nothing, which spares their writing and copying.
pub(super) trait Way: Copy {
    /// Nothing noted.
    const START: Self;

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32);
}

impl Way for Encapsulation {
    const START: Self = Self::NONE;

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32) {
        if let Some(place) = self.headers.get_mut(usize::from(self.len)) {
            *place = EncapsulationHeader { kind, offset: offset as u32, id };
            self.len += 1;
        }
    }
}

impl Way for () {
    const START: Self = ();

    fn push(&mut self, _kind: HeaderKind, _offset: usize, _id: u32) {}
}

impl PartialEq for Encapsulation {
    fn eq(&self, other: &Self) -> bool {
        self.headers() == other.headers()
    }
}

impl Eq for Encapsulation {}

impl Default for Encapsulation {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers()).finish()
    }
}
