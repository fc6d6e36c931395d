//! EtherIP (RFC 3378).

use super::be16;
use crate::base::IpProtocol;

/// Number of the protocol, which has no name in `base`.
pub(crate) const PROTOCOL: IpProtocol = IpProtocol(97);

/// Octets of the header.
pub(crate) const HEADER_LEN: usize = 2;

/// Version 3; the reserved bits are zero.
const VERSION_3: u16 = 0x3000;

mod field {
    pub(super) const VERSION: usize = 0;
}

/// Returns whether `data` starts with a valid header.
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
