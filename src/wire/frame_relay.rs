//! Frame Relay with multiprotocol encapsulation (Q.922; RFC 2427) or with the encapsulation of Cisco.

use super::{be16, llc};
use crate::base::EtherType;

/// Payload that a Frame Relay header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum FrameRelay {
    /// A protocol by its EtherType, and the length of the headers before the payload, in octets.
    EtherType(EtherType, usize),
    /// A bridged Ethernet frame, and the length of the headers before the frame, in octets.
    Ethernet(usize),
    /// PPP (RFC 1973), and the length of the headers before the PPP packet, in octets.
    Ppp(usize),
    /// An unsupported network layer protocol identifier (NLPID).
    Nlpid(u8),
    /// A Cisco protocol, by its protocol number in the SNAP header.
    CiscoSnap(u16),
    /// An unsupported SNAP protocol.
    Other,
}

/// Length of the shortest Frame Relay headers, in octets: an address of two octets, and the EtherType of the
/// Cisco encapsulation.
pub(crate) const HEADER_LEN_MIN: usize = 4;

const ADDRESS_LEN_MIN: usize = 2;
const ADDRESS_LEN_MAX: usize = 4;
const UNNUMBERED: u8 = 3;
const PAD: u8 = 0;

/// Field offsets from the end of the Frame Relay address.
mod field {
    pub(super) const CONTROL: usize = 0;
    /// Offset of the EtherType in the encapsulation of Cisco, which has no control field.
    pub(super) const PROTOCOL: usize = 0;
    /// Offset of the network layer protocol identifier, or of the one octet of padding that may precede it.
    pub(super) const PAD_OR_NLPID: usize = 1;
}

/// Reads the address, control field and protocol of a Frame Relay header; `None` if they are truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<FrameRelay> {
    // The lowest bit ends the address: 2 to 4 octets.
    let is_end = |len: &usize| data.get(len - 1).is_none_or(|octet| octet & 1 == 1);
    let address_len = (ADDRESS_LEN_MIN..=ADDRESS_LEN_MAX).find(is_end).unwrap_or(ADDRESS_LEN_MAX);
    let rest = data.get(address_len..)?;
    if *rest.get(field::CONTROL)? != UNNUMBERED {
        return Some(FrameRelay::EtherType(EtherType(be16(rest, field::PROTOCOL)?), address_len + 2));
    }
    let pad_len = usize::from(rest.get(field::PAD_OR_NLPID) == Some(&PAD));
    let at = address_len + field::PAD_OR_NLPID + pad_len;
    Some(match *data.get(at)? {
        llc::NLPID_IPV4 => FrameRelay::EtherType(EtherType::IPV4, at + 1),
        llc::NLPID_IPV6 => FrameRelay::EtherType(EtherType::IPV6, at + 1),
        llc::NLPID_PPP => FrameRelay::Ppp(at + 1),
        llc::NLPID_SNAP => match llc::snap(data.get(at + 1..)?, at + 1)? {
            llc::Llc::EtherType(ether_type, len) => FrameRelay::EtherType(ether_type, len),
            llc::Llc::Ethernet(len) => FrameRelay::Ethernet(len),
            llc::Llc::CiscoSnap(number) => FrameRelay::CiscoSnap(number),
            _ => FrameRelay::Other,
        },
        other => FrameRelay::Nlpid(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_ends_where_its_lowest_bit_is_set() {
        for (data, wanted) in [
            (&[4, 1, 3, 0xcc][..], Some(FrameRelay::EtherType(EtherType::IPV4, 4))),
            (&[4, 0, 1, 3, 0x8e], Some(FrameRelay::EtherType(EtherType::IPV6, 5))),
            (&[4, 0, 0, 1, 3, 0, 0xcc], Some(FrameRelay::EtherType(EtherType::IPV4, 7))),
            (&[4, 1, 3, 0xcf], Some(FrameRelay::Ppp(4))),
            (&[4, 1, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 7], Some(FrameRelay::Ethernet(10))),
            (&[4, 1, 3, 0, 0x80, 0, 0, 0x0c, 0, 7], Some(FrameRelay::CiscoSnap(7))),
            (&[4, 1, 3, 0, 0x80, 0, 0x10, 0x18, 0, 7], Some(FrameRelay::Other)),
            // Signaling (Q.933); the encapsulation of Cisco, which has no control field.
            (&[0, 1, 3, 8], Some(FrameRelay::Nlpid(8))),
            (&[4, 1, 8, 0], Some(FrameRelay::EtherType(EtherType::IPV4, 4))),
            (&[4, 1, 3], None),
            (&[4, 1, 8], None),
            (&[4], None),
        ] {
            assert_eq!(header(data), wanted, "{data:?}");
        }
    }
}
