//! Numbers of octets in fields.

/// Maximum number of octets in a field that is accepted as valid: no body is longer, and few programs can
/// represent a greater length.
pub(super) const LEN_MAX: u64 = i64::MAX as u64;

/// Returns a number of octets; `None` if it is not one, or too large.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit).filter(|sum| *sum <= LEN_MAX)
    })
}
