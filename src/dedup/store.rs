//! Store of the octets of the last frames, for comparison.

/// Initial capacity of the store in octets.
const FIRST_LEN: usize = 64 << 10;

/// Maximum capacity of the store in octets, so that offsets fit in four bytes.
const LEN_MAX: usize = 1 << 31;

/// Position of the octets of a frame in the store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Location {
    /// Number of octets, including skipped ones, that had been written to the store before this frame.
    written: u64,
    at: u32,
    len: u32,
}

/// A ring of octets in which the octets of each frame are contiguous: a frame that does not fit before the end of the
/// ring is stored at its start.
#[derive(Debug)]
pub(super) struct Store {
    octets: Vec<u8>,
    max: usize,
    at: usize,
    /// Number of octets written to the store and skipped so far.
    written: u64,
    /// Number of octets that had been written before the oldest octets that the store kept when it last grew. Octets
    /// written earlier are no longer stored.
    floor: u64,
}

impl Store {
    /// Creates an empty store of at most `max_bytes` octets.
    pub(super) fn new(max_bytes: u64) -> Self {
        let max = usize::try_from(max_bytes).unwrap_or(LEN_MAX).min(LEN_MAX);
        Self { octets: Vec::new(), max, at: 0, written: 0, floor: 0 }
    }

    pub(super) const fn capacity(&self) -> usize {
        self.octets.len()
    }

    /// Returns the number of octets by which the store must grow before a frame of `len` octets is stored; zero if it
    /// need not grow. A frame that exceeds the limit of the store causes no growth.
    #[inline]
    pub(super) fn growth(&self, len: usize) -> usize {
        let capacity = self.octets.len();
        if self.at + len <= capacity || capacity == self.max || len > self.max {
            return 0;
        }
        (capacity * 2).max(FIRST_LEN).max(len.next_power_of_two()).min(self.max) - capacity
    }

    /// Grows the store by `growth` octets. Only octets written since the last wrap at the end of the ring are kept.
    pub(super) fn grow(&mut self, growth: usize) {
        self.octets.reserve_exact(growth);
        self.octets.resize(self.octets.len() + growth, 0);
        self.floor = self.written - self.at as u64;
    }

    /// Stores the octets of a frame, first the words of `head`, then `tail`, over the oldest octets. Returns their
    /// position; `None` if they exceed the capacity.
    pub(super) fn put(&mut self, head: &[u64], tail: &[u8]) -> Option<Location> {
        let (len, capacity) = (size_of_val(head) + tail.len(), self.octets.len());
        if len > capacity {
            return None;
        }
        if self.at + len > capacity {
            self.written += (capacity - self.at) as u64;
            self.at = 0;
        }
        let (first, second) = self.octets.get_mut(self.at..self.at + len)?.split_at_mut(size_of_val(head));
        for (octets, word) in first.chunks_exact_mut(size_of::<u64>()).zip(head) {
            octets.copy_from_slice(&word.to_ne_bytes());
        }
        second.copy_from_slice(tail);
        let position = Location { written: self.written, at: self.at as u32, len: len as u32 };
        self.at += len;
        self.written += len as u64;
        Some(position)
    }

    /// Returns the octets of a frame at a position, if they are still stored.
    #[inline]
    pub(super) fn octets(&self, position: Location) -> Option<&[u8]> {
        let is_there =
            position.written >= self.floor && self.written - position.written <= self.octets.len() as u64;
        let at = position.at as usize;
        if is_there { self.octets.get(at..at + position.len as usize) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Checks that stored octets equal the original ones, and that the last frames that fit in the store together
        /// are stored.
        #[test]
        fn stored_octets_are_unchanged(
            max in 1u64..300,
            lens in prop::collection::vec((0usize..6, 0usize..60, any::<bool>()), 1..200),
        ) {
            let mut store = Store::new(max);
            let mut put: Vec<(Vec<u8>, Option<Location>)> = Vec::new();
            for (number, (head, tail, may_grow)) in (0u8..).zip(lens.iter().cycle().take(200)) {
                let octets: Vec<u8> = (0..8 * head + tail).map(|at| number.wrapping_mul(31).wrapping_add(at as u8)).collect();
                let growth = store.growth(octets.len());
                if growth > 0 && *may_grow {
                    store.grow(growth.min(37));
                }
                let (first, second) = octets.split_at(8 * head);
                let words: Vec<u64> = first.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
                let position = store.put(&words, second);
                prop_assert_eq!(position.is_some(), octets.len() <= store.capacity());
                put.push((octets, position));
                prop_assert!(store.capacity() as u64 <= max);
                let mut younger_len = 0;
                for (octets, position) in put.iter().rev() {
                    let Some(position) = position else { continue };
                    let found = store.octets(*position);
                    prop_assert!(found.is_none_or(|found| found == octets));
                    younger_len += octets.len();
                    // At most one frame's length is skipped at the end.
                    if store.floor == 0 && younger_len + 120 <= store.capacity() {
                        prop_assert!(found.is_some());
                    }
                }
            }
        }
    }
}
