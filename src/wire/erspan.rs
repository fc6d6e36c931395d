//! ERSPAN types II and III (draft-foschiano-erspan-03 section 4).

use super::be16;

/// Length of an ERSPAN type II header, in octets.
const TYPE_2_LEN: usize = 8;
/// Length of an ERSPAN type III header without its platform-specific part, in octets.
const TYPE_3_LEN: usize = 12;
const PLATFORM_PART_LEN: usize = 8;

const SESSION_MASK: u16 = 0x3ff;
const HAS_PLATFORM_PART: u16 = 1;
const FRAME_TYPE_IP: u16 = 2;

mod field {
    pub(super) const VERSION: usize = 0;
    pub(super) const SESSION: usize = 2;
    /// Offset of the frame type and flags, which only type III has.
    pub(super) const FLAGS: usize = 10;
}

/// Fields of an ERSPAN header of type II or III.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct ErspanHeader {
    /// Length of the ERSPAN header in octets.
    pub(crate) len: usize,
    /// Identifier of the mirror session, ten bits.
    pub(crate) session_id: u16,
    /// True if an IP packet follows the ERSPAN header instead of an Ethernet frame.
    pub(crate) is_ip: bool,
}

/// Reads an ERSPAN header of type II; `None` if the header is truncated or has another version.
#[must_use]
pub(crate) fn type_2(data: &[u8]) -> Option<ErspanHeader> {
    let header = data.first_chunk::<TYPE_2_LEN>()?;
    (header[field::VERSION] >> 4 == 1).then_some(ErspanHeader {
        len: TYPE_2_LEN,
        session_id: be16(header, field::SESSION)? & SESSION_MASK,
        is_ip: false,
    })
}

/// Reads an ERSPAN header of type III, whose length includes its platform-specific part; `None` if the fixed
/// part is truncated or has another version.
#[must_use]
pub(crate) fn type_3(data: &[u8]) -> Option<ErspanHeader> {
    let header = data.first_chunk::<TYPE_3_LEN>()?;
    let flags = be16(header, field::FLAGS)?;
    let len = TYPE_3_LEN + if flags & HAS_PLATFORM_PART != 0 { PLATFORM_PART_LEN } else { 0 };
    let is_ip = flags >> 10 & 0x1f == FRAME_TYPE_IP;
    let session_id = be16(header, field::SESSION)? & SESSION_MASK;
    (header[field::VERSION] >> 4 == 2).then_some(ErspanHeader { len, session_id, is_ip })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_version_and_length() {
        // VLAN 5, session 0x2a3 with the bits above it set.
        let two = [0x10, 5, 0xfe, 0xa3, 0, 0, 0, 1];
        assert_eq!(type_2(&two), Some(ErspanHeader { len: 8, session_id: 0x2a3, is_ip: false }));
        let mut three = [0x20, 5, 0xfe, 0xa3, 0, 0, 0, 1, 0, 0, 0x88, 0xf0];
        assert_eq!(type_3(&three), Some(ErspanHeader { len: 12, session_id: 0x2a3, is_ip: true }));
        // The O bit: eight octets of platform-specific data.
        three[10..].copy_from_slice(&[0, 1]);
        assert_eq!(type_3(&three), Some(ErspanHeader { len: 20, session_id: 0x2a3, is_ip: false }));
        assert_eq!((type_2(&three), type_3(&[&two[..], &[0; 4]].concat())), (None, None));
        assert_eq!((type_2(&two[..7]), type_3(&three[..11])), (None, None));
    }
}
