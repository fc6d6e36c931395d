//! PPP (RFC 1661) with or without HDLC-like framing (RFC 1662).

use crate::base::EtherType;

use super::be16;

/// Fields of a PPP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct PppHeader {
    /// PPP protocol number (IANA "PPP DLL Protocol Numbers").
    pub(crate) protocol: u16,
    /// Length of the address, control and protocol fields that are present, in octets.
    pub(crate) len: usize,
}

/// PPP protocol number of IPv4.
pub(crate) const PROTOCOL_IPV4: u16 = 0x0021;

/// PPP protocol number of IPv6.
pub(crate) const PROTOCOL_IPV6: u16 = 0x0057;

/// PPP protocol number of MPLS.
pub(crate) const PROTOCOL_MPLS: u16 = 0x0281;

/// PPP protocol number of multicast MPLS.
pub(crate) const PROTOCOL_MPLS_MULTICAST: u16 = 0x0283;

/// PPP protocol number of bridged frames (RFC 3518).
pub(crate) const PROTOCOL_BRIDGING: u16 = 0x0031;

/// Length of an uncompressed PPP protocol field, in octets.
pub(crate) const HEADER_LEN_MIN: usize = 2;

const BRIDGING_LEN: usize = 2;
const LAN_ID_LEN: usize = 4;
const HAS_LAN_ID: u8 = 0x40;
const MAC_ETHERNET: u8 = 1;

/// Field offsets in the header of a bridged frame in PPP.
mod bridging_field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const MAC_KIND: usize = 1;
}

const ALL_STATIONS: u8 = 0xff;
const UNNUMBERED: u8 = 0x03;
const FRAMING_LEN: usize = 2;

/// Returns whether a PPP frame starts with the address and control fields of HDLC-like framing.
#[must_use]
pub(crate) fn has_framing(data: &[u8]) -> bool {
    data.starts_with(&[ALL_STATIONS, UNNUMBERED])
}

/// Returns the length in octets of the PPP bridging header before an Ethernet frame (RFC 3518 section 4.2):
/// flags, the MAC type, and an optional LAN identifier. `None` if the MAC type is not Ethernet or if the header
/// is truncated.
#[must_use]
pub(crate) fn bridged_ethernet_offset(data: &[u8]) -> Option<usize> {
    let flags = data.get(bridging_field::FLAGS)?;
    let is_ethernet = *data.get(bridging_field::MAC_KIND)? == MAC_ETHERNET;
    is_ethernet.then_some(BRIDGING_LEN + if flags & HAS_LAN_ID != 0 { LAN_ID_LEN } else { 0 })
}

/// Reads a PPP header: the address and control fields if they are present, and the protocol field, which may be
/// compressed to one octet (RFC 1661 section 6.5: the low bit of its first octet is then set).
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<PppHeader> {
    let framing_len = if has_framing(data) { FRAMING_LEN } else { 0 };
    let first = *data.get(framing_len)?;
    if first & 1 == 1 {
        return Some(PppHeader { protocol: first.into(), len: framing_len + 1 });
    }
    Some(PppHeader { protocol: be16(data, framing_len)?, len: framing_len + 2 })
}

impl PppHeader {
    /// Returns the EtherType that corresponds to the PPP protocol number of IPv4 or IPv6; `None` for other
    /// protocols.
    #[must_use]
    pub(crate) const fn ether_type(&self) -> Option<EtherType> {
        match self.protocol {
            PROTOCOL_IPV4 => Some(EtherType::IPV4),
            PROTOCOL_IPV6 => Some(EtherType::IPV6),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_and_compression_are_optional() {
        for (data, len) in
            [(&[0xff, 3, 0, 0x21][..], 4), (&[0, 0x21], 2), (&[0x21], 1), (&[0xff, 3, 0x21], 3)]
        {
            assert_eq!(header(data), Some(PppHeader { protocol: PROTOCOL_IPV4, len }));
        }
        assert_eq!(header(&[0xff, 3, 0]), None);
        assert_eq!(header(&[]), None);
        assert_eq!(
            [&[0, 1][..], &[0x40, 1], &[0, 3], &[0]].map(bridged_ethernet_offset),
            [Some(2), Some(6), None, None]
        );
    }
}
