//! What stands before 802.11 frames: radiotap (radiotap.org), Prism, AVS; and PPI, which names its own link type.

use super::be32;
use crate::base::LinkType;

/// What a radio header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Radio {
    /// Octets of the header.
    pub len: usize,
    /// The frame is padded to four octets between header and payload.
    pub is_padded: bool,
    /// The frame ends with its check sequence.
    pub has_check_sequence: bool,
}

fn le16(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn le32(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Reads a radiotap header: version 0, its length, and the flags field if it is there.
#[must_use]
pub fn radiotap(data: &[u8]) -> Option<Radio> {
    const TIMER: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    let len = usize::from(le16(data, 2)?);
    let header = data.get(..len)?;
    let first = le32(header, 4)?;
    let mut at = 8;
    let mut present = first;
    while present & MORE != 0 {
        present = le32(header, at)?;
        at += 4;
    }
    if first & TIMER != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if first & FLAGS != 0 { *header.get(at)? } else { 0 };
    Some(Radio { len, is_padded: flags & 0x20 != 0, has_check_sequence: flags & 0x10 != 0 })
}

/// Reads a Prism header, or an AVS header, which some drivers write under the same link type.
#[must_use]
pub fn prism(data: &[u8]) -> Option<Radio> {
    const AVS_MAGIC: u32 = 0x8021_1000;
    let word = be32(data, 4)?;
    if be32(data, 0)? & 0xffff_f000 == AVS_MAGIC {
        return Some(Radio { len: word as usize, is_padded: false, has_check_sequence: false });
    }
    // In the order of the capturing host: a length is small.
    let len = if word <= 0xffff { word } else { word.swap_bytes() };
    Some(Radio { len: len as usize, is_padded: false, has_check_sequence: false })
}

/// Reads a PPI header: its length, and the link type of what follows.
#[must_use]
pub fn ppi(data: &[u8]) -> Option<(usize, LinkType)> {
    let (len, link_type) = (le16(data, 2)?, le32(data, 4)?);
    Some((len.into(), LinkType(u16::try_from(link_type).ok()?)))
}
