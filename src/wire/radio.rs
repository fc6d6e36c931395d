//! Headers before 802.11 frames: radiotap (radiotap.org), Prism, AVS; and PPI, which contains a link type.

use super::{be32, le16, le32};
use crate::base::LinkType;

/// Fields of a radio header before an 802.11 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Radio {
    /// Length of the radio header in octets.
    pub(crate) len: usize,
    /// True if padding between the 802.11 header and the payload aligns the payload to four octets.
    pub(crate) is_padded: bool,
    /// True if the 802.11 frame ends with its frame check sequence.
    pub(crate) has_check_sequence: bool,
}

/// Length of the fixed part of a radiotap, Prism, AVS or PPI header, in octets.
pub(crate) const HEADER_LEN_MIN: usize = 8;

mod radiotap_field {
    pub(super) const LEN: usize = 2;
    pub(super) const PRESENT: usize = 4;
    pub(super) const BEHIND_PRESENT: usize = 8;
}

mod prism_field {
    pub(super) const CODE: usize = 0;
    pub(super) const LEN: usize = 4;
}

mod ppi_field {
    pub(super) const LEN: usize = 2;
    pub(super) const LINK_TYPE: usize = 4;
}

/// Reads a radiotap header: its length, and the flags field if present; `None` if the header is truncated.
#[must_use]
pub(crate) fn radiotap(data: &[u8]) -> Option<Radio> {
    const TIMER: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    const TIMER_LEN: usize = 8;
    const IS_PADDED: u8 = 0x20;
    const HAS_CHECK_SEQUENCE: u8 = 0x10;
    let len = usize::from(le16(data, radiotap_field::LEN)?);
    let header = data.get(..len)?;
    let first = le32(header, radiotap_field::PRESENT)?;
    let mut at = radiotap_field::BEHIND_PRESENT;
    let mut present = first;
    while present & MORE != 0 {
        present = le32(header, at)?;
        at += 4;
    }
    if first & TIMER != 0 {
        at = at.next_multiple_of(TIMER_LEN) + TIMER_LEN;
    }
    let flags = if first & FLAGS != 0 { *header.get(at)? } else { 0 };
    let has = |bit| flags & bit != 0;
    Some(Radio { len, is_padded: has(IS_PADDED), has_check_sequence: has(HAS_CHECK_SEQUENCE) })
}

/// Reads a Prism header, or an AVS header, which some drivers write under the same link type.
#[must_use]
pub(crate) fn prism(data: &[u8]) -> Option<Radio> {
    const AVS_MAGIC: u32 = 0x8021_1000;
    let word = be32(data, prism_field::LEN)?;
    if be32(data, prism_field::CODE)? & 0xffff_f000 == AVS_MAGIC {
        return Some(Radio { len: word as usize, is_padded: false, has_check_sequence: false });
    }
    // The length is in the byte order of the capturing host, and it is small.
    let len = if word <= 0xffff { word } else { word.swap_bytes() };
    Some(Radio { len: len as usize, is_padded: false, has_check_sequence: false })
}

/// Reads a PPI header; returns its length in octets and the link type of the frame behind it.
#[must_use]
pub(crate) fn ppi(data: &[u8]) -> Option<(usize, LinkType)> {
    let (len, link_type) = (le16(data, ppi_field::LEN)?, le32(data, ppi_field::LINK_TYPE)?);
    Some((len.into(), LinkType(u16::try_from(link_type).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radiotap_flags_follow_all_bitmaps_and_the_timer() {
        let expected =
            |len, is_padded, has_check_sequence| Some(Radio { len, is_padded, has_check_sequence });
        // No fields present; only flags; a timer, aligned to eight, before them; a second bitmap.
        assert_eq!(radiotap(&[0, 0, 8, 0, 0, 0, 0, 0]), expected(8, false, false));
        assert_eq!(radiotap(&[0, 0, 9, 0, 2, 0, 0, 0, 0x10]), expected(9, false, true));
        let timed = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[9; 8], &[0x20]].concat();
        assert_eq!(radiotap(&timed), expected(17, true, false));
        let twice = [&[0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0][..], &[0; 4], &[9; 8], &[0x30]].concat();
        assert_eq!(radiotap(&twice), expected(25, true, true));
        assert_eq!(radiotap(&timed[..16]), None);
        // A sequence of bitmaps that each announce another one ends with the header.
        assert_eq!(radiotap(&[0, 0, 12, 0, 2, 0, 0, 0x80, 0, 0, 0, 0x80]), None);
    }

    #[test]
    fn prism_and_avs_share_a_link_type() {
        let len_of = |data: &[u8]| prism(data).map(|radio| radio.len);
        assert_eq!(len_of(&[0x44, 0, 0, 0, 144, 0, 0, 0]), Some(144));
        assert_eq!(len_of(&[0, 0, 0, 0x44, 0, 0, 0, 144]), Some(144));
        assert_eq!(len_of(&[0x80, 0x21, 0x10, 2, 0, 0, 0, 64]), Some(64));
        assert_eq!(len_of(&[0x80, 0x21, 0x10, 2, 0, 0, 0]), None);
        assert_eq!(ppi(&[0, 0, 32, 0, 105, 0, 0, 0]), Some((32, LinkType::IEEE802_11)));
        assert_eq!((ppi(&[0, 0, 32, 0, 0, 0, 1, 0]), ppi(&[0; 7])), (None, None));
    }
}
