//! The walk over link-layer headers.

use std::fmt;

use crate::base::{EtherType, Frame, Layer, Limits, LinkType, ParseError, ParseErrorKind, VlanIds};
use crate::wire::{be16, ethernet, ppp, sll};

/// Where the hardware addresses of a frame lie.
///
/// Four octets: an offset from the start of the frame, and what stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacAddresses(u32);

impl MacAddresses {
    /// The link has none, or none of six octets.
    pub const NONE: Self = Self(0);

    const KIND: u32 = 3;
    const ETHERNET: u32 = 1;
    const SOURCE: u32 = 2;

    /// An Ethernet header at an offset: destination, then source.
    #[must_use]
    #[inline(always)]
    pub const fn ethernet(offset: u32) -> Self {
        Self(offset << 2 | Self::ETHERNET)
    }

    /// The sender's address alone, at an offset (Linux cooked capture).
    #[must_use]
    pub const fn source_only(offset: u32) -> Self {
        Self(offset << 2 | Self::SOURCE)
    }

    const fn offset(self) -> usize {
        (self.0 >> 2) as usize
    }

    /// The sender's address.
    #[must_use]
    pub fn source(self, frame: &[u8]) -> Option<[u8; 6]> {
        match self.0 & Self::KIND {
            Self::ETHERNET => address(frame, self.offset() + ethernet::SOURCE_OFFSET),
            Self::SOURCE => address(frame, self.offset()),
            _ => None,
        }
    }

    /// The receiver's address.
    #[must_use]
    pub fn destination(self, frame: &[u8]) -> Option<[u8; 6]> {
        match self.0 & Self::KIND {
            Self::ETHERNET => address(frame, self.offset() + ethernet::DESTINATION_OFFSET),
            _ => None,
        }
    }
}

fn address(frame: &[u8], at: usize) -> Option<[u8; 6]> {
    frame.get(at..)?.first_chunk().copied()
}

/// What the link layer said about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkInfo {
    /// Hardware addresses.
    pub mac_addresses: MacAddresses,
    /// VLAN ids of the frame.
    pub vlan_ids: VlanIds,
}

/// An IP packet found in a frame.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IpPacket {
    /// Octets from the start of the frame to the IP header; never beyond the captured octets.
    pub offset: usize,
    /// IPv4 or IPv6, as the layer before announced it.
    pub ether_type: EtherType,
    /// What the link layer said.
    pub link: LinkInfo,
}

/// Why a well-formed frame holds no IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Unsupported {
    /// No frames of this link type are read.
    LinkType(LinkType),
    /// Another protocol than IP: ARP, LLDP, MPLS ...
    EtherType(EtherType),
    /// An IEEE 802.3 frame with a length instead of an EtherType: spanning tree, IPX, NetBEUI.
    Ieee8023,
    /// Another PPP protocol than IP, by its number.
    Ppp(u16),
    /// Another address family than IPv4 and IPv6 in a BSD null or loop capture.
    AddressFamily(u32),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(link_type) => write!(f, "link type {link_type}"),
            Self::EtherType(ether_type) => ether_type.fmt(f),
            Self::Ieee8023 => f.write_str("802.3 frame"),
            Self::Ppp(protocol) => write!(f, "PPP protocol 0x{protocol:04x}"),
            Self::AddressFamily(family) => write!(f, "address family {family}"),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Unsupported {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the walk found: a packet, or one of three different reasons for its absence.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Decapsulated {
    /// An IP packet.
    Packet(IpPacket),
    /// Something else than IP, or a link that is not read.
    Unsupported(Unsupported),
    /// A header is longer than what was captured.
    Truncated(ParseError),
    /// A header contradicts itself.
    Malformed(ParseError),
}

/// Finds the IP packet in a frame.
///
/// Reads Ethernet II with any stack of 802.1Q, 802.1ad and 0x9100 tags, Linux SLL and SLL2, BSD null and loop,
/// raw IP under all its link types, and PPP. The IP header itself is not looked at, except for its version where
/// the link announces none.
#[must_use]
pub fn decapsulate(frame: &Frame<'_>, limits: &Limits) -> Decapsulated {
    let data = frame.data;
    match frame.link_type {
        LinkType::ETHERNET => ethernet_frame(data, limits),
        LinkType::LINUX_SLL => cooked(sll::v1(data), data, 16, limits),
        LinkType::LINUX_SLL2 => cooked(sll::v2(data), data, 20, limits),
        LinkType::NULL => null(data, false),
        LinkType::LOOP => null(data, true),
        LinkType::RAW | LinkType::RAW_DLT_12 | LinkType::RAW_DLT_14 => raw(data),
        LinkType::IPV4 => packet(0, EtherType::IPV4, LinkInfo::default()),
        LinkType::IPV6 => packet(0, EtherType::IPV6, LinkInfo::default()),
        LinkType::PPP | LinkType::PPP_HDLC => point_to_point(data, 0),
        // One octet in front says which way the frame went.
        LinkType::PPP_WITH_DIR => point_to_point(data, 1),
        other => Decapsulated::Unsupported(Unsupported::LinkType(other)),
    }
}

fn packet(offset: usize, ether_type: EtherType, link: LinkInfo) -> Decapsulated {
    Decapsulated::Packet(IpPacket { offset, ether_type, link })
}

fn truncated(layer: Layer, offset: usize, need: usize, data: &[u8]) -> Decapsulated {
    Decapsulated::Truncated(ParseError::truncated(layer, offset, need, data.len().saturating_sub(offset)))
}

fn ethernet_frame(data: &[u8], limits: &Limits) -> Decapsulated {
    match be16(data, ethernet::HEADER_LEN - 2) {
        None => truncated(Layer::Ethernet, 0, ethernet::HEADER_LEN, data),
        Some(length) if length < ethernet::ETHERTYPE_MIN => Decapsulated::Unsupported(Unsupported::Ieee8023),
        Some(value) => {
            let mac_addresses = MacAddresses::ethernet(0);
            ether_type(data, ethernet::HEADER_LEN, EtherType(value), mac_addresses, limits)
        }
    }
}

/// From behind an EtherType: VLAN tags, then IP.
fn ether_type(
    data: &[u8],
    mut offset: usize,
    mut ether_type: EtherType,
    mac_addresses: MacAddresses,
    limits: &Limits,
) -> Decapsulated {
    let mut link = LinkInfo { mac_addresses, vlan_ids: VlanIds::NONE };
    let mut tag_count = 0;
    while ethernet::is_vlan(ether_type) {
        tag_count += 1;
        if tag_count > limits.vlan_tag_count_max {
            let have = limits.vlan_tag_count_max as usize;
            let error =
                ParseError::new(Layer::Ethernet, ParseErrorKind::TooDeep, offset, tag_count as usize, have);
            return Decapsulated::Malformed(error);
        }
        let (Some(control), Some(inner)) = (be16(data, offset), be16(data, offset + 2)) else {
            return truncated(Layer::Ethernet, offset, ethernet::VLAN_TAG_LEN, data);
        };
        link.vlan_ids = link.vlan_ids.push(control & 0xfff);
        ether_type = EtherType(inner);
        offset += ethernet::VLAN_TAG_LEN;
    }
    match ether_type {
        EtherType::IPV4 | EtherType::IPV6 => packet(offset, ether_type, link),
        length if length.0 < ethernet::ETHERTYPE_MIN => Decapsulated::Unsupported(Unsupported::Ieee8023),
        other => Decapsulated::Unsupported(Unsupported::EtherType(other)),
    }
}

fn cooked(header: Option<sll::SllHeader>, data: &[u8], need: usize, limits: &Limits) -> Decapsulated {
    let Some(header) = header else {
        return truncated(Layer::LinuxSll, 0, need, data);
    };
    let mac_addresses = match header.source_offset {
        Some(offset) => MacAddresses::source_only(offset as u32),
        None => MacAddresses::NONE,
    };
    ether_type(data, header.len, header.ether_type, mac_addresses, limits)
}

const FAMILY_LEN: usize = 4;
const AF_INET: u32 = 2;

/// AF_INET6 of NetBSD, OpenBSD and Linux (in the order 24, 24, 10), FreeBSD, and Darwin.
const AF_INET6: [u32; 4] = [10, 24, 28, 30];

fn null(data: &[u8], is_network_order: bool) -> Decapsulated {
    let Some(bytes) = data.first_chunk::<FAMILY_LEN>() else {
        return truncated(Layer::Null, 0, FAMILY_LEN, data);
    };
    // NULL is in the order of the capturing host, which the file does not tell reliably. A family is small, so
    // the order in which it fits 16 bits is the right one.
    let big = u32::from_be_bytes(*bytes);
    let family = if is_network_order || big <= 0xffff { big } else { u32::from_le_bytes(*bytes) };
    match family {
        AF_INET => packet(FAMILY_LEN, EtherType::IPV4, LinkInfo::default()),
        family if AF_INET6.contains(&family) => packet(FAMILY_LEN, EtherType::IPV6, LinkInfo::default()),
        other => Decapsulated::Unsupported(Unsupported::AddressFamily(other)),
    }
}

fn raw(data: &[u8]) -> Decapsulated {
    match data.first().map(|octet| octet >> 4) {
        Some(4) => packet(0, EtherType::IPV4, LinkInfo::default()),
        Some(6) => packet(0, EtherType::IPV6, LinkInfo::default()),
        Some(version) => {
            let version = usize::from(version);
            Decapsulated::Malformed(ParseError::new(Layer::RawIp, ParseErrorKind::BadVersion, 0, version, 0))
        }
        None => truncated(Layer::RawIp, 0, 1, data),
    }
}

fn point_to_point(data: &[u8], offset: usize) -> Decapsulated {
    let Some(header) = data.get(offset..).and_then(ppp::header) else {
        return truncated(Layer::Ppp, offset, 2, data);
    };
    match header.ether_type() {
        Some(ether_type) => packet(offset + header.len, ether_type, LinkInfo::default()),
        None => Decapsulated::Unsupported(Unsupported::Ppp(header.protocol)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;

    fn walk(link_type: LinkType, data: &[u8]) -> Decapsulated {
        decapsulate(&Frame { link_type, ..Frame::ethernet(Timestamp::ZERO, data) }, &Limits::DEFAULT)
    }

    fn ethernet_with(tail: &[u8]) -> Vec<u8> {
        [&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2][..], tail].concat()
    }

    #[test]
    fn every_link_leads_to_its_ip_packet() {
        let cases: [(LinkType, Vec<u8>, usize, EtherType); 12] = [
            (LinkType::ETHERNET, ethernet_with(&[8, 0]), 14, EtherType::IPV4),
            (LinkType::ETHERNET, ethernet_with(&[0x81, 0, 0, 5, 0x86, 0xdd]), 18, EtherType::IPV6),
            (LinkType::LINUX_SLL, [&[0; 14][..], &[8, 0]].concat(), 16, EtherType::IPV4),
            (LinkType::LINUX_SLL2, [&[0x86, 0xdd][..], &[0; 18]].concat(), 20, EtherType::IPV6),
            (LinkType::NULL, vec![2, 0, 0, 0], 4, EtherType::IPV4),
            (LinkType::NULL, vec![0, 0, 0, 30], 4, EtherType::IPV6),
            (LinkType::LOOP, vec![0, 0, 0, 24], 4, EtherType::IPV6),
            (LinkType::RAW, vec![0x45], 0, EtherType::IPV4),
            (LinkType::RAW_DLT_12, vec![0x60], 0, EtherType::IPV6),
            (LinkType::IPV4, vec![], 0, EtherType::IPV4),
            (LinkType::PPP, vec![0xff, 3, 0, 0x21], 4, EtherType::IPV4),
            (LinkType::PPP_WITH_DIR, vec![1, 0x57], 2, EtherType::IPV6),
        ];
        for (link_type, data, offset, ether_type) in cases {
            match walk(link_type, &data) {
                Decapsulated::Packet(packet) => {
                    assert_eq!((packet.offset, packet.ether_type), (offset, ether_type), "{link_type}");
                }
                other => panic!("{link_type}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_outcomes_without_a_packet_are_told_apart() {
        assert!(matches!(walk(LinkType::ETHERNET, &[0; 13]), Decapsulated::Truncated(_)));
        assert!(matches!(walk(LinkType::RAW, &[0x50]), Decapsulated::Malformed(_)));
        for (link_type, data, why) in [
            (LinkType::ETHERNET, ethernet_with(&[8, 6]), Unsupported::EtherType(EtherType::ARP)),
            (LinkType::ETHERNET, ethernet_with(&[0, 38]), Unsupported::Ieee8023),
            (LinkType::NULL, vec![23, 0, 0, 0], Unsupported::AddressFamily(23)),
            (LinkType::PPP, vec![0xc0, 0x21], Unsupported::Ppp(0xc021)),
            (LinkType(9999), vec![], Unsupported::LinkType(LinkType(9999))),
        ] {
            match walk(link_type, &data) {
                Decapsulated::Unsupported(found) => assert_eq!(found, why),
                other => panic!("{why}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_stack_of_tags_is_bounded() {
        let tags = |count: usize| {
            let mut tail = [0x81, 0, 0, 9].repeat(count);
            tail.extend([8, 0]);
            ethernet_with(&tail)
        };
        assert!(matches!(walk(LinkType::ETHERNET, &tags(8)), Decapsulated::Packet(_)));
        match walk(LinkType::ETHERNET, &tags(9)) {
            Decapsulated::Malformed(error) => assert_eq!(error.kind, ParseErrorKind::TooDeep),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn addresses_are_found_where_the_link_says() {
        let data = ethernet_with(&[8, 0]);
        let Decapsulated::Packet(packet) = walk(LinkType::ETHERNET, &data) else { panic!("no packet") };
        assert_eq!(packet.link.mac_addresses.source(&data), Some([2; 6]));
        assert_eq!(packet.link.mac_addresses.destination(&data), Some([1; 6]));
    }
}
