//! Network Service Header (RFC 8300 section 2).

use super::be32;
use crate::base::EtherType;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NshHeader {
    /// Octets of the header with its context headers.
    pub len: usize,
    /// The EtherType of what follows, where it is one that is known.
    pub next: Option<EtherType>,
    /// Service path identifier, 24 bits.
    pub path_id: u32,
}

/// Reads a header of version 0; `None` if it is cut or its length is too small.
#[must_use]
pub fn header(data: &[u8]) -> Option<NshHeader> {
    let [first, second, _, next, ..] = *data.first_chunk::<8>()?;
    let len = usize::from(second & 0x3f) * 4;
    if first & 0xc0 != 0 || len < 8 {
        return None;
    }
    Some(NshHeader { len, next: next_protocol(next), path_id: be32(data, 4)? >> 8 })
}

/// What the next protocol of NSH and of VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe) stands for.
#[must_use]
pub const fn next_protocol(number: u8) -> Option<EtherType> {
    Some(match number {
        1 => EtherType::IPV4,
        2 => EtherType::IPV6,
        3 => EtherType::ETHERNET_BRIDGING,
        4 => EtherType::NSH,
        5 => EtherType::MPLS,
        _ => return None,
    })
}
