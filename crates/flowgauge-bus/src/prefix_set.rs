//! Sets of topic prefixes.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// A set of prefixes of topics, in which each prefix may be contained several times.
///
/// [`matches`](Self::matches) computes one hash per distinct length of the prefixes, so that its time does not depend on
/// the number of prefixes. Hashes are keyed, because subscribers choose the prefixes.
///
/// ```
/// use flowgauge_bus::PrefixSet;
///
/// let mut prefixes = PrefixSet::new();
/// prefixes.insert(b"flow.end.tcp");
/// prefixes.insert(b"session.");
/// assert!(prefixes.matches(b"flow.end.tcp.443"));
/// assert!(!prefixes.matches(b"flow.end.udp.53"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct PrefixSet {
    /// Open addressing with linear probing; the number of slots is a power of two, at most half of them are used.
    slots: Vec<Slot>,
    /// A prefix for each slot that is used.
    entries: Vec<Entry>,
    /// Bit `n` is set if there is a prefix of length `n`. Longer prefixes match no topic.
    lengths: u64,
    /// Number of prefixes of each length.
    length_counts: HashMap<usize, usize>,
    hasher: RandomState,
}

/// Place of a prefix in the table: half of a cache line.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// All octets of the prefix, or the hash of one that is longer than [`WORDS_LEN`].
    words: [u64; 3],
    /// Index of the entry.
    entry: u32,
    /// Length of the prefix plus one; zero if the slot is not used.
    tag: u8,
    /// True while the set does not contain the prefix any more.
    is_removed: bool,
}

/// A prefix, and the number of times that it is contained.
#[derive(Clone, Debug)]
struct Entry {
    octets: Box<[u8]>,
    count: u32,
}

/// A prefix that is searched.
#[derive(Clone, Copy)]
struct Needle<'a> {
    octets: &'a [u8],
    words: [u64; 3],
    hash: u64,
}

impl Needle<'_> {
    #[inline(always)]
    const fn tag(&self) -> u8 {
        self.octets.len() as u8 + 1
    }
}

/// Number of octets that three words contain.
const WORDS_LEN: usize = 24;

/// Returns the octets as words, which are different for different octets of the same length. `None` if there are more
/// than [`WORDS_LEN`].
#[inline(always)]
fn words(octets: &[u8]) -> Option<[u64; 3]> {
    let word = |octets: &[u8; 8]| u64::from_le_bytes(*octets);
    let half = |octets: &[u8; 4]| u64::from(u32::from_le_bytes(*octets));
    // First and last words may overlap, so that no octet is copied one by one.
    Some(match octets {
        [] => [0; 3],
        [first] => [u64::from(*first), 0, 0],
        [first, .., last] if octets.len() < 4 => {
            let middle = octets.get(1).copied().unwrap_or_default();
            [u64::from(*first), u64::from(middle), u64::from(*last)]
        }
        _ if octets.len() < 8 => [half(octets.first_chunk()?), half(octets.last_chunk()?), 0],
        _ if octets.len() <= 16 => [word(octets.first_chunk()?), word(octets.last_chunk()?), 0],
        _ if octets.len() <= WORDS_LEN => {
            let [first, second] = octets.as_chunks::<8>().0.first_chunk::<2>()?;
            [word(first), word(second), word(octets.last_chunk()?)]
        }
        _ => return None,
    })
}

impl PrefixSet {
    /// Maximum length of a prefix that can match a topic.
    const LEN_MAX: usize = 63;

    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of different prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length_counts.values().sum()
    }

    /// Returns whether the set has no prefix.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lengths == 0
    }

    #[inline(always)]
    fn needle<'a>(&self, octets: &'a [u8]) -> Needle<'a> {
        let (words, hash) = match words(octets) {
            // A tuple, whose words are hashed without their number.
            Some(words) => (words, self.hasher.hash_one((words[0], words[1], words[2]))),
            None => {
                let hash = self.hasher.hash_one(octets);
                ([hash; 3], hash)
            }
        };
        Needle { octets, words, hash }
    }

    /// Returns the index of the slot that contains a prefix; otherwise of the slot at which the search ended.
    #[inline(always)]
    fn find(&self, needle: Needle<'_>) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut index = (needle.hash >> 32) as usize & mask;
        loop {
            match self.slots.get(index) {
                Some(slot) if slot.tag == needle.tag() && slot.words == needle.words => {
                    let is_equal = needle.octets.len() <= WORDS_LEN
                        || self
                            .entries
                            .get(slot.entry as usize)
                            .is_some_and(|entry| *entry.octets == *needle.octets);
                    if is_equal {
                        return Ok(index);
                    }
                    index = (index + 1) & mask;
                }
                Some(slot) if slot.tag != 0 => index = (index + 1) & mask,
                _ => return Err(index),
            }
        }
    }

    /// Returns whether the slot of a search contains a prefix that was not removed.
    #[inline(always)]
    fn is_contained(&self, found: Result<usize, usize>) -> bool {
        found.is_ok_and(|index| self.slots.get(index).is_some_and(|slot| !slot.is_removed))
    }

    /// Returns whether the set contains a prefix.
    #[must_use]
    pub fn contains(&self, prefix: &[u8]) -> bool {
        prefix.len() <= Self::LEN_MAX && self.is_contained(self.find(self.needle(prefix)))
    }

    /// Adds a prefix once. A prefix of more than 63 octets matches no topic, and is ignored.
    pub fn insert(&mut self, prefix: &[u8]) {
        if prefix.len() > Self::LEN_MAX {
            return;
        }
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let needle = self.needle(prefix);
        match self.find(needle) {
            Ok(index) => {
                let Some(slot) = self.slots.get_mut(index) else { return };
                slot.is_removed = false;
                let Some(entry) = self.entries.get_mut(slot.entry as usize) else { return };
                entry.count += 1;
                if entry.count == 1 {
                    self.count_length(prefix.len(), true);
                }
            }
            Err(index) => {
                self.place(index, needle);
                self.entries.push(Entry { octets: prefix.into(), count: 1 });
                self.count_length(prefix.len(), true);
            }
        }
    }

    /// Uses a slot for the entry that is added next.
    fn place(&mut self, index: usize, needle: Needle<'_>) {
        if let Some(slot) = self.slots.get_mut(index) {
            let entry = self.entries.len() as u32;
            *slot = Slot { words: needle.words, entry, tag: needle.tag(), is_removed: false };
        }
    }

    /// Removes a prefix once. Returns false if the set does not contain it.
    pub fn remove(&mut self, prefix: &[u8]) -> bool {
        if prefix.len() > Self::LEN_MAX {
            return false;
        }
        let Ok(index) = self.find(self.needle(prefix)) else { return false };
        let Some(slot) = self.slots.get_mut(index).filter(|slot| !slot.is_removed) else { return false };
        let Some(entry) = self.entries.get_mut(slot.entry as usize) else { return false };
        entry.count -= 1;
        if entry.count == 0 {
            slot.is_removed = true;
            self.count_length(prefix.len(), false);
        }
        true
    }

    fn count_length(&mut self, len: usize, is_added: bool) {
        let count = self.length_counts.entry(len).or_default();
        *count = if is_added { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.lengths &= !(1 << len);
        } else {
            self.lengths |= 1 << len;
        }
    }

    /// Doubles the number of slots, without the prefixes that were removed.
    fn grow(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        let kept: Vec<_> = entries.into_iter().filter(|entry| entry.count > 0).collect();
        self.slots.clear();
        self.slots.resize((kept.len() * 4).next_power_of_two().max(16), Slot::default());
        for entry in kept {
            let needle = self.needle(&entry.octets);
            if let Err(index) = self.find(needle) {
                self.place(index, needle);
            }
            self.entries.push(entry);
        }
    }

    /// Returns whether a prefix of the set is a prefix of `topic`. Constant time per distinct length of the prefixes;
    /// no allocation.
    #[must_use]
    #[inline]
    pub fn matches(&self, topic: &[u8]) -> bool {
        // Lengths up to that of the topic.
        let mut lengths = self.lengths & (u64::MAX >> (63 - topic.len().min(63)));
        while lengths != 0 {
            let len = lengths.trailing_zeros() as usize;
            lengths &= lengths - 1;
            let Some(prefix) = topic.get(..len) else { return false };
            if self.is_contained(self.find(self.needle(prefix))) {
                return true;
            }
        }
        false
    }

    /// Iterates over the different prefixes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().filter(|entry| entry.count > 0).map(|entry| &*entry.octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_linear_search() {
        // A generator of numbers that is the same in each run.
        let mut state = 1_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut set = PrefixSet::new();
        let mut list: Vec<Vec<u8>> = Vec::new();
        for _ in 0..20_000 {
            // All lengths, and equal prefixes of each.
            let len = if next(3) == 0 { next(64) } else { next(5) };
            let mut octets: Vec<u8> = (0..len).map(|_| b'a' + next(3) as u8).collect();
            if len > 5 {
                octets.fill(b'a');
                let changed = next(len) as usize;
                octets[changed] = b'b';
            }
            match next(4) {
                0 => {
                    set.insert(&octets);
                    list.push(octets);
                }
                1 => {
                    let found = list.iter().position(|prefix| *prefix == octets);
                    assert_eq!(set.remove(&octets), found.is_some());
                    found.map(|index| list.swap_remove(index));
                }
                _ => {
                    let expected = list.iter().any(|prefix| octets.starts_with(prefix));
                    assert_eq!(set.matches(&octets), expected, "{octets:?}");
                }
            }
        }
        let mut different = list;
        different.sort();
        different.dedup();
        let mut contained: Vec<Vec<u8>> = set.iter().map(<[u8]>::to_vec).collect();
        contained.sort();
        assert_eq!(contained, different);
        assert_eq!(set.len(), different.len());
    }

    #[test]
    fn the_empty_prefix_matches_everything_and_an_empty_set_nothing() {
        let mut set = PrefixSet::new();
        assert!(!set.matches(b"flow.end") && !set.matches(b""));
        set.insert(b"");
        assert!(set.matches(b"flow.end") && set.matches(b""));
        assert!(set.remove(b"") && !set.remove(b""));
        assert!(set.is_empty() && !set.matches(b""));
        set.insert(&[b'x'; 64]);
        assert!(set.is_empty());
        set.insert(&[b'x'; 63]);
        assert!(set.matches(&[b'x'; 80]));
    }
}
