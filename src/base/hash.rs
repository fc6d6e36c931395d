//! Hashes, and the keys of those that need them.

use std::hash::BuildHasher as _;

use ahash::RandomState;

/// Returns four seeds from the randomness of the standard library, which are constant where the system has none
/// (`wasm32-unknown-unknown`).
pub(crate) fn random_seeds() -> [u64; 4] {
    let state = std::hash::RandomState::new();
    [0_u8, 1, 2, 3].map(|position| state.hash_one(position))
}

/// Returns a keyed hash with the given seeds, or random ones.
pub(crate) fn hash_state(seeds: Option<[u64; 4]>) -> RandomState {
    let [a, b, c, d] = seeds.unwrap_or_else(random_seeds);
    RandomState::with_seeds(a, b, c, d)
}

/// Returns the 64-bit FNV-1a hash of octets. It has no seed, so that it is the same in a process that continues from a
/// checkpoint: use it only where whoever chooses the octets could also repeat them.
#[cfg(feature = "protocols")]
#[inline]
pub(crate) fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those that the authors of the function publish.
    #[cfg(feature = "protocols")]
    #[test]
    fn fnv1a_has_the_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn random_seeds_differ() {
        assert_ne!(random_seeds(), random_seeds());
        assert_ne!(hash_state(None).hash_one(1), hash_state(None).hash_one(1));
        assert_eq!(hash_state(Some([1; 4])).hash_one(1), hash_state(Some([1; 4])).hash_one(1));
    }
}
