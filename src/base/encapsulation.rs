//! Encapsulation of the packets of a flow: links, tags and tunnels.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The kind of a header that encapsulates an IP packet. Each variant documents the meaning of the header's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HeaderKind {
    /// An Ethernet header inside another encapsulation. It has no id.
    Ethernet,
    /// A VLAN tag. The id is the VLAN id, zero for a priority tag.
    Vlan,
    /// An IEEE 802.1ah service tag. The id is the service identifier, 24 bits.
    ProviderBackbone,
    /// A MACsec tag of a frame without encryption. It has no id.
    Macsec,
    /// A VN-tag. The id is the destination interface.
    VnTag,
    /// An MPLS label stack entry. The id is the label.
    Mpls,
    /// A PPPoE header. The id is the session identifier.
    Pppoe,
    /// The header of an IP packet that contains another one; its addresses are the endpoints of the tunnel. It has no
    /// id.
    Ip,
    /// A GRE header. The id is the key, or zero without a key.
    Gre,
    /// The GRE header of PPTP. The id is the call identifier.
    Pptp,
    /// An NVGRE header. The id is the virtual subnet identifier.
    Nvgre,
    /// An ERSPAN header of type I, II or III. The id is the session identifier.
    Erspan,
    /// A VXLAN header. The id is the virtual network identifier.
    Vxlan,
    /// A VXLAN-GPE header. The id is the virtual network identifier.
    VxlanGpe,
    /// A GENEVE header. The id is the virtual network identifier.
    Geneve,
    /// A GTP-U header. The id is the tunnel endpoint identifier of the receiver.
    GtpU,
    /// A Teredo tunnel. It has no id.
    Teredo,
    /// An L2TP header. For version 2, the id contains the tunnel id in the upper 16 bits and the session id in the
    /// lower 16 bits; for version 3, the id is the session id.
    L2tp,
    /// A Network Service Header. The id is the service path identifier.
    Nsh,
    /// An EtherIP header. It has no id.
    EtherIp,
    /// A time stamp of Cisco (TTag). It has no id.
    TimeTag,
    /// Cisco MetaData. The id is the security group, or zero without one.
    CiscoMetadata,
    /// An HSR tag. It has no id.
    Hsr,
    /// An IEEE 802.1CB redundancy tag. It has no id.
    RedundancyTag,
    /// A time stamp of Arista. It has no id.
    AristaTime,
    /// A FabricPath tag. The id is the forwarding tag.
    FabricPath,
    /// A TRILL header. The id contains the nickname of the egress in the upper 16 bits and that of the ingress in the
    /// lower 16 bits.
    Trill,
    /// An 802.11 header inside another encapsulation. It has no id.
    Wlan,
    /// A header of the TaZmen Sniffer Protocol. It has no id.
    Tzsp,
    /// An EoIP header. The id is the tunnel id.
    Eoip,
    /// A LISP header. The id is the instance id, or zero without one.
    Lisp,
    /// A header of remote mirroring by switches of HP. It has no id.
    HpErm,
    /// An AYIYA header. It has no id.
    Ayiya,
    /// A CAPWAP header. It has no id.
    Capwap,
}

impl HeaderKind {
    /// All kinds of encapsulation headers.
    pub const ALL: [Self; 34] = [
        Self::Ethernet,
        Self::Vlan,
        Self::ProviderBackbone,
        Self::Macsec,
        Self::VnTag,
        Self::Mpls,
        Self::Pppoe,
        Self::Ip,
        Self::Gre,
        Self::Pptp,
        Self::Nvgre,
        Self::Erspan,
        Self::Vxlan,
        Self::VxlanGpe,
        Self::Geneve,
        Self::GtpU,
        Self::Teredo,
        Self::L2tp,
        Self::Nsh,
        Self::EtherIp,
        Self::TimeTag,
        Self::CiscoMetadata,
        Self::Hsr,
        Self::RedundancyTag,
        Self::AristaTime,
        Self::FabricPath,
        Self::Trill,
        Self::Wlan,
        Self::Tzsp,
        Self::Eoip,
        Self::Lisp,
        Self::HpErm,
        Self::Ayiya,
        Self::Capwap,
    ];

    /// Returns the kind of header whose [`name`](Self::name) is `name`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the common name of the kind of header, such as `VXLAN`.
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
            Self::TimeTag => "TTag",
            Self::CiscoMetadata => "Cisco-MetaData",
            Self::Hsr => "HSR",
            Self::RedundancyTag => "R-TAG",
            Self::AristaTime => "Arista-time",
            Self::FabricPath => "FabricPath",
            Self::Trill => "TRILL",
            Self::Wlan => "802.11",
            Self::Tzsp => "TZSP",
            Self::Eoip => "EoIP",
            Self::Lisp => "LISP",
            Self::HpErm => "HP-ERM",
            Self::Ayiya => "AYIYA",
            Self::Capwap => "CAPWAP",
        }
    }

    /// Returns whether headers of this kind have an id.
    #[must_use]
    const fn has_id(self) -> bool {
        !matches!(
            self,
            Self::Ethernet
                | Self::Macsec
                | Self::Ip
                | Self::Teredo
                | Self::EtherIp
                | Self::TimeTag
                | Self::Hsr
                | Self::RedundancyTag
                | Self::AristaTime
                | Self::Wlan
                | Self::Tzsp
                | Self::HpErm
                | Self::Ayiya
                | Self::Capwap
        )
    }

    /// Returns whether headers of this kind have a virtual network identifier of 24 bits as their id.
    #[must_use]
    pub(crate) const fn is_virtual_network(self) -> bool {
        matches!(self, Self::Vxlan | Self::VxlanGpe | Self::Geneve | Self::Nvgre)
    }
}

impl fmt::Display for HeaderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One header of an [`Encapsulation`]. `Copy`, 40 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EncapsulationHeader {
    /// Kind of the encapsulation header.
    pub kind: HeaderKind,
    /// Id of the header; zero if headers of this kind have no id.
    raw_id: u32,
    /// Source and destination address, which are the endpoints of the tunnel; present only for an IP header whose
    /// addresses were captured.
    pub endpoints: Option<(IpAddr, IpAddr)>,
}

impl EncapsulationHeader {
    /// Creates an encapsulation header with an id, which is ignored if headers of this kind have none.
    #[must_use]
    pub const fn new(kind: HeaderKind, id: u32) -> Self {
        Self { kind, raw_id: if kind.has_id() { id } else { 0 }, endpoints: None }
    }

    /// Returns the id of the header, such as a VLAN id, a label or a virtual network identifier; `None` if headers of
    /// this kind have none.
    #[must_use]
    pub const fn id(&self) -> Option<u32> {
        if self.kind.has_id() { Some(self.raw_id) } else { None }
    }

    /// Parses a header from the text that its [`Display`](fmt::Display) implementation writes.
    fn parse(text: &str) -> Option<Self> {
        let (kind, detail) = text.split_once(' ').map_or((text, None), |(kind, detail)| (kind, Some(detail)));
        let kind = HeaderKind::from_name(kind)?;
        match detail {
            None => Some(Self::new(kind, 0)),
            Some(detail) if kind == HeaderKind::Ip => {
                let (source, destination) = detail.split_once('>')?;
                Some(Self::ip(source.parse().ok()?, destination.parse().ok()?))
            }
            Some(id) => Some(Self::new(kind, id.parse().ok()?)),
        }
    }

    /// Creates the encapsulation header of an IP tunnel with its two addresses.
    #[must_use]
    pub const fn ip(source: IpAddr, destination: IpAddr) -> Self {
        Self { kind: HeaderKind::Ip, raw_id: 0, endpoints: Some((source, destination)) }
    }
}

impl fmt::Display for EncapsulationHeader {
    /// Writes the kind of the header with its id or addresses, if any: `VXLAN 42`, `IP 192.0.2.1>192.0.2.2`,
    /// `Ethernet`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match (self.endpoints, self.id()) {
            (Some((source, destination)), _) => write!(f, " {source}>{destination}"),
            (None, Some(id)) => write!(f, " {id}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for EncapsulationHeader {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        #[derive(serde::Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            kind: std::borrow::Cow<'a, str>,
            id: Option<u32>,
            source: Option<IpAddr>,
            destination: Option<IpAddr>,
        }
        let Object { kind, id, source, destination } = Object::deserialize(deserializer)?;
        let kind = HeaderKind::from_name(&kind)
            .ok_or_else(|| D::Error::custom(format_args!("unknown header kind {kind}")))?;
        Ok(Self { endpoints: source.zip(destination), ..Self::new(kind, id.unwrap_or_default()) })
    }
}

/// The headers that encapsulate the packets of one side of a flow, outermost first, without the link-layer header.
///
/// The headers are allocated once and shared by all clones; without headers, nothing is allocated.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Encapsulation(Option<Arc<[EncapsulationHeader]>>);

impl Encapsulation {
    /// An encapsulation without headers.
    pub const NONE: Self = Self(None);

    /// Creates an encapsulation from a copy of the headers, outermost first. Allocates unless `headers` is empty.
    #[must_use]
    pub fn new(headers: &[EncapsulationHeader]) -> Self {
        Self((!headers.is_empty()).then(|| headers.into()))
    }

    /// Parses an encapsulation from the text that its [`Display`](fmt::Display) implementation writes; `None` if the
    /// text has another form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::NONE);
        }
        let headers: Option<Vec<_>> = text.split(" / ").map(EncapsulationHeader::parse).collect();
        headers.map(|headers| Self::new(&headers))
    }

    /// Returns the encapsulation headers, outermost first.
    #[must_use]
    pub fn headers(&self) -> &[EncapsulationHeader] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns whether there are no encapsulation headers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number of bytes allocated for an encapsulation of `header_count` headers, without the allocator's
    /// overhead.
    pub(crate) const fn allocated_len(header_count: usize) -> usize {
        // The strong and the weak count of an `Arc`.
        const COUNTS: usize = 2 * size_of::<usize>();
        if header_count == 0 { 0 } else { COUNTS + header_count * size_of::<EncapsulationHeader>() }
    }
}

impl fmt::Debug for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers()).finish()
    }
}

impl fmt::Display for Encapsulation {
    /// Writes the headers separated by ` / `, outermost first: `IP 192.0.2.1>192.0.2.2 / VXLAN 42 / Ethernet`.
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
impl<'de> serde::Deserialize<'de> for Encapsulation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<EncapsulationHeader>::deserialize(deserializer).map(|headers| Self::new(&headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encapsulation_as_text() {
        let (source, destination) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let encapsulation = Encapsulation::new(&[
            EncapsulationHeader::new(HeaderKind::Vlan, 7),
            EncapsulationHeader::ip(source, destination),
            EncapsulationHeader::new(HeaderKind::Vxlan, 42),
            EncapsulationHeader::new(HeaderKind::Ethernet, 0),
        ]);
        assert_eq!(Encapsulation::parse(&encapsulation.to_string()), Some(encapsulation.clone()));
        assert_eq!(Encapsulation::parse("VLAN x"), None);
        assert_eq!(encapsulation.to_string(), "VLAN 7 / IP 192.0.2.1>192.0.2.2 / VXLAN 42 / Ethernet");
        assert_eq!(Encapsulation::new(&[]), Encapsulation::NONE);
        assert_eq!(Encapsulation::NONE.to_string(), "");
    }

    #[test]
    fn the_layout_has_the_size_stated_by_the_limits() {
        assert_eq!(size_of::<EncapsulationHeader>(), 40);
    }
}
