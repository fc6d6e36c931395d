//! Token Ring (IEEE 802.5) and FDDI (ISO 9314): headers before LLC.

/// Length of an FDDI header in octets: frame control and two addresses.
pub(crate) const FDDI_LEN: usize = 13;

/// Length of a Token Ring header without its routing field, in octets: access control, frame control and two
/// addresses.
pub(crate) const TOKEN_RING_LEN: usize = 14;

/// Offset of the destination address in an FDDI header; the source address follows, as in Ethernet.
pub(crate) const FDDI_ADDRESSES_OFFSET: usize = fddi_field::DESTINATION;

/// Offset of the destination address in a Token Ring header; the source address follows, as in Ethernet.
pub(crate) const TOKEN_RING_ADDRESSES_OFFSET: usize = field::DESTINATION;

const FDDI_KIND_MASK: u8 = 0x30;
const FDDI_LLC: u8 = 0x10;
const KIND_MASK: u8 = 0xc0;
const LLC: u8 = 0x40;
const IS_ROUTED: u8 = 0x80;
const ROUTING_LEN_MASK: u8 = 0x1f;

mod fddi_field {
    pub(super) const FRAME_CONTROL: usize = 0;
    pub(super) const DESTINATION: usize = 1;
}

/// Field offsets in a Token Ring header.
mod field {
    pub(super) const FRAME_CONTROL: usize = 1;
    pub(super) const DESTINATION: usize = 2;
    pub(super) const SOURCE: usize = 8;
    /// Offset of the routing field, whose first octet contains its length.
    pub(super) const ROUTING: usize = 14;
}

/// Fields of a Token Ring header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct TokenRing {
    /// True if LLC follows the Token Ring header; false for ring management.
    pub(crate) is_llc: bool,
    /// True if the source address indicates a routing field. The first octet of the source field then has an
    /// extra bit and differs from the first octet of the real address.
    pub(crate) is_routed: bool,
    /// Number of octets before LLC.
    pub(crate) len: usize,
}

/// Returns whether LLC follows the FDDI header at the start of `data`; `None` if the header is truncated.
#[must_use]
pub(crate) fn fddi_is_llc(data: &[u8]) -> Option<bool> {
    data.first_chunk::<FDDI_LEN>()
        .map(|header| header[fddi_field::FRAME_CONTROL] & FDDI_KIND_MASK == FDDI_LLC)
}

/// Reads a Token Ring header and its routing field; `None` if the header is truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<TokenRing> {
    let fixed = data.first_chunk::<TOKEN_RING_LEN>()?;
    let is_routed = fixed[field::SOURCE] & IS_ROUTED != 0;
    let routing_len = if is_routed { usize::from(data.get(field::ROUTING)? & ROUTING_LEN_MASK) } else { 0 };
    let is_llc = fixed[field::FRAME_CONTROL] & KIND_MASK == LLC;
    Some(TokenRing { is_llc, is_routed, len: TOKEN_RING_LEN + routing_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routing_field_follows_a_marked_source() {
        let mut data = [&[0x10, 0x40][..], &[1; 6], &[2; 6], &[0x06, 0, 0, 0, 0, 0]].concat();
        assert_eq!(header(&data), Some(TokenRing { is_llc: true, is_routed: false, len: 14 }));
        data[8] |= 0x80;
        assert_eq!(header(&data), Some(TokenRing { is_llc: true, is_routed: true, len: 20 }));
        assert_eq!(header(&data[..14]), None);
        data[1] = 0;
        assert_eq!(header(&data).map(|header| header.is_llc), Some(false));
    }

    #[test]
    fn fddi_identifies_llc_by_its_frame_control() {
        let with = |control| [&[control][..], &[1; 12]].concat();
        // Asynchronous and synchronous LLC; a token; station management.
        for (control, is_llc) in [(0x50, true), (0xd0, true), (0x80, false), (0x41, false)] {
            assert_eq!(fddi_is_llc(&with(control)), Some(is_llc), "{control:x}");
        }
        assert_eq!(fddi_is_llc(&with(0x50)[..12]), None);
    }
}
