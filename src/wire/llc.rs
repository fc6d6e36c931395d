//! Logical link control and SNAP (IEEE 802.2; RFC 1042; RFC 2427 section 4.1 for NLPIDs).

use super::be16;
use crate::base::EtherType;

/// Payload that an LLC header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Llc {
    /// A protocol by its EtherType, and the length of the headers in front of it in octets.
    EtherType(EtherType, usize),
    /// A bridged Ethernet frame (RFC 2427, RFC 2684), and the length of the headers in front of it in octets.
    Ethernet(usize),
    /// A network layer protocol of ISO, by its identifier.
    Nlpid(u8),
    /// A protocol of Cisco, by its number in SNAP.
    CiscoSnap(u16),
    /// Any other protocol, by the destination service access point: spanning tree, IPX, NetBEUI.
    Dsap(u8),
    /// A protocol of another organization in SNAP.
    Other,
}

impl Llc {
    /// Returns whether the payload is identified by an EtherType, or is an Ethernet frame.
    #[must_use]
    pub(crate) const fn is_packet(self) -> bool {
        matches!(self, Self::EtherType(..) | Self::Ethernet(_))
    }
}

/// Octets of an LLC header with an unnumbered control field.
pub(crate) const HEADER_LEN: usize = 3;

const SNAP_LEN: usize = 5;
const UNNUMBERED: u8 = 3;

/// IPv4 as a network layer protocol identifier.
pub(crate) const NLPID_IPV4: u8 = 0xcc;

/// IPv6 as a network layer protocol identifier.
pub(crate) const NLPID_IPV6: u8 = 0x8e;

/// SNAP as a network layer protocol identifier.
pub(crate) const NLPID_SNAP: u8 = 0x80;

/// PPP as a network layer protocol identifier (RFC 1973).
pub(crate) const NLPID_PPP: u8 = 0xcf;

/// Reads an LLC header and the SNAP header behind it; `None` if they are truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<Llc> {
    let [dsap, ssap, control] = *data.first_chunk::<HEADER_LEN>()?;
    match (dsap, ssap, control) {
        (0xaa | 0xab, 0xaa | 0xab, UNNUMBERED) => snap(data.get(HEADER_LEN..)?, HEADER_LEN),
        (0x06, 0x06, UNNUMBERED) => Some(Llc::EtherType(EtherType::IPV4, HEADER_LEN)),
        (0xfe, 0xfe, UNNUMBERED) => Some(match *data.get(HEADER_LEN)? {
            NLPID_IPV4 => Llc::EtherType(EtherType::IPV4, HEADER_LEN + 1),
            NLPID_IPV6 => Llc::EtherType(EtherType::IPV6, HEADER_LEN + 1),
            nlpid => Llc::Nlpid(nlpid),
        }),
        _ => Some(Llc::Dsap(dsap)),
    }
}

/// Reads a SNAP header behind `before` octets; `None` if it is truncated.
#[must_use]
pub(crate) fn snap(data: &[u8], before: usize) -> Option<Llc> {
    let [a, b, c, ..] = *data.first_chunk::<SNAP_LEN>()?;
    let protocol = be16(data, 3)?;
    Some(match [a, b, c] {
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
    fn protocols_by_sap_nlpid_and_snap() {
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
