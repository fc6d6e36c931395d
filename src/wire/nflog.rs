//! Linux netfilter log (`pcap-linktype(7)`, LINKTYPE_NFLOG).

const HEADER_LEN: usize = 4;
const TLV_HEADER_LEN: usize = 4;
const TLV_PAYLOAD: u16 = 9;

/// Returns the offset of the logged packet; `None` if the capture ends before it, or there is none.
///
/// Lengths and types are in the order of the capturing host. Linear in the number of attributes.
#[must_use]
pub(crate) fn payload_offset(data: &[u8]) -> Option<usize> {
    let mut at = HEADER_LEN;
    let first = data.get(at..)?.first_chunk::<2>()?;
    let (little, big) = (u16::from_le_bytes(*first), u16::from_be_bytes(*first));
    // An attribute is small, the first one (the packet's header) in particular.
    let read = if little <= big { u16::from_le_bytes } else { u16::from_be_bytes };
    loop {
        let [a, b, c, d] = *data.get(at..)?.first_chunk::<TLV_HEADER_LEN>()?;
        let (len, kind) = (usize::from(read([a, b])), read([c, d]));
        if kind & 0x3fff == TLV_PAYLOAD {
            return Some(at + TLV_HEADER_LEN);
        }
        if len < TLV_HEADER_LEN {
            return None;
        }
        at += len.next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_to_four_octets_in_either_order() {
        // A prefix of three octets, then the packet.
        let little = [2, 0, 0, 1, 7, 0, 10, 0, 1, 2, 3, 0, 8, 0, 9, 0, 0x45];
        let big = [2, 0, 0, 1, 0, 7, 0, 10, 1, 2, 3, 0, 0, 8, 0, 9, 0x45];
        assert_eq!((payload_offset(&little), payload_offset(&big)), (Some(16), Some(16)));
        // Truncated in the header of the packet; an attribute shorter than its header would cause an endless
        // loop.
        assert_eq!(payload_offset(&little[..15]), None);
        assert_eq!(payload_offset(&[2, 0, 0, 1, 3, 0, 10, 0, 0, 0, 0, 0]), None);
    }
}
