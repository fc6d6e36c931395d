//! Fields of templates and records.

use crate::codec::{Prefix, ReadError, Reader};
use crate::ipfix::VARIABLE_LEN;

/// Field specifier in a template (RFC 7011 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Specifier {
    /// 0 for an element of the IANA registry.
    pub(super) enterprise_number: u32,
    pub(super) id: u16,
    pub(super) len: u16,
}

/// Returns the minimum length of a field in octets.
pub(super) const fn len_min(len: u16) -> usize {
    if len == VARIABLE_LEN { 1 } else { len as usize }
}

/// Reads the octets of a field.
#[inline(always)]
pub(super) fn field<'a>(reader: &mut Reader<'a>, len: u16) -> Result<&'a [u8], ReadError> {
    if len == VARIABLE_LEN { reader.prefixed(Prefix::Ipfix) } else { reader.bytes(len.into()) }
}

/// Returns the number in at most eight octets; fewer octets are permitted (RFC 7011 section 6.2).
#[inline(always)]
pub(super) fn unsigned(octets: &[u8]) -> Option<u64> {
    match *octets {
        [a] => Some(a.into()),
        [a, b] => Some(u16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        [] => None,
        _ if octets.len() > 8 => None,
        _ => Some(octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))),
    }
}
