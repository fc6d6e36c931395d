//! Teredo (RFC 4380 section 5.1.1).

use super::{be16, ipv6};

/// Length of a Teredo origin indication in octets.
const ORIGIN_LEN: usize = 8;

/// IPv6 prefix of Teredo addresses.
const PREFIX: [u8; 4] = [0x20, 0x01, 0, 0];

mod field {
    pub(super) const KIND: usize = 0;
}

/// Field offsets in a Teredo authentication header.
mod authentication_field {
    pub(super) const ID_LEN: usize = 2;
    pub(super) const VALUE_LEN: usize = 3;
    pub(super) const ID: usize = 4;
}

/// Returns whether the source or destination address of the IPv6 header at the start of `data`, which may be
/// truncated, is a Teredo address (RFC 4380 section 2.6).
#[must_use]
pub(crate) fn has_address(data: &[u8]) -> bool {
    ipv6::address_slices(data).iter().any(|address| address.starts_with(&PREFIX))
}

/// Returns the length in octets of the Teredo authentication header and origin indication before the IPv6
/// packet; zero if neither is present, and `None` if they are truncated.
#[must_use]
pub(crate) fn indications_len(data: &[u8]) -> Option<usize> {
    const AUTHENTICATION: u16 = 1;
    const ORIGIN: u16 = 0;
    // Nonce and confirmation.
    const AUTHENTICATION_END_LEN: usize = 9;
    let mut len = 0;
    if be16(data, field::KIND)? == AUTHENTICATION {
        let id_len = usize::from(*data.get(authentication_field::ID_LEN)?);
        let value_len = usize::from(*data.get(authentication_field::VALUE_LEN)?);
        len += authentication_field::ID + id_len + value_len + AUTHENTICATION_END_LEN;
    }
    if be16(data, len + field::KIND)? == ORIGIN {
        len += ORIGIN_LEN;
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_address_may_have_the_prefix() {
        let mut data = [0; 40];
        assert!(!has_address(&data));
        data[24..28].copy_from_slice(&PREFIX);
        assert!(has_address(&data) && has_address(&data[..28]) && !has_address(&data[..27]));
        data[8..10].copy_from_slice(&PREFIX[..2]);
        assert!(has_address(&data[..27]));
    }

    #[test]
    fn authentication_stands_before_the_origin() {
        let authentication = [&[0, 1, 1, 2][..], &[7; 3], &[8; 8], &[0]].concat();
        let origin = [0, 0, 1, 2, 3, 4, 5, 6];
        let packet = [0x60, 0];
        let len_of = |parts: &[&[u8]]| indications_len(&parts.concat());
        assert_eq!(len_of(&[&packet]), Some(0));
        assert_eq!(len_of(&[&origin, &packet]), Some(8));
        assert_eq!(len_of(&[&authentication, &packet]), Some(16));
        assert_eq!(len_of(&[&authentication, &origin, &packet]), Some(24));
        assert_eq!(
            (len_of(&[&authentication]), len_of(&[&authentication[..3]]), len_of(&[&[0]])),
            (None, None, None)
        );
    }
}
