//! EtherIP (RFC 3378).

use super::be16;
use crate::base::IpProtocol;

/// IP protocol number of EtherIP, for which [`IpProtocol`] has no named constant.
pub(crate) const PROTOCOL: IpProtocol = IpProtocol(97);

/// Length of an EtherIP header in octets.
pub(crate) const HEADER_LEN: usize = 2;

/// EtherIP header of version 3, with reserved bits of zero.
const VERSION_3: u16 = 0x3000;

mod field {
    pub(super) const VERSION: usize = 0;
}

/// Returns whether `data` starts with a valid EtherIP header.
#[must_use]
pub(crate) fn is_header(data: &[u8]) -> bool {
    be16(data, field::VERSION) == Some(VERSION_3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_version_3_without_reserved_bits_is_valid() {
        assert!(is_header(&[0x30, 0, 9]) && !is_header(&[0x30, 1]) && !is_header(&[0x20, 0]));
        assert!(!is_header(&[0x30]));
    }
}
