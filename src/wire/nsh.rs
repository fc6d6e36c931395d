//! Network Service Header (RFC 8300 section 2).

use super::be32;
use crate::base::EtherType;

/// Length of a Network Service Header without context headers, in octets.
pub(crate) const HEADER_LEN_MIN: usize = 8;

const VERSION_MASK: u8 = 0xc0;
const LEN_MASK: u8 = 0x3f;

mod field {
    pub(super) const VERSION: usize = 0;
    pub(super) const LEN: usize = 1;
    pub(super) const NEXT_PROTOCOL: usize = 3;
    pub(super) const PATH: usize = 4;
}

/// Fields of a Network Service Header (NSH).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct NshHeader {
    /// Length of the NSH header with its context headers, in octets.
    pub(crate) len: usize,
    /// EtherType of the payload; `None` if the next-protocol value is unknown.
    pub(crate) next: Option<EtherType>,
    /// Service path identifier, 24 bits.
    pub(crate) path_id: u32,
}

/// Reads an NSH header of version 0; `None` if the header is truncated or if its length field is below 8
/// octets.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<NshHeader> {
    let header = data.first_chunk::<HEADER_LEN_MIN>()?;
    let len = usize::from(header[field::LEN] & LEN_MASK) * 4;
    if header[field::VERSION] & VERSION_MASK != 0 || len < HEADER_LEN_MIN {
        return None;
    }
    let next = next_protocol(header[field::NEXT_PROTOCOL]);
    Some(NshHeader { len, next, path_id: be32(header, field::PATH)? >> 8 })
}

/// Returns the EtherType that corresponds to a next-protocol value of NSH or VXLAN-GPE
/// (draft-ietf-nvo3-vxlan-gpe).
#[must_use]
pub(crate) const fn next_protocol(number: u8) -> Option<EtherType> {
    Some(match number {
        1 => EtherType::IPV4,
        2 => EtherType::IPV6,
        3 => EtherType::ETHERNET_BRIDGING,
        4 => EtherType::NSH,
        5 => EtherType::MPLS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_in_words_and_the_next_protocol_is_named() {
        // Time to live 63 in both octets, six words, type 1, Ethernet; path 0x123456, index 255.
        let data = [0x0f, 0xc6, 1, 3, 0x12, 0x34, 0x56, 255];
        let next = Some(EtherType::ETHERNET_BRIDGING);
        assert_eq!(header(&data), Some(NshHeader { len: 24, next, path_id: 0x12_3456 }));
        let changed = |place: usize, value| {
            let mut data = data;
            data[place] = value;
            header(&data)
        };
        assert_eq!(changed(3, 200).map(|header| header.next), Some(None));
        assert_eq!((changed(0, 0x4f), changed(1, 0xc1), header(&data[..7])), (None, None, None));
    }
}
