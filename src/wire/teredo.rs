//! Teredo (RFC 4380 section 5.1.1).

use super::be16;

/// Octets of authentication and origin indication before the IPv6 packet; `None` if they are cut.
#[must_use]
pub fn indications_len(data: &[u8]) -> Option<usize> {
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
