//! What the readers of all protocols share.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::codec::{ReadError, Reader};
use crate::row::Name;
use crate::session::Text;

/// Most items of a list in a message that are kept, such as addresses or groups. The rest is omitted.
pub const ITEM_COUNT_MAX: usize = 64;

/// Result of reading a message: `None` if its fixed part is not valid; otherwise the message, and whether all of it is valid.
pub(super) type Reading<T> = Option<(T, bool)>;

/// Adds an item to a list, unless the list has as many as it may have.
pub(super) fn add<T>(list: &mut Vec<T>, item: T) {
    if list.len() < ITEM_COUNT_MAX {
        list.push(item);
    }
}

/// Reads addresses up to the end of the octets.
pub(super) fn addresses<const N: usize>(octets: &[u8], address: fn([u8; N]) -> IpAddr) -> Vec<IpAddr> {
    octets.as_chunks().0.iter().take(ITEM_COUNT_MAX).map(|octets| address(*octets)).collect()
}

pub(super) fn v4(octets: [u8; 4]) -> IpAddr {
    Ipv4Addr::from(octets).into()
}

pub(super) fn v6(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).into()
}

/// Reads a list of addresses of IPv4 or IPv6, of which `count` are announced. Returns whether all of them are there.
pub(super) fn counted(reader: &mut Reader<'_>, count: u16, is_v6: bool) -> (Vec<IpAddr>, bool) {
    let len = usize::from(count) * if is_v6 { 16 } else { 4 };
    let octets = reader.bytes(len.min(reader.remaining_len())).unwrap_or_default();
    let list = if is_v6 { addresses(octets, v6) } else { addresses(octets, v4) };
    (list, octets.len() == len)
}

/// Returns a text without the zeros that may fill its field, or end it.
pub(super) fn text(octets: &[u8]) -> Text<'_> {
    let end = octets.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
    Text(octets.get(..end).unwrap_or_default())
}

/// Returns the names of the bits that are set in a number, lowest first.
pub(super) fn bits(number: u32, names: &[&'static str]) -> Vec<Name> {
    let is_set = |bit: &usize| number >> bit & 1 == 1;
    (0..names.len()).filter(is_set).filter_map(|bit| names.get(bit).map(|name| Name(name))).collect()
}

/// Reads a message whose head must be complete.
pub(super) fn whole<T>(read: impl FnOnce() -> Result<(T, bool), ReadError>) -> Reading<T> {
    read().ok()
}
