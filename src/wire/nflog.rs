//! Linux netfilter log (`pcap-linktype(7)`, LINKTYPE_NFLOG).

use super::{be16, le16};
use crate::base::EtherType;

/// Length of the NFLOG header before the attributes, in octets.
pub(crate) const HEADER_LEN: usize = 4;

const TLV_HEADER_LEN: usize = 4;
const TLV_PAYLOAD: u16 = 9;
const TLV_KIND_MASK: u16 = 0x3fff;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

mod field {
    pub(super) const FAMILY: usize = 0;
}

/// Returns the address family of the logged packet; `None` if `data` is empty.
#[must_use]
pub(crate) fn family(data: &[u8]) -> Option<u8> {
    data.get(field::FAMILY).copied()
}

/// Returns the EtherType of packets of an address family; `None` for families other than IPv4 and IPv6.
#[must_use]
pub(crate) const fn ether_type(family: u8) -> Option<EtherType> {
    match family {
        AF_INET => Some(EtherType::IPV4),
        AF_INET6 => Some(EtherType::IPV6),
        _ => None,
    }
}

/// Field offsets in an NFLOG attribute, which starts with its length.
mod tlv_field {
    pub(super) const KIND: usize = 2;
}

/// Returns the offset of the logged packet; `None` if the capture ends before the packet or if no attribute
/// contains one.
///
/// The lengths and types of the attributes are in the byte order of the capturing host. Linear in the number of
/// attributes.
#[must_use]
pub(crate) fn payload_offset(data: &[u8]) -> Option<usize> {
    let mut at = HEADER_LEN;
    let (little, big) = (le16(data, at)?, be16(data, at)?);
    // An attribute is small, the first one (the packet's header) in particular.
    let read = if little <= big { le16 } else { be16 };
    loop {
        let (len, kind) = (usize::from(read(data, at)?), read(data, at + tlv_field::KIND)?);
        if kind & TLV_KIND_MASK == TLV_PAYLOAD {
            return Some(at + TLV_HEADER_LEN);
        }
        if len < TLV_HEADER_LEN {
            return None;
        }
        at += len.next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_to_four_octets_in_either_order() {
        // A prefix of three octets, then the packet.
        let little = [2, 0, 0, 1, 7, 0, 10, 0, 1, 2, 3, 0, 8, 0, 9, 0, 0x45];
        let big = [2, 0, 0, 1, 0, 7, 0, 10, 1, 2, 3, 0, 0, 8, 0, 9, 0x45];
        assert_eq!((payload_offset(&little), payload_offset(&big)), (Some(16), Some(16)));
        // Truncated in the header of the packet; an attribute shorter than its header would cause an endless
        // loop.
        assert_eq!(payload_offset(&little[..15]), None);
        assert_eq!((family(&little).and_then(ether_type), family(&[])), (Some(EtherType::IPV4), None));
        assert_eq!(payload_offset(&[2, 0, 0, 1, 3, 0, 10, 0, 0, 0, 0, 0]), None);
    }
}
