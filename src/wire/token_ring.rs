//! Token Ring (IEEE 802.5) and FDDI (ISO 9314): headers before LLC.

/// Octets of an FDDI header: frame control and two addresses.
pub(crate) const FDDI_LEN: usize = 13;

const TOKEN_RING_LEN: usize = 14;
const SOURCE_OFFSET: usize = 8;

/// Fields of a Token Ring header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct TokenRing {
    /// True if LLC follows, false for ring management.
    pub(crate) is_llc: bool,
    /// True if the source address indicates a routing field, in which case its first octet is not that of the
    /// real address.
    pub(crate) is_routed: bool,
    /// Octets before LLC.
    pub(crate) len: usize,
}

/// Returns whether LLC follows an FDDI header; `None` if it is truncated.
#[must_use]
pub(crate) fn fddi_is_llc(data: &[u8]) -> Option<bool> {
    data.first_chunk::<FDDI_LEN>().map(|header| header[0] & 0x30 == 0x10)
}

/// Reads a Token Ring header and its routing field; `None` if it is truncated.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<TokenRing> {
    let fixed = data.first_chunk::<TOKEN_RING_LEN>()?;
    let is_routed = fixed[SOURCE_OFFSET] & 0x80 != 0;
    let routing_len = if is_routed { usize::from(data.get(TOKEN_RING_LEN)? & 0x1f) } else { 0 };
    Some(TokenRing { is_llc: fixed[1] & 0xc0 == 0x40, is_routed, len: TOKEN_RING_LEN + routing_len })
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
    fn fddi_distinguishes_llc_by_its_frame_control() {
        let with = |control| [&[control][..], &[1; 12]].concat();
        // Asynchronous and synchronous LLC; a token; station management.
        for (control, is_llc) in [(0x50, true), (0xd0, true), (0x80, false), (0x41, false)] {
            assert_eq!(fddi_is_llc(&with(control)), Some(is_llc), "{control:x}");
        }
        assert_eq!(fddi_is_llc(&with(0x50)[..12]), None);
    }
}
