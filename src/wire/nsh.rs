//! Network Service Header (RFC 8300 section 2).

use super::be32;
use crate::base::EtherType;

/// Fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct NshHeader {
    /// Octets of the header with its context headers.
    pub(crate) len: usize,
    /// EtherType of the payload, if the next protocol is known.
    pub(crate) next: Option<EtherType>,
    /// Service path identifier, 24 bits.
    pub(crate) path_id: u32,
}

/// Reads a header of version 0; `None` if it is truncated or its length is too small.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<NshHeader> {
    let [first, second, _, next, ..] = *data.first_chunk::<8>()?;
    let len = usize::from(second & 0x3f) * 4;
    if first & 0xc0 != 0 || len < 8 {
        return None;
    }
    Some(NshHeader { len, next: next_protocol(next), path_id: be32(data, 4)? >> 8 })
}

/// Returns the EtherType of a next protocol of NSH and of VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
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
