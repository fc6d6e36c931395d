//! Results of the walk.

use std::fmt;

use super::{Encapsulation, IpHeader, MacAddresses};
use crate::base::{EtherType, LinkType, ParseError, VlanIds};

/// Information from the headers before a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkInfo {
    /// Hardware addresses of the innermost Ethernet header, or of the link.
    pub mac_addresses: MacAddresses,
    /// VLAN ids behind the innermost Ethernet header.
    pub vlan_ids: VlanIds,
    /// The virtual network identifier (24 bits) of the innermost VXLAN, VXLAN-GPE, GENEVE or NVGRE header.
    pub vni: Option<u32>,
}

/// An IP packet found in a frame.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IpPacket<E = Encapsulation> {
    /// Octets from the start of the frame to the IP header; never beyond the captured octets.
    pub offset: usize,
    /// IPv4 or IPv6.
    pub ether_type: EtherType,
    /// IP header of the packet, with options and extension headers.
    pub ip: IpHeader,
    /// Information from the headers before the packet.
    pub link: LinkInfo,
    /// Outer headers of the packet; `()` if they were not requested.
    pub encapsulation: E,
    /// Number of encapsulations around the packet as defined for
    /// [`Limits::encapsulation_depth_max`](crate::base::Limits): tags do not count, and a label stack counts
    /// once.
    pub depth: u32,
    /// True if the length field of an outer header exceeds the payload of the header around it; the packet
    /// then ends with that payload.
    pub is_outer_len_bad: bool,
    /// True if the packet carries an encapsulation that exceeds
    /// [`Limits::encapsulation_depth_max`](crate::base::Limits) and was not decapsulated.
    pub is_too_deep: bool,
}

impl<E> IpPacket<E> {
    /// Placeholder before a packet is found.
    pub(crate) const fn empty(encapsulation: E) -> Self {
        Self {
            offset: 0,
            ether_type: EtherType(0),
            ip: IpHeader::EMPTY,
            link: LinkInfo { mac_addresses: MacAddresses::NONE, vlan_ids: VlanIds::NONE, vni: None },
            encapsulation,
            depth: 0,
            is_outer_len_bad: false,
            is_too_deep: false,
        }
    }
}

/// Reason that a well-formed frame holds no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unsupported {
    /// The link type is not supported.
    LinkType(LinkType),
    /// A protocol other than IP, such as ARP or LLDP.
    EtherType(EtherType),
    /// LLC or SNAP with a protocol other than IP: spanning tree, IPX, NetBEUI, ring management.
    Ieee8023,
    /// A PPP protocol other than IP, by its number.
    Ppp(u16),
    /// An address family other than IPv4 and IPv6 in a BSD null or loop capture.
    AddressFamily(u32),
    /// A network layer protocol identifier in Frame Relay that is not supported.
    Nlpid(u8),
    /// An MPLS label stack with neither IP nor Ethernet behind it.
    MplsPayload,
    /// MACsec with encryption.
    MacsecEncrypted,
    /// An 802.11 data frame with encryption.
    WlanEncrypted,
    /// An 802.11 data frame that is a later fragment.
    WlanFragment,
    /// An 802.11 frame without data: management and control.
    WlanManagement,
    /// A netfilter log entry without a packet.
    Nflog,
    /// A Network Service Header with a protocol other than IP and Ethernet behind it.
    NshPayload,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(link_type) => write!(f, "link type {link_type}"),
            Self::EtherType(ether_type) => ether_type.fmt(f),
            Self::Ieee8023 => f.write_str("802.3 frame"),
            Self::Ppp(protocol) => write!(f, "PPP protocol 0x{protocol:04x}"),
            Self::AddressFamily(family) => write!(f, "address family {family}"),
            Self::Nlpid(number) => write!(f, "NLPID 0x{number:02x}"),
            Self::MplsPayload => f.write_str("MPLS payload"),
            Self::MacsecEncrypted => f.write_str("encrypted MACsec"),
            Self::WlanEncrypted => f.write_str("encrypted 802.11"),
            Self::WlanFragment => f.write_str("802.11 fragment"),
            Self::WlanManagement => f.write_str("802.11 management"),
            Self::Nflog => f.write_str("NFLOG without packet"),
            Self::NshPayload => f.write_str("NSH payload"),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Unsupported {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reason that no packet was found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoPacket {
    Unsupported(Unsupported),
    Truncated(ParseError),
    Malformed(ParseError),
}

/// Result of the walk: a packet, or one of three different reasons for its absence.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the common one, and nothing is allocated per packet"
)]
pub enum Decapsulated {
    /// An IP packet.
    Packet(IpPacket),
    /// A protocol other than IP, or a link that is not supported.
    Unsupported(Unsupported),
    /// A header is longer than the captured octets.
    Truncated(ParseError),
    /// A header is inconsistent.
    Malformed(ParseError),
}
