//! Keys of hashes.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_seeds_differ() {
        assert_ne!(random_seeds(), random_seeds());
        assert_ne!(hash_state(None).hash_one(1), hash_state(None).hash_one(1));
        assert_eq!(hash_state(Some([1; 4])).hash_one(1), hash_state(Some([1; 4])).hash_one(1));
    }
}
