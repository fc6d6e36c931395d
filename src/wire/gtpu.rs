//! GTP-U version 1 (3GPP TS 29.281 section 5).

use super::{be16, be32};

const HEADER_LEN: usize = 8;
const OPTIONAL_LEN: usize = 4;
const G_PDU: u8 = 255;

const VERSION_MASK: u8 = 0xf0;
/// Version 1 with protocol type GTP, in the upper four bits of the flags field.
const VERSION_1: u8 = 0x30;
/// Flags of the extension header, the sequence number and the N-PDU number; if one is set, the optional fields
/// are present.
const HAS_OPTIONAL: u8 = 0x07;
const HAS_EXTENSION: u8 = 0x04;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const KIND: usize = 1;
    pub(super) const LEN: usize = 2;
    pub(super) const TEID: usize = 4;
}

/// Fields of the header of a G-PDU, the GTP-U message that carries user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct GtpuHeader {
    /// Tunnel endpoint identifier of the receiver.
    pub(crate) teid: u32,
    /// Length of the GTP-U header with its extension headers, in octets.
    pub(crate) len: usize,
    /// Length of the whole GTP-U message with its header, in octets.
    pub(crate) message_len: usize,
}

/// Reads the header of a G-PDU and skips its extension headers; `None` if the header is truncated or belongs to
/// another GTP-U message.
///
/// Linear in the number of extension headers, which the message length bounds.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<GtpuHeader> {
    let header = data.first_chunk::<HEADER_LEN>()?;
    let flags = header[field::FLAGS];
    if flags & VERSION_MASK != VERSION_1 || header[field::KIND] != G_PDU {
        return None;
    }
    let message_len = HEADER_LEN + usize::from(be16(header, field::LEN)?);
    let mut len = HEADER_LEN;
    if flags & HAS_OPTIONAL != 0 {
        len += OPTIONAL_LEN;
        // Only those of the three optional fields whose flag is set have a meaning. The type of the next
        // extension header is the last octet of what precedes it.
        let mut next = if flags & HAS_EXTENSION != 0 { *data.get(len - 1)? } else { 0 };
        while next != 0 {
            let extension_len = usize::from(*data.get(len)?) * 4;
            if extension_len == 0 {
                return None;
            }
            len += extension_len;
            next = *data.get(len - 1)?;
        }
    }
    (len <= message_len).then_some(GtpuHeader { teid: be32(header, field::TEID)?, len, message_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_headers_are_skipped() {
        let plain = [0x30, 255, 0, 20, 0, 0, 1, 77];
        assert_eq!(header(&plain), Some(GtpuHeader { teid: 333, len: 8, message_len: 28 }));
        // Only a sequence number: the following type has no meaning.
        let numbered = [0x32, 255, 0, 20, 0, 0, 1, 77, 0, 1, 0, 0x85];
        assert_eq!(header(&numbered), Some(GtpuHeader { teid: 333, len: 12, message_len: 28 }));
        // Extension headers of four octets and of eight.
        let extended = [0x34, 255, 0, 20, 0, 0, 1, 77, 0, 0, 0, 0x85, 1, 0, 0, 0xc0, 2, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(header(&extended), Some(GtpuHeader { teid: 333, len: 24, message_len: 28 }));
        for len in 0..extended.len() {
            assert_eq!(header(&extended[..len]), None);
        }
        // Beyond the message; of no length; an echo; version 2; GTP prime.
        for (place, value) in [(3, 15), (12, 0), (1, 1), (0, 0x54), (0, 0x24)] {
            let mut other = extended;
            other[place] = value;
            assert_eq!(header(&other), None, "{place}");
        }
    }
}
