//! GRE (RFC 2784, RFC 2890) and the enhanced GRE of PPTP (RFC 2637 section 4.1).

use super::{be16, be32};
use crate::base::EtherType;

/// ERSPAN types I and II.
pub const ERSPAN_II: EtherType = EtherType(0x88be);

/// ERSPAN type III.
pub const ERSPAN_III: EtherType = EtherType(0x22eb);

/// PPP.
pub const PPP: EtherType = EtherType(0x880b);

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GreHeader {
    /// 0, or 1 for PPTP.
    pub version: u8,
    /// The protocol of the payload.
    pub protocol: EtherType,
    /// Octets of the header.
    pub len: usize,
    /// The key, if there is one. Of PPTP: the payload length and the call identifier.
    pub key: Option<u32>,
    /// A checksum is there.
    pub has_checksum: bool,
    /// A sequence number is there; in PPTP, only then a payload.
    pub has_sequence: bool,
}

/// Reads a header; `None` if it is cut, of another version, or has the source routes that RFC 2784 took away.
#[must_use]
pub fn header(data: &[u8]) -> Option<GreHeader> {
    let (flags, protocol) = (be16(data, 0)?, EtherType(be16(data, 2)?));
    // Nearly all of them; the rest of this reads the same from them, in twice the time.
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
