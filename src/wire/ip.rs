//! Version field, which IPv4 and IPv6 have at the same offset and which distinguishes them.

use super::{ipv4, ipv6};
use crate::base::EtherType;

mod field {
    pub(super) const VERSION: usize = 0;
}

/// Returns the version of the IP packet at the start of `data`; `None` if `data` is empty.
#[must_use]
#[inline(always)]
pub(crate) fn version(data: &[u8]) -> Option<u8> {
    data.get(field::VERSION).map(|octet| octet >> 4)
}

/// Returns the EtherType that corresponds to the version of the IP packet at the start of `data`; `None` for
/// versions other than 4 and 6.
#[must_use]
#[inline(always)]
pub(crate) fn ether_type(data: &[u8]) -> Option<EtherType> {
    match version(data)? {
        ipv4::VERSION => Some(EtherType::IPV4),
        ipv6::VERSION => Some(EtherType::IPV6),
        _ => None,
    }
}

/// Returns whether the IP packet at the start of `data` has version 6.
#[must_use]
#[inline]
pub(crate) fn is_ipv6(data: &[u8]) -> bool {
    version(data) == Some(ipv6::VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_half_of_the_first_octet_is_the_version() {
        assert_eq!((version(&[0x45]), version(&[0x6f, 0]), version(&[])), (Some(4), Some(6), None));
        assert_eq!(
            (ether_type(&[0x45]), ether_type(&[0x60]), ether_type(&[0x54])),
            (Some(EtherType::IPV4), Some(EtherType::IPV6), None)
        );
        assert_eq!((is_ipv6(&[0x60]), is_ipv6(&[0x46]), is_ipv6(&[])), (true, false, false));
    }
}
