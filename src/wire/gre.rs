//! GRE (RFC 2784, RFC 2890) and the enhanced GRE of PPTP (RFC 2637 section 4.1).

use super::{be16, be32};
use crate::base::EtherType;

/// ERSPAN types I and II.
pub(crate) const ERSPAN_II: EtherType = EtherType(0x88be);

/// ERSPAN type III.
pub(crate) const ERSPAN_III: EtherType = EtherType(0x22eb);

/// PPP.
pub(crate) const PPP: EtherType = EtherType(0x880b);

/// Fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct GreHeader {
    /// 0, or 1 for PPTP.
    pub(crate) version: u8,
    /// Protocol of the payload.
    pub(crate) protocol: EtherType,
    /// Octets of the header.
    pub(crate) len: usize,
    /// The key, if there is one. For PPTP: the payload length and the call identifier.
    pub(crate) key: Option<u32>,
    /// True if a checksum is present.
    pub(crate) has_checksum: bool,
    /// True if a sequence number is present; in PPTP, there is a payload only in this case.
    pub(crate) has_sequence: bool,
}

/// Reads a header; `None` if it is truncated, of another version, or has the source routes that RFC 2784
/// removed.
#[must_use]
pub(crate) fn header(data: &[u8]) -> Option<GreHeader> {
    let (flags, protocol) = (be16(data, 0)?, EtherType(be16(data, 2)?));
    // The most common case; the code below returns the same result in twice the time.
    if flags == 0 {
        let (has_checksum, has_sequence) = (false, false);
        return Some(GreHeader { version: 0, protocol, len: 4, key: None, has_checksum, has_sequence });
    }
    let has = |bit: u16| flags & bit != 0;
    let version = (flags & 7) as u8;
    if has(0x4000) || version > 1 || (version == 1 && (has(0x8000) || !has(0x2000) || protocol != PPP)) {
        return None;
    }
    let octets_of = |bit: u16| if has(bit) { 4 } else { 0 };
    let key_at = 4 + octets_of(0x8000);
    let len = key_at + octets_of(0x2000) + octets_of(0x1000) + if version == 1 { octets_of(0x80) } else { 0 };
    let key = if has(0x2000) { Some(be32(data, key_at)?) } else { None };
    Some(GreHeader { version, protocol, len, key, has_checksum: has(0x8000), has_sequence: has(0x1000) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the length and the key for each set of flags, counted field by field (RFC 2890 section 2).
    #[test]
    fn fields_are_in_the_order_of_their_flags() {
        for flags in [0u16, 0x8000, 0x2000, 0x1000, 0xa000, 0x9000, 0x3000, 0xb000] {
            let (mut data, mut wanted) = ([flags.to_be_bytes(), [8, 0]].concat(), None);
            for (bit, field) in [(0x8000, [9; 4]), (0x2000, [1, 2, 3, 4]), (0x1000, [8; 4])] {
                if flags & bit != 0 {
                    data.extend(field);
                    wanted = if bit == 0x2000 { Some(0x0102_0304) } else { wanted };
                }
            }
            let found = header(&data).unwrap();
            assert_eq!((found.version, found.protocol, found.len), (0, EtherType::IPV4, data.len()));
            assert_eq!(found.key, wanted);
            assert_eq!((found.has_checksum, found.has_sequence), (flags & 0x8000 != 0, flags & 0x1000 != 0));
        }
    }

    #[test]
    fn pptp_needs_a_key_and_ppp() {
        let data = [0x30, 0x81, 0x88, 0x0b, 0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2];
        let found = header(&data).unwrap();
        assert_eq!((found.version, found.len, found.key), (1, 16, Some(0x0007_0009)));
        for (place, value) in [(0, 0x10), (0, 0xb0), (3, 0x0c), (1, 0x82)] {
            let mut other = data;
            other[place] = value;
            assert_eq!(header(&other), None, "no key, a checksum, no PPP, version 2");
        }
        assert_eq!(
            (header(&[0x40, 0, 8, 0]), header(&[0, 0, 8]), header(&[0x20, 0, 8, 0, 1])),
            (None, None, None)
        );
    }
}
