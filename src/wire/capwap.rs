//! Data packets of CAPWAP, between access points and their controllers (RFC 5415 section 4).

use super::be32;
use crate::base::LinkType;

const HEADER_LEN_MIN: usize = 8;

/// Version 0 with the type of a header without DTLS, in the first octet.
const PREAMBLE: u32 = 0;
/// Binding of 802.11 in the field of the wireless binding.
const BINDING_80211: u32 = 1;

const IS_NATIVE: u32 = 1 << 8;
const IS_FRAGMENT: u32 = 1 << 7;
const IS_KEEPALIVE: u32 = 1 << 3;

mod field {
    pub(super) const CONTROL: usize = 0;
}

/// Reads the header of a data packet. Returns its length in octets and the type of the frame behind it, Ethernet or
/// 802.11; `None` if the header is truncated, or the packet contains no whole frame, or an encrypted one.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<(usize, LinkType)> {
    let header = data.first_chunk::<HEADER_LEN_MIN>()?;
    let control = be32(header, field::CONTROL)?;
    let len = ((control >> 19 & 0x1f) * 4) as usize;
    let has = |flag: u32| control & flag != 0;
    if control >> 24 != PREAMBLE || len < HEADER_LEN_MIN || has(IS_FRAGMENT) || has(IS_KEEPALIVE) {
        return None;
    }
    let link_type = match (has(IS_NATIVE), control >> 9 & 0x1f) {
        (false, _) => LinkType::ETHERNET,
        (true, BINDING_80211) => LinkType::IEEE802_11,
        (true, _) => return None,
    };
    Some((len, link_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_determine_the_kind_of_frame() {
        // Length 2 or 4 words, radio 1, binding 1.
        let header_of =
            |words: u8, flags: [u8; 2]| header(&[0, words << 3, 0x42 | flags[0], flags[1], 0, 0, 0, 0]);
        assert_eq!(header_of(2, [0, 0]), Some((8, LinkType::ETHERNET)));
        assert_eq!(header_of(4, [1, 0x30]), Some((16, LinkType::IEEE802_11)));
        assert_eq!(
            (header_of(1, [0, 0]), header_of(2, [0, 0x80]), header_of(2, [0, 0x08])),
            (None, None, None)
        );
        assert_eq!(header(&[1, 0, 0, 0, 0, 0, 0, 0]), None, "DTLS");
        assert_eq!(header(&[0, 0x10, 0x45, 0, 0, 0, 0, 0]), None, "a frame of another binding");
        assert_eq!(header(&[0, 0x10, 0x42, 0, 0, 0, 0]), None);
    }
}
