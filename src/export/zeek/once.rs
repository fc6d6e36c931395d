//! What is logged once a day.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use crate::base::Timestamp;

/// Part of the memory that what is kept of flows that ended, of certificates and of hosts may each have, and the memory in bytes
/// that they may always have.
const MEMORY_PART: usize = 4;
const HELD_MIN: usize = 256 << 10;

/// Returns whether memory of `len` bytes is too much if `left` bytes are left.
pub(super) fn is_excess(len: usize, left: usize) -> bool {
    len > (len.saturating_add(left) / MEMORY_PART).max(HELD_MIN)
}

/// Maximum number of things that are known.
const KNOWN_MAX: usize = 1 << 16;

/// The time within which something is logged once.
const DAY: Duration = Duration::from_secs(86_400);

/// The things that were logged, each with the time.
#[derive(Debug)]
pub(super) struct Once<K> {
    known: HashMap<K, Timestamp>,
    /// Memory in bytes that each thing has beside its own size.
    heap_len: usize,
}

impl<K: Eq + Hash> Once<K> {
    pub(super) fn new(heap_len: usize) -> Self {
        Self { known: HashMap::new(), heap_len }
    }

    pub(super) fn heap_len(&self) -> usize {
        // A hash table has an octet for each place beside the entry, and an eighth of them is free.
        self.known.capacity() * (size_of::<(K, Timestamp)>() + 1) / 7 * 8 + self.heap_len * self.known.len()
    }

    /// Forgets all things if they take too much memory.
    pub(super) fn free(&mut self, left: usize) {
        if is_excess(self.heap_len(), left) {
            self.known = HashMap::new();
        }
    }

    /// Returns whether a thing was logged within a day.
    pub(super) fn contains(&self, key: &K, time: Timestamp) -> bool {
        self.known.get(key).is_some_and(|known| time.saturating_since(*known) < DAY)
    }

    /// Notes that a thing was logged. At the limit, those of more than a day are forgotten; if there are none, all are.
    pub(super) fn insert(&mut self, key: K, time: Timestamp) {
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, known| time.saturating_since(*known) < DAY);
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(key, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known takes a part of the memory that is left, or a minimum.
    #[test]
    fn what_is_known_is_within_its_part_of_the_memory() {
        let mut once = Once::new(80);
        let mut freed_count = 0;
        for number in 0..20_000 {
            once.insert(format!("{number:064}"), Timestamp::ZERO);
            let before = once.known.len();
            once.free(1 << 20);
            freed_count += usize::from(once.known.len() < before);
            assert!(!is_excess(once.heap_len(), 1 << 20), "{} bytes", once.heap_len());
        }
        assert!(freed_count > 1 && !once.known.is_empty());
    }

    #[test]
    fn a_thing_is_known_for_a_day() {
        let mut once = Once::new(0);
        let at = |seconds| Timestamp::from_parts(seconds, 0);
        once.insert(1, at(10));
        assert!(
            once.contains(&1, at(86_409)) && !once.contains(&1, at(86_410)) && !once.contains(&2, at(10))
        );
    }
}
