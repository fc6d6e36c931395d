//! What encloses the packets of a flow: links, tags and tunnels.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The kind of a header that encloses an IP packet; what its id is stands beside each.
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

    /// Whether it has an id.
    #[must_use]
    pub const fn has_id(self) -> bool {
        !matches!(self, Self::Ethernet | Self::Macsec | Self::Ip | Self::Teredo | Self::EtherIp)
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

/// A header that encloses the packets of a flow. `Copy`, 40 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EnclosingHeader {
    /// What it is.
    pub kind: HeaderKind,
    /// A number that it carries, as its kind says; zero if it has none.
    pub id: u32,
    /// Source and destination, if it is an IP header whose addresses were captured: the ends of a tunnel.
    pub endpoints: Option<(IpAddr, IpAddr)>,
}

impl EnclosingHeader {
    /// A header with a number, or zero.
    #[must_use]
    pub const fn new(kind: HeaderKind, id: u32) -> Self {
        Self { kind, id, endpoints: None }
    }

    /// An IP header with its addresses.
    #[must_use]
    pub const fn ip(source: IpAddr, destination: IpAddr) -> Self {
        Self { kind: HeaderKind::Ip, id: 0, endpoints: Some((source, destination)) }
    }
}

impl fmt::Display for EnclosingHeader {
    /// `VXLAN 42`, `IP 192.0.2.1>192.0.2.2`, or the kind alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match self.endpoints {
            Some((source, destination)) => write!(f, " {source}>{destination}"),
            None if self.kind.has_id() => write!(f, " {}", self.id),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for EnclosingHeader {
    /// An object: `kind`, and `id`, or `source` and `destination`, if it has them.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind.name())?;
        if self.kind.has_id() {
            map.serialize_entry("id", &self.id)?;
        }
        if let Some((source, destination)) = self.endpoints {
            map.serialize_entry("source", &source)?;
            map.serialize_entry("destination", &destination)?;
        }
        map.end()
    }
}

/// The headers that enclose the packets of one side of a flow, outermost first, without the link's own.
///
/// A pointer, shared by its clones; none if nothing encloses them.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct EncapsulationStack(Option<Arc<[EnclosingHeader]>>);

impl EncapsulationStack {
    /// No header.
    pub const NONE: Self = Self(None);

    /// A copy of the headers, outermost first. Allocates unless there are none.
    #[must_use]
    pub fn new(headers: &[EnclosingHeader]) -> Self {
        Self((!headers.is_empty()).then(|| headers.into()))
    }

    /// The headers, outermost first.
    #[must_use]
    pub fn headers(&self) -> &[EnclosingHeader] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether nothing encloses the packets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Octets that a stack of so many headers allocates, without what the allocator adds.
    pub(crate) const fn allocated_len(header_count: usize) -> usize {
        // The two counts that an `Arc` keeps.
        const COUNTS: usize = 2 * size_of::<usize>();
        if header_count == 0 { 0 } else { COUNTS + header_count * size_of::<EnclosingHeader>() }
    }
}

impl fmt::Debug for EncapsulationStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers()).finish()
    }
}

impl fmt::Display for EncapsulationStack {
    /// The headers with ` / ` between them, outermost first: `IP 192.0.2.1>192.0.2.2 / VXLAN 42 / Ethernet`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, header) in self.headers().iter().enumerate() {
            if place > 0 {
                f.write_str(" / ")?;
            }
            header.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for EncapsulationStack {
    /// A list of the headers.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.headers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_as_text() {
        let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let stack = EncapsulationStack::new(&[
            EnclosingHeader::new(HeaderKind::Vlan, 7),
            EnclosingHeader::ip(source, destination),
            EnclosingHeader::new(HeaderKind::Vxlan, 42),
            EnclosingHeader::new(HeaderKind::Ethernet, 0),
        ]);
        assert_eq!(stack.to_string(), "VLAN 7 / IP 192.0.2.1>192.0.2.2 / VXLAN 42 / Ethernet");
        assert_eq!(EncapsulationStack::new(&[]), EncapsulationStack::NONE);
        assert_eq!(EncapsulationStack::NONE.to_string(), "");
    }

    #[test]
    fn the_layout_is_the_one_that_the_limits_state() {
        assert_eq!(size_of::<EnclosingHeader>(), 40);
    }
}
