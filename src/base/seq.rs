//! TCP sequence numbers: arithmetic modulo 2^32.

use std::fmt;

/// A TCP sequence number, compared according to RFC 9293 section 3.4: half of the number space is after each value,
/// and half is before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// Returns the sequence number that is `octets` after `self`, modulo 2^32.
    #[must_use]
    #[inline]
    pub const fn add(self, octets: u32) -> Self {
        Self(self.0.wrapping_add(octets))
    }

    /// Returns the distance from sequence number `other` to `self`, which is negative if `self` is before `other`.
    /// Exactly opposite values count as before.
    #[must_use]
    #[inline]
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// Returns whether sequence number `self` is before `other` (SEG.SEQ < RCV.NXT in the terms of RFC 9293).
    #[must_use]
    #[inline]
    pub(crate) const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Returns whether sequence number `self` is after `other`.
    #[must_use]
    #[inline]
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_correct_across_the_wrap() {
        let before = SeqNum(u32::MAX - 1);
        let after = before.add(4);
        assert_eq!(after, SeqNum(2));
        assert!(before.is_before(after) && after.is_after(before));
        assert_eq!(after.distance_from(before), 4);
        assert_eq!(before.distance_from(after), -4);
    }

    #[test]
    fn a_value_is_neither_before_nor_after_itself() {
        for value in [0, 1, u32::MAX, 1 << 31] {
            assert!(!SeqNum(value).is_before(SeqNum(value)));
            assert!(!SeqNum(value).is_after(SeqNum(value)));
        }
    }
}
