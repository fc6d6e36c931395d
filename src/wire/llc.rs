//! Logical link control (LLC) and SNAP (IEEE 802.2; RFC 1042; RFC 2427 section 4.1 for NLPIDs).

use super::{array, be16};
use crate::base::EtherType;

/// Payload that an LLC header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Llc {
    /// A protocol by its EtherType, and the length of the headers before the payload, in octets.
    EtherType(EtherType, usize),
    /// A bridged Ethernet frame (RFC 2427, RFC 2684), and the length of the headers before the frame, in
    /// octets.
    Ethernet(usize),
    /// An unsupported network layer protocol, by its ISO network layer protocol identifier (NLPID).
    Nlpid(u8),
    /// A Cisco protocol, by its protocol number in the SNAP header.
    CiscoSnap(u16),
    /// Any other LLC protocol, such as spanning tree, IPX or NetBEUI, by its destination service access point.
    Dsap(u8),
    /// An unsupported protocol of another organization in SNAP.
    Other,
}

impl Llc {
    /// Returns whether the payload behind the LLC header is identified by an EtherType or is an Ethernet frame.
    #[must_use]
    pub(crate) const fn is_packet(self) -> bool {
        matches!(self, Self::EtherType(..) | Self::Ethernet(_))
    }
}

/// Length of an LLC header with an unnumbered control field, in octets.
pub(crate) const HEADER_LEN: usize = 3;

const SNAP_LEN: usize = 5;

const SAP_SNAP: u8 = 0xaa;
/// Service access point of SNAP with the lowest bit set: a group destination, or a response.
const SAP_SNAP_GROUP: u8 = 0xab;
const SAP_IPV4: u8 = 0x06;
const SAP_NLPID: u8 = 0xfe;
const UNNUMBERED: u8 = 3;

/// Field offsets in a SNAP header.
mod snap_field {
    pub(super) const ORGANIZATION: usize = 0;
    pub(super) const PROTOCOL: usize = 3;
}

/// Field offsets in an LLC header.
mod field {
    pub(super) const DESTINATION: usize = 0;
    pub(super) const SOURCE: usize = 1;
    pub(super) const CONTROL: usize = 2;
    /// Offset of the network layer protocol identifier (NLPID), which follows if the service access points are
    /// 0xfe.
    pub(super) const NLPID: usize = 3;
}

/// Network layer protocol identifier (NLPID) of IPv4.
pub(crate) const NLPID_IPV4: u8 = 0xcc;

/// Network layer protocol identifier (NLPID) of IPv6.
pub(crate) const NLPID_IPV6: u8 = 0x8e;

/// Network layer protocol identifier (NLPID) of SNAP.
pub(crate) const NLPID_SNAP: u8 = 0x80;

/// Network layer protocol identifier (NLPID) of PPP (RFC 1973).
pub(crate) const NLPID_PPP: u8 = 0xcf;

/// Reads an LLC header and the SNAP header behind it; `None` if they are truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<Llc> {
    let fixed = data.first_chunk::<HEADER_LEN>()?;
    match (fixed[field::DESTINATION], fixed[field::SOURCE], fixed[field::CONTROL]) {
        (SAP_SNAP | SAP_SNAP_GROUP, SAP_SNAP | SAP_SNAP_GROUP, UNNUMBERED) => {
            snap(data.get(HEADER_LEN..)?, HEADER_LEN)
        }
        (SAP_IPV4, SAP_IPV4, UNNUMBERED) => Some(Llc::EtherType(EtherType::IPV4, HEADER_LEN)),
        (SAP_NLPID, SAP_NLPID, UNNUMBERED) => Some(match *data.get(field::NLPID)? {
            NLPID_IPV4 => Llc::EtherType(EtherType::IPV4, HEADER_LEN + 1),
            NLPID_IPV6 => Llc::EtherType(EtherType::IPV6, HEADER_LEN + 1),
            nlpid => Llc::Nlpid(nlpid),
        }),
        (dsap, _, _) => Some(Llc::Dsap(dsap)),
    }
}

/// Reads a SNAP header; `None` if the header is truncated. `before` is the number of octets of headers before
/// `data`.
#[must_use]
pub(crate) fn snap(data: &[u8], before: usize) -> Option<Llc> {
    let header = data.first_chunk::<SNAP_LEN>()?;
    let protocol = be16(header, snap_field::PROTOCOL)?;
    Some(match *array(header, snap_field::ORGANIZATION)? {
        [0, 0, 0] | [0, 0, 0xf8] => Llc::EtherType(EtherType(protocol), before + SNAP_LEN),
        [0, 0x80, 0xc2] if matches!(protocol, 1 | 7) => Llc::Ethernet(before + SNAP_LEN),
        [0, 0, 0x0c] => Llc::CiscoSnap(protocol),
        _ => Llc::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_identified_by_sap_nlpid_and_snap() {
        for (data, wanted) in [
            (&[6, 6, 3][..], Some(Llc::EtherType(EtherType::IPV4, 3))),
            (&[0xfe, 0xfe, 3, 0x8e], Some(Llc::EtherType(EtherType::IPV6, 4))),
            (&[0xfe, 0xfe, 3, 0x83], Some(Llc::Nlpid(0x83))),
            (&[0xaa, 0xaa, 3, 0, 0, 0, 8, 6], Some(Llc::EtherType(EtherType::ARP, 8))),
            (&[0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0], Some(Llc::EtherType(EtherType::IPV4, 8))),
            // Bridged Ethernet with and without its check sequence; a protocol of Cisco; spanning tree.
            (&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 1], Some(Llc::Ethernet(8))),
            (&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7], Some(Llc::Ethernet(8))),
            (&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0], Some(Llc::CiscoSnap(0x2000))),
            (&[0x42, 0x42, 3], Some(Llc::Dsap(0x42))),
            (&[0xaa, 0xaa, 3, 0, 0x10, 0x18, 0, 1], Some(Llc::Other)),
            (&[0xaa, 0xaa, 3, 0, 0, 0, 8], None),
            (&[6, 6], None),
        ] {
            assert_eq!(header(data), wanted, "{data:?}");
        }
    }
}
