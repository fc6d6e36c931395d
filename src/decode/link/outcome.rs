//! Results of the walk over the headers of a frame.

use std::fmt;

use super::{IpHeader, MacAddresses};
use crate::base::{EtherType, LinkType, ParseError, VlanIds};

/// Hardware addresses, VLAN ids and VNI from the headers before an IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkInfo {
    /// Position of the hardware addresses of the innermost Ethernet header, or of the link header if there is
    /// no Ethernet header.
    pub mac_addresses: MacAddresses,
    /// VLAN ids after the innermost Ethernet header, outermost first.
    pub vlan_ids: VlanIds,
    /// The virtual network identifier (24 bits) of the innermost VXLAN, VXLAN-GPE, GENEVE or NVGRE header. If such a
    /// header in the packet leads to no IP packet, as for ARP, it is that of this header.
    pub vni: Option<u32>,
}

/// An IP packet found in a frame. [`encapsulation`](super::encapsulation) returns the headers around it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IpPacket {
    /// Octets from the start of the frame to the IP header; never beyond the captured octets.
    pub offset: usize,
    /// EtherType of the packet: IPv4 or IPv6.
    pub ether_type: EtherType,
    /// IP header of the packet, with options and extension headers.
    pub ip: IpHeader,
    /// Hardware addresses, VLAN ids and VNI from the headers before the packet.
    pub link: LinkInfo,
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

impl IpPacket {
    /// Placeholder for a packet that is not found yet.
    pub(crate) const EMPTY: Self = Self {
        offset: 0,
        ether_type: EtherType(0),
        ip: IpHeader::EMPTY,
        link: LinkInfo { mac_addresses: MacAddresses::NONE, vlan_ids: VlanIds::NONE, vni: None },
        depth: 0,
        is_outer_len_bad: false,
        is_too_deep: false,
    };
}

/// Result of a walk over a frame: the innermost IP packet, and the headers around it that `H` records.
#[derive(Debug)]
pub(crate) struct Walked<H> {
    pub(crate) packet: IpPacket,
    /// What the frame, or a tunnel in the packet, contains instead of an IP packet.
    pub(crate) other: Option<OtherPayload>,
    pub(crate) encapsulation: H,
}

/// A payload without an IP packet, at which a walk ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherPayload {
    pub(crate) what: Unsupported,
    /// Octets from the start of the frame to the payload.
    pub(crate) offset: usize,
    /// Length of the payload on the wire in octets.
    pub(crate) len: usize,
    pub(crate) link: LinkInfo,
}

impl<H> Walked<H> {
    /// Creates the result of a walk that has not found a packet yet.
    pub(crate) const fn new(encapsulation: H) -> Self {
        Self { packet: IpPacket::EMPTY, other: None, encapsulation }
    }
}

/// Reason that a well-formed frame holds no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unsupported {
    /// The frame has a link type that is not supported.
    LinkType(LinkType),
    /// A protocol other than IP, such as ARP or LLDP, by its EtherType.
    EtherType(EtherType),
    /// An 802.3 frame of a protocol that no other variant identifies: SNAP of another organization, ring management.
    Ieee8023,
    /// A protocol other than IP in LLC, by its destination service access point: spanning tree, IPX, NetBEUI.
    Llc(u8),
    /// A protocol of Cisco in SNAP, by its protocol number: CDP, VTP.
    CiscoSnap(u16),
    /// A PPP protocol other than IP, by its protocol number.
    Ppp(u16),
    /// An address family other than IPv4 and IPv6 in a BSD null or loop capture.
    AddressFamily(u32),
    /// A network layer protocol identifier in Frame Relay or LLC that is not supported.
    Nlpid(u8),
    /// An MPLS label stack with neither IP nor Ethernet behind it.
    MplsPayload,
    /// A frame with MACsec encryption.
    MacsecEncrypted,
    /// An 802.11 data frame with encryption.
    WlanEncrypted,
    /// An 802.11 data frame that is a later fragment.
    WlanFragment,
    /// An 802.11 frame without data: management and control.
    WlanManagement,
    /// An 802.11 aggregate of several frames, which [`aggregated`](super::aggregated) returns.
    WlanAggregate,
    /// A netfilter log entry without a packet.
    Nflog,
    /// A Network Service Header with a protocol other than IP and Ethernet behind it.
    NshPayload,
}

impl fmt::Display for Unsupported {
    /// Formats the name of the protocol, followed by its number for PPP and for an EtherType other than ARP:
    /// `ARP`, `LLDP (0x88cc)`, `STP`, `PPP LCP (0xc021)`. A protocol without a name is formatted as a
    /// hexadecimal number: `EtherType 0x1234`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LinkType(link_type) => write!(f, "link type {link_type}"),
            Self::EtherType(EtherType::ARP) => f.write_str("ARP"),
            Self::EtherType(ether_type) => match ether_type_name(ether_type) {
                Some(name) => write!(f, "{name} (0x{:04x})", ether_type.0),
                None => ether_type.fmt(f),
            },
            Self::Ieee8023 => f.write_str("other 802.3 frame"),
            Self::Llc(dsap) => match dsap_name(dsap) {
                Some(name) => f.write_str(name),
                None => write!(f, "LLC protocol 0x{dsap:02x}"),
            },
            Self::CiscoSnap(number) => match cisco_snap_name(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "Cisco protocol 0x{number:04x}"),
            },
            Self::Ppp(protocol) => match ppp_name(protocol) {
                Some(name) => write!(f, "PPP {name} (0x{protocol:04x})"),
                None => write!(f, "PPP protocol 0x{protocol:04x}"),
            },
            Self::AddressFamily(family) => write!(f, "address family {family}"),
            Self::Nlpid(number) => match nlpid_name(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "NLPID 0x{number:02x}"),
            },
            Self::MplsPayload => f.write_str("MPLS payload other than IP"),
            Self::MacsecEncrypted => f.write_str("encrypted MACsec"),
            Self::WlanEncrypted => f.write_str("encrypted 802.11"),
            Self::WlanFragment => f.write_str("802.11 fragment"),
            Self::WlanManagement => f.write_str("802.11 management or control"),
            Self::WlanAggregate => f.write_str("802.11 aggregate"),
            Self::Nflog => f.write_str("NFLOG without a packet"),
            Self::NshPayload => f.write_str("NSH payload other than IP"),
        }
    }
}

/// Returns the name of an EtherType for display (IEEE 802 registry).
///
/// [`EtherType::name`] has fewer names, because its names are also used to recognize an Ethernet header
/// behind L2TPv3 or MPLS.
const fn ether_type_name(ether_type: EtherType) -> Option<&'static str> {
    if let Some(name) = ether_type.name() {
        return Some(name);
    }
    Some(match ether_type.0 {
        0x0600 => "XNS",
        0x0842 => "Wake-on-LAN",
        0x0bad => "VINES",
        0x2000 => "CDP",
        0x22ea => "SRP",
        0x22f0 => "AVTP",
        0x22f3 => "TRILL",
        0x6000 => "DEC",
        0x6001 => "MOP dump",
        0x6002 => "MOP console",
        0x6003 => "DECnet",
        0x6004 => "LAT",
        // RARP on Ethernet; the number of keepalives in Cisco HDLC.
        0x8035 => "RARP or SLARP",
        0x809b => "AppleTalk",
        0x80f3 => "AppleTalk ARP",
        0x8137 | 0x8138 => "IPX",
        0x814c => "SNMP over Ethernet",
        0x8808 => "Ethernet flow control",
        0x8809 => "LACP and other slow protocols",
        0x8819 => "CobraNet",
        0x887b => "HomePlug",
        0x8892 => "PROFINET",
        0x88a2 => "ATA over Ethernet",
        0x88a4 => "EtherCAT",
        0x88ab => "Powerlink",
        0x88b5 | 0x88b6 => "local experimental",
        0x88b7 => "OUI-extended EtherType",
        0x88b8 => "GOOSE",
        0x88b9 => "GSE",
        0x88ba => "sampled values",
        0x88c7 => "802.11 preauthentication",
        0x88cd => "SERCOS III",
        0x88e1 => "HomePlug AV",
        0x88e3 => "MRP",
        0x88f5 => "MVRP",
        0x88f6 => "MMRP",
        0x88f7 => "PTP",
        0x88f8 => "NC-SI",
        0x88fb => "PRP",
        0x8902 => "CFM",
        0x8903 => "FabricPath",
        0x8906 => "FCoE",
        0x8909 => "Cisco MetaData",
        0x890d => "802.11 data encapsulation",
        0x8914 => "FCoE initialization",
        0x8915 => "RoCE",
        0x891d => "TTEthernet",
        0x892f => "HSR",
        0x893a => "IEEE 1905.1",
        0x9000 => "Ethernet loopback",
        0x9200 => "802.1Q",
        0xd28b => "Arista",
        _ => return None,
    })
}

/// Returns the name of an LLC service access point (IEEE 802.2; IEEE registry).
const fn dsap_name(dsap: u8) -> Option<&'static str> {
    Some(match dsap {
        0x00 => "LLC null SAP",
        0x04 | 0x05 | 0x08 | 0x0c => "SNA",
        0x42 => "STP",
        0x7e => "X.25 over LLC",
        0xbc => "VINES",
        0xe0 | 0xff => "IPX",
        0xf0 | 0xf1 => "NetBEUI",
        0xf4 | 0xf5 => "LAN management",
        0xf8 | 0xfc => "remote program load",
        0xfe => "OSI over LLC",
        _ => return None,
    })
}

/// Returns the name of a Cisco protocol in SNAP, by its protocol number.
const fn cisco_snap_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0102 => "DRiP",
        0x0104 => "PAgP",
        0x010b => "PVST+",
        0x0111 => "UDLD",
        0x2000 => "CDP",
        0x2001 => "CGMP",
        0x2003 => "VTP",
        0x2004 => "DTP",
        _ => return None,
    })
}

/// Returns the name of a network layer protocol identifier (ISO/IEC TR 9577).
const fn nlpid_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0x08 => "Q.933",
        0x81 => "CLNP",
        0x82 => "ES-IS",
        0x83 => "IS-IS",
        0xb1 => "FRF.12",
        _ => return None,
    })
}

/// Returns the name of a PPP protocol (IANA "PPP DLL Protocol Numbers").
const fn ppp_name(protocol: u16) -> Option<&'static str> {
    Some(match protocol {
        0x0023 => "OSI",
        0x0027 => "DECnet",
        0x0029 => "AppleTalk",
        0x002b => "IPX",
        0x002d => "compressed TCP",
        0x002f => "uncompressed TCP",
        0x0031 => "bridging",
        0x003d => "multilink",
        0x003f => "NetBIOS",
        0x0053 => "encrypted datagram",
        0x00fb => "compressed link datagram",
        0x00fd => "compressed datagram",
        0x0201 => "STP",
        0x8021 => "IPCP",
        0x8023 => "OSINLCP",
        0x8027 => "DECnet control",
        0x8029 => "AppleTalk control",
        0x802b => "IPXCP",
        0x8031 => "BCP",
        0x803f => "NBFCP",
        0x8053 => "ECP",
        0x8057 => "IPV6CP",
        0x80fd => "CCP",
        0x8207 => "CDPCP",
        0x8281 => "MPLSCP",
        0xc021 => "LCP",
        0xc023 => "PAP",
        0xc025 => "LQR",
        0xc02b => "BACP",
        0xc02d => "BAP",
        0xc223 => "CHAP",
        0xc227 => "EAP",
        _ => return None,
    })
}

#[cfg(feature = "serde")]
impl serde::Serialize for Unsupported {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reason that no IP packet was found in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoPacket {
    Unsupported(Unsupported),
    Truncated(ParseError),
    Malformed(ParseError),
}

/// Result of the walk over a frame: an IP packet, or the reason that there is none.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Decapsulated {
    /// The innermost or outermost IP packet of the frame, as configured.
    Packet(IpPacket),
    /// The frame contains a protocol other than IP, or its link type is not supported.
    Unsupported(Unsupported),
    /// The frame ends within a header, as captured or as sent.
    Truncated(ParseError),
    /// A header is inconsistent with itself or with the outer headers, or more headers are nested than the
    /// limits allow.
    Malformed(ParseError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_have_the_names_that_users_know() {
        for (unsupported, text) in [
            (Unsupported::EtherType(EtherType::ARP), "ARP"),
            (Unsupported::EtherType(EtherType::LLDP), "LLDP (0x88cc)"),
            (Unsupported::EtherType(EtherType::EAPOL), "EAPOL (0x888e)"),
            (Unsupported::EtherType(EtherType::VLAN_9100), "802.1Q (0x9100)"),
            (Unsupported::EtherType(EtherType(0x88f7)), "PTP (0x88f7)"),
            (Unsupported::EtherType(EtherType(0x1234)), "EtherType 0x1234"),
            (Unsupported::MacsecEncrypted, "encrypted MACsec"),
            (Unsupported::Llc(0x42), "STP"),
            (Unsupported::Llc(0x12), "LLC protocol 0x12"),
            (Unsupported::CiscoSnap(0x2000), "CDP"),
            (Unsupported::CiscoSnap(0x7777), "Cisco protocol 0x7777"),
            (Unsupported::Ppp(0xc021), "PPP LCP (0xc021)"),
            (Unsupported::Ppp(0x00ff), "PPP protocol 0x00ff"),
            (Unsupported::Nlpid(0x83), "IS-IS"),
            (Unsupported::Nlpid(0x77), "NLPID 0x77"),
            (Unsupported::LinkType(LinkType::USB_LINUX), "link type USB_LINUX"),
        ] {
            assert_eq!(unsupported.to_string(), text);
        }
    }
}
