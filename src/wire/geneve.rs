//! GENEVE (RFC 8926 section 3.4).

use super::{be16, be32};
use crate::base::EtherType;

const HEADER_LEN: usize = 8;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeneveHeader {
    /// Virtual network identifier, 24 bits.
    pub vni: u32,
    /// The protocol of the payload.
    pub protocol: EtherType,
    /// Octets of the header with its options.
    pub len: usize,
}

/// Reads a header; `None` if it is cut, of another version than 0, a control packet, or its options do not fill their
/// length.
#[must_use]
pub fn header(data: &[u8]) -> Option<GeneveHeader> {
    let [first, flags, ..] = *data.first_chunk::<HEADER_LEN>()?;
    if first & 0xc0 != 0 || flags & 0x80 != 0 {
        return None;
    }
    let len = HEADER_LEN + usize::from(first & 0x3f) * 4;
    let mut options = data.get(HEADER_LEN..len)?;
    while let Some([_, _, _, words]) = options.first_chunk::<4>() {
        options = options.get(4 + usize::from(words & 0x1f) * 4..)?;
    }
    Some(GeneveHeader { vni: be32(data, 4)? >> 8, protocol: EtherType(be16(data, 2)?), len })
}
