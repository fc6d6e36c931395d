//! Internet checksum (RFC 1071).

use crate::base::IpProtocol;

/// Returns the ones' complement sum of octets as 16-bit words in network order; an odd last octet is padded
/// with zero. Sums of several slices can be added; [`fold`] reduces the total to 16 bits. Linear, at about 0.1
/// ns per octet; correct for up to 2^33 octets.
#[must_use]
pub(crate) fn sum(octets: &[u8]) -> u64 {
    // Words of 32 bits give the same sum as pairs of 16 bits once it is folded (RFC 1071 section 2).
    let (words, rest) = octets.as_chunks::<4>();
    let sum = words.iter().fold(0, |sum, word| sum + u64::from(u32::from_be_bytes(*word)));
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    sum + u64::from(u32::from_be_bytes(last))
}

/// Folds a ones' complement sum to 16 bits. A checksum field contains the complement of the folded sum.
#[must_use]
pub(crate) const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the ones' complement sum of a pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1) without the
/// length of the segment. An IPv4 address is in the lower 32 bits of `source` and `destination`.
#[must_use]
pub(crate) fn pseudo_header_sum(source: u128, destination: u128, protocol: IpProtocol) -> u64 {
    sum(&source.to_be_bytes()) + sum(&destination.to_be_bytes()) + u64::from(protocol.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071_matches() {
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    proptest! {
        #[test]
        fn wide_sums_equal_sums_of_single_words(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let naive = octets.chunks(2).fold(0u32, |sum, pair| {
                let word = u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
                let sum = sum + word;
                (sum & 0xffff) + (sum >> 16)
            });
            prop_assert_eq!(u32::from(fold(sum(&octets))), naive);
        }
    }
}
