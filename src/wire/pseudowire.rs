//! Control word of a pseudowire over MPLS (RFC 4448 section 4.6).

/// Length of a pseudowire control word in octets.
pub(crate) const CONTROL_WORD_LEN: usize = 4;

mod field {
    pub(super) const FLAGS: usize = 0;
    pub(super) const SEQUENCE_NUMBER: usize = 2;
}

/// Returns whether `data` may start with a pseudowire control word: the first four bits are zero, which is not
/// an IP version (RFC 4385 section 2).
#[must_use]
pub(crate) fn may_be_control_word(data: &[u8]) -> bool {
    data.get(field::FLAGS).is_some_and(|octet| octet >> 4 == 0)
}

/// Returns whether the reserved bits of the control word of Ethernet, which follow the first four, are zero as senders must
/// set them.
#[must_use]
pub(crate) fn is_reserved_zero(data: &[u8]) -> bool {
    data.get(field::FLAGS..field::SEQUENCE_NUMBER) == Some(&[0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bits_are_zero() {
        assert!(may_be_control_word(&[0x0f]) && !may_be_control_word(&[0x10]) && !may_be_control_word(&[]));
        assert!(
            is_reserved_zero(&[0, 0, 1, 2]) && !is_reserved_zero(&[0x02, 0, 0, 0]) && !is_reserved_zero(&[0])
        );
    }
}
