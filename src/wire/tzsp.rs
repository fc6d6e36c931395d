//! TaZmen Sniffer Protocol (TZSP), which carries captured frames over UDP.

use super::be16;
use crate::base::LinkType;
use crate::codec::Reader;

/// Types of packets that carry a frame: a received frame, and a frame to transmit.
const RECEIVED: u8 = 0;
const TO_TRANSMIT: u8 = 1;

/// Tags that consist of their type alone.
const TAG_PADDING: u8 = 0;
const TAG_END: u8 = 1;
/// Tag with the length of the frame before it was truncated.
const TAG_ORIGINAL_LEN: u8 = 41;

/// Fields of a TZSP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct TzspHeader {
    /// Type of the link header at the start of the frame.
    pub(crate) link_type: LinkType,
    /// Length of the TZSP header with its tags, in octets.
    pub(crate) len: usize,
    /// Length of the frame before it was truncated, in octets, if it is stated.
    pub(crate) original_len: Option<u16>,
}

/// Reads a TZSP header of version 1; `None` if the header is truncated, the packet carries no frame, or the frame is of
/// an unknown type.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<TzspHeader> {
    let mut reader = Reader::new(data);
    let (version, packet_type): (u8, u8) = (reader.be().ok()?, reader.be().ok()?);
    if version != 1 || !matches!(packet_type, RECEIVED | TO_TRANSMIT) {
        return None;
    }
    let link_type = match reader.be::<u16>().ok()? {
        1 => LinkType::ETHERNET,
        18 => LinkType::IEEE802_11,
        119 => LinkType::IEEE802_11_PRISM,
        127 => LinkType::IEEE802_11_AVS,
        _ => return None,
    };
    let mut original_len = None;
    loop {
        match reader.be::<u8>().ok()? {
            TAG_PADDING => {}
            TAG_END => {
                return Some(TzspHeader {
                    link_type,
                    len: data.len() - reader.remaining_len(),
                    original_len,
                });
            }
            tag => {
                let len = usize::from(reader.be::<u8>().ok()?);
                let value = reader.bytes(len).ok()?;
                if tag == TAG_ORIGINAL_LEN {
                    original_len = be16(value, 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_precede_the_frame() {
        let plain = [1, 0, 0, 1, 1, 0xff];
        let header_of = |len, original_len| TzspHeader { link_type: LinkType::ETHERNET, len, original_len };
        assert_eq!(header(&plain), Some(header_of(5, None)));
        // Padding, the signal strength, and the length of the frame.
        let tagged = [1, 1, 0, 1, 0, 10, 1, 0xd0, 41, 2, 5, 0xdc, 1];
        assert_eq!(header(&tagged), Some(header_of(13, Some(1500))));
        for len in 0..tagged.len() {
            assert_eq!(header(&tagged[..len]), None);
        }
        assert_eq!(header(&[1, 0, 0, 18, 1]).map(|header| header.link_type), Some(LinkType::IEEE802_11));
        for (place, value) in [(0, 2), (1, 4), (1, 2), (3, 99)] {
            let mut other = plain;
            other[place] = value;
            assert_eq!(header(&other), None, "another version, keepalive, a reserved type, an unknown frame");
        }
    }
}
