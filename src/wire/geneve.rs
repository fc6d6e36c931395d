//! GENEVE (RFC 8926 section 3.4).

use super::{be16, be32};
use crate::base::EtherType;

const HEADER_LEN: usize = 8;
const OPTION_HEADER_LEN: usize = 4;

const VERSION_MASK: u8 = 0xc0;
const OPTIONS_LEN_MASK: u8 = 0x3f;
const CONTROL: u8 = 0x80;
const OPTION_LEN_MASK: u8 = 0x1f;

mod field {
    /// Offset of the version and of the length of the options, which counts words of four octets.
    pub(super) const VERSION_AND_LEN: usize = 0;
    pub(super) const FLAGS: usize = 1;
    pub(super) const PROTOCOL: usize = 2;
    pub(super) const VNI: usize = 4;
}

/// Field offsets in a GENEVE option.
mod option_field {
    pub(super) const LEN: usize = 3;
}

/// Fields of a GENEVE header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct GeneveHeader {
    /// Virtual network identifier, 24 bits.
    pub(crate) vni: u32,
    /// Protocol of the payload.
    pub(crate) protocol: EtherType,
    /// Length of the GENEVE header with its options, in octets.
    pub(crate) len: usize,
    /// True if the packet is a control packet, such as one that tests a path.
    pub(crate) is_control: bool,
}

/// Reads a GENEVE header; `None` if the header is truncated or has a version other than 0, or if the option lengths do
/// not add up to the length of all options.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<GeneveHeader> {
    let header = data.first_chunk::<HEADER_LEN>()?;
    let first = header[field::VERSION_AND_LEN];
    if first & VERSION_MASK != 0 {
        return None;
    }
    let len = HEADER_LEN + usize::from(first & OPTIONS_LEN_MASK) * 4;
    let mut options = data.get(HEADER_LEN..len)?;
    while let Some(option) = options.first_chunk::<OPTION_HEADER_LEN>() {
        let data_len = usize::from(option[option_field::LEN] & OPTION_LEN_MASK) * 4;
        options = options.get(OPTION_HEADER_LEN + data_len..)?;
    }
    let protocol = EtherType(be16(header, field::PROTOCOL)?);
    let is_control = header[field::FLAGS] & CONTROL != 0;
    Some(GeneveHeader { vni: be32(header, field::VNI)? >> 8, protocol, len, is_control })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_must_fill_their_length() {
        let plain = [0, 0x40, 0x65, 0x58, 0x12, 0x34, 0x56, 0xff];
        let (protocol, is_control) = (EtherType::ETHERNET_BRIDGING, false);
        let header_of = |len| GeneveHeader { vni: 0x12_3456, protocol, len, is_control };
        assert_eq!(header(&plain), Some(header_of(8)));
        // Two options: one of a word, whose three reserved bits are set, and one without data.
        let mut optional = [&plain[..], &[1, 2, 0x80, 0xe1, 9, 9, 9, 9, 1, 2, 3, 0]].concat();
        optional[0] = 3;
        assert_eq!(header(&optional), Some(header_of(20)));
        for len in 0..optional.len() {
            assert_eq!(header(&optional[..len]), None);
        }
        optional[0] = 2;
        assert_eq!(header(&optional), Some(header_of(16)));
        optional[11] = 2;
        assert_eq!(header(&optional), None, "an option beyond the length of all");
        let mut other = plain;
        other[1] = 0x80;
        assert_eq!(header(&other), Some(GeneveHeader { is_control: true, ..header_of(8) }));
        other[0] = 0x40;
        assert_eq!(header(&other), None, "another version");
    }
}
