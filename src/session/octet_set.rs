//! Sets of octets.

#[cfg(any(test, feature = "protocols"))]
use std::ops::RangeInclusive;

/// A set of octets, such as those with which a protocol begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OctetSet {
    /// Octets below 128, by bit.
    low: u128,
    /// Octets from 128 on.
    high: u128,
}

#[cfg(any(test, feature = "protocols"))]
impl OctetSet {
    /// The ASCII letters of both cases.
    pub(crate) const LETTERS: Self = Self::range(b'A'..=b'Z').and(Self::range(b'a'..=b'z'));

    /// Creates a set of the given octets.
    pub(crate) const fn of(mut octets: &[u8]) -> Self {
        let mut set = Self { low: 0, high: 0 };
        while let [first, rest @ ..] = octets {
            set = set.and(Self::range(*first..=*first));
            octets = rest;
        }
        set
    }

    /// Creates a set of all octets in a range.
    pub(crate) const fn range(octets: RangeInclusive<u8>) -> Self {
        let (mut octet, end) = (*octets.start() as u16, *octets.end() as u16);
        let mut set = Self { low: 0, high: 0 };
        while octet <= end {
            if octet < 128 {
                set.low |= 1 << octet;
            } else {
                set.high |= 1 << (octet - 128);
            }
            octet += 1;
        }
        set
    }

    /// Returns the octets that are in this set or the other one.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self { low: self.low | other.low, high: self.high | other.high }
    }
}

impl OctetSet {
    /// Returns whether an octet is in the set.
    pub(crate) const fn contains(self, octet: u8) -> bool {
        let bits = if octet < 128 { self.low } else { self.high };
        bits >> (octet % 128) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_exactly_its_octets() {
        type Test = fn(u8) -> bool;
        let sets: [(OctetSet, Test); 5] = [
            (OctetSet::of(b""), |_| false),
            (OctetSet::of(b"\0\x7F\x80\xFF"), |octet| [0, 127, 128, 255].contains(&octet)),
            (OctetSet::range(0..=255), |_| true),
            (OctetSet::range(100..=200), |octet| (100..=200).contains(&octet)),
            (OctetSet::LETTERS.and(OctetSet::of(b"+")), |octet| octet.is_ascii_alphabetic() || octet == b'+'),
        ];
        for (set, is_in) in sets {
            assert!((0..=255).all(|octet| set.contains(octet) == is_in(octet)), "{set:?}");
        }
    }
}
