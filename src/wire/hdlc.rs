//! Cisco HDLC (RFC 1547 section 4.3.1), and the direction octet that precedes frames of some serial link types.

use super::be16;
use crate::base::EtherType;

/// Length of the Cisco HDLC header in octets: address, control, protocol.
pub(crate) const HEADER_LEN: usize = 4;

/// Length of the direction field before a frame, in octets (`pcap-linktype(7)`, LINKTYPE_PPP_WITH_DIR,
/// LINKTYPE_C_HDLC_WITH_DIR, LINKTYPE_FRELAY_WITH_DIR).
pub(crate) const DIRECTION_LEN: usize = 1;

const UNICAST: u8 = 0x0f;
const MULTICAST: u8 = 0x8f;

mod field {
    pub(super) const ADDRESS: usize = 0;
    pub(super) const PROTOCOL: usize = 2;
}

/// Returns whether the first octet of a serial line frame is an address of Cisco HDLC: 0x0f (unicast) or 0x8f
/// (multicast). A PPP frame does not start with these values, because neither is a PPP protocol number.
#[must_use]
pub(crate) fn has_address(data: &[u8]) -> bool {
    matches!(data.get(field::ADDRESS), Some(&(UNICAST | MULTICAST)))
}

/// Returns the protocol of the payload of a Cisco HDLC frame; `None` if the header is truncated.
#[must_use]
pub(crate) fn protocol(data: &[u8]) -> Option<EtherType> {
    be16(data, field::PROTOCOL).map(EtherType)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_an_ether_type_behind_address_and_control() {
        assert_eq!(protocol(&[0x0f, 0, 0x86, 0xdd]), Some(EtherType::IPV6));
        assert_eq!(protocol(&[0x0f, 0, 0x86]), None);
        assert!(has_address(&[0x0f]) && has_address(&[0x8f, 0]) && !has_address(&[0xff, 3]));
        assert!(!has_address(&[]));
    }
}
