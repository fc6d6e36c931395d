//! Teredo (RFC 4380 section 5.1.1).

use super::be16;

/// Returns the octets of authentication and origin indication before the IPv6 packet; `None` if they are
/// truncated.
#[must_use]
pub(crate) fn indications_len(data: &[u8]) -> Option<usize> {
    const AUTHENTICATION: u16 = 1;
    const ORIGIN: u16 = 0;
    // Nonce and confirmation.
    const AUTHENTICATION_END_LEN: usize = 9;
    let mut len = 0;
    if be16(data, 0)? == AUTHENTICATION {
        let [_, _, id_len, value_len] = *data.first_chunk::<4>()?;
        len += 4 + usize::from(id_len) + usize::from(value_len) + AUTHENTICATION_END_LEN;
    }
    if be16(data, len)? == ORIGIN {
        len += 8;
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authentication_precedes_the_origin() {
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
