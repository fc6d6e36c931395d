//! L2TP versions 2 (RFC 2661 section 3.1) and 3 (RFC 3931 section 4.1).

use super::{be16, be32};
use crate::codec::Reader;

/// Possible lengths in octets of the cookie and sublayer of an L2TPv3 data message together. The session
/// defines them; the header does not contain them.
pub(crate) const COOKIE_LENS: [usize; 4] = [0, 4, 8, 12];

/// Length of the L2TPv3 header in UDP, without the cookie, in octets.
const V3_UDP_LEN: usize = 8;
/// Length of the L2TPv3 header directly in IP, without the cookie, in octets.
const V3_IP_LEN: usize = 4;

const IS_CONTROL: u16 = 0x8000;
const HAS_LEN: u16 = 0x4000;
const HAS_SEQUENCE: u16 = 0x0800;
const HAS_OFFSET: u16 = 0x0200;
const VERSION_MASK: u16 = 0xf;

const SEQUENCE_LEN: usize = 4;

mod field {
    pub(super) const FLAGS: usize = 0;
    /// Offset of the session identifier in an L2TPv3 header in UDP.
    pub(super) const V3_UDP_SESSION: usize = 4;
    /// Offset of the session identifier in an L2TPv3 header directly in IP.
    pub(super) const V3_IP_SESSION: usize = 0;
}

/// Fields of the header of an L2TP data message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum L2tp {
    /// L2TP version 2: PPP follows the header.
    V2 {
        /// Length of the L2TPv2 header in octets.
        len: usize,
        /// Length of the L2TPv2 message in octets, if the header contains it.
        message_len: Option<usize>,
        /// Tunnel identifier in the upper 16 bits, session identifier in the lower 16 bits.
        ids: u32,
    },
    /// L2TP version 3: the session determines the kind of payload and the length of the cookie before it.
    V3 {
        /// Length of the L2TPv3 header without the cookie, in octets.
        len: usize,
        /// Session identifier of L2TPv3.
        session_id: u32,
    },
}

/// Reads an L2TP header in UDP; `None` if the header is truncated, belongs to a control message, or has a
/// version other than 2 and 3.
#[must_use]
pub(crate) fn in_udp(data: &[u8]) -> Option<L2tp> {
    let flags = be16(data, field::FLAGS)?;
    match flags & VERSION_MASK {
        _ if flags & IS_CONTROL != 0 => None,
        2 => version_2(data),
        3 => Some(L2tp::V3 { len: V3_UDP_LEN, session_id: be32(data, field::V3_UDP_SESSION)? }),
        _ => None,
    }
}

/// Reads the fields of an L2TPv2 header in order, because most of them are optional.
fn version_2(data: &[u8]) -> Option<L2tp> {
    let mut reader = Reader::new(data);
    let flags = reader.be::<u16>().ok()?;
    let has = |bit: u16| flags & bit != 0;
    let message_len = if has(HAS_LEN) { Some(reader.be::<u16>().ok()?.into()) } else { None };
    let ids = reader.be::<u32>().ok()?;
    // The payload may be truncated right behind the identifiers, so the remaining fields need not be present.
    let mut len = reader.offset() + if has(HAS_SEQUENCE) { SEQUENCE_LEN } else { 0 };
    if has(HAS_OFFSET) {
        len += 2 + usize::from(be16(data, len)?);
    }
    Some(L2tp::V2 { len, message_len, ids })
}

/// Reads an L2TPv3 header directly in IP; `None` if the header is truncated or belongs to a control message.
#[must_use]
pub(crate) fn in_ip(data: &[u8]) -> Option<L2tp> {
    let session_id = be32(data, field::V3_IP_SESSION).filter(|id| *id != 0)?;
    Some(L2tp::V3 { len: V3_IP_LEN, session_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_shift_the_payload() {
        let v2 = |len, message_len| Some(L2tp::V2 { len, message_len, ids: 0x0007_0009 });
        assert_eq!(in_udp(&[0, 2, 0, 7, 0, 9]), v2(6, None));
        assert_eq!(in_udp(&[0x40, 2, 0, 40, 0, 7, 0, 9]), v2(8, Some(40)));
        assert_eq!(in_udp(&[0x48, 2, 0, 40, 0, 7, 0, 9, 0, 1, 0, 2]), v2(12, Some(40)));
        assert_eq!(in_udp(&[0x4a, 2, 0, 40, 0, 7, 0, 9, 0, 1, 0, 2, 0, 3]), v2(17, Some(40)));
        assert_eq!(in_udp(&[0, 3, 0, 0, 0, 0, 1, 0]), Some(L2tp::V3 { len: 8, session_id: 256 }));
        assert_eq!(in_ip(&[0, 0, 1, 0]), Some(L2tp::V3 { len: 4, session_id: 256 }));
        // Control messages, another version, truncated headers.
        for data in [
            &[0xc8, 2, 0, 12, 0, 7, 0, 9][..],
            &[0x80, 3, 0, 0, 0, 0, 0, 1],
            &[0, 1, 0, 7, 0, 9],
            &[0, 2, 0, 7, 0],
        ] {
            assert_eq!(in_udp(data), None);
        }
        assert_eq!((in_ip(&[0; 4]), in_ip(&[0, 0, 1])), (None, None));
    }
}
