//! MACsec: the security tag (IEEE 802.1AE, clause 9).

/// Octets of the integrity check value at the end, for the default cipher suites.
pub(crate) const CHECK_VALUE_LEN: usize = 16;

/// Fields of a security tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct SecTag {
    /// True if the user data cannot be read: encrypted, or changed by the cipher suite.
    pub(crate) is_encrypted: bool,
    /// Octets from behind the EtherType of MACsec to the user data, which begins with an EtherType.
    pub(crate) len: usize,
    /// Octets of user data, if fewer than 48.
    pub(crate) short_len: Option<usize>,
}

/// Reads a tag from the octets behind its EtherType.
#[must_use]
pub(crate) fn tag(data: &[u8]) -> Option<SecTag> {
    let [control, short_len, ..] = *data.first_chunk::<6>()?;
    let len = if control & 0x20 != 0 { 14 } else { 6 };
    let short_len = Some(usize::from(short_len & 0x3f)).filter(|len| *len > 0);
    Some(SecTag { is_encrypted: control & 0x0c != 0, len, short_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_contains_its_length_and_whether_it_hides_the_data() {
        let clear = |len, short_len| Some(SecTag { is_encrypted: false, len, short_len });
        assert_eq!(tag(&[0, 0, 0, 0, 0, 1]), clear(6, None));
        assert_eq!(tag(&[0x20, 46, 0, 0, 0, 1]), clear(14, Some(46)));
        // Either of E and C: the octets differ from those that were sent.
        for control in [0x08, 0x04, 0x0c] {
            assert!(tag(&[control, 0, 0, 0, 0, 1]).unwrap().is_encrypted);
        }
        assert_eq!(tag(&[0; 5]), None);
    }
}
