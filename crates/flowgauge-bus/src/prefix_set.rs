//! Sets of topic prefixes.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// Number of octets of a prefix that are stored inline.
const INLINE_LEN: usize = 24;

/// A set of prefixes of topics, in which each prefix may be contained several times.
///
/// [`matches`](Self::matches) computes one hash per distinct length of the prefixes and compares the octets only on
/// equal hashes, so that its time does not depend on the number of prefixes. Hashes are keyed, because subscribers
/// choose the prefixes.
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
    used_count: usize,
    /// Bit `n` is set if there is a prefix of length `n`. Longer prefixes match no topic.
    lengths: u64,
    /// Number of prefixes of each length.
    length_counts: HashMap<usize, usize>,
    hasher: RandomState,
}

/// A prefix, and the number of times that it is contained; zero for a slot that is not used or was removed.
#[derive(Clone, Debug, Default)]
struct Slot {
    tag: u32,
    count: u32,
    prefix: Prefix,
}

#[derive(Clone, Debug)]
enum Prefix {
    Inline { len: u8, octets: [u8; INLINE_LEN] },
    Boxed(Box<[u8]>),
}

impl Default for Prefix {
    fn default() -> Self {
        Self::Inline { len: 0, octets: [0; INLINE_LEN] }
    }
}

impl Prefix {
    fn new(prefix: &[u8]) -> Self {
        let mut octets = [0; INLINE_LEN];
        match octets.get_mut(..prefix.len()) {
            Some(target) => {
                target.copy_from_slice(prefix);
                Self::Inline { len: prefix.len() as u8, octets }
            }
            None => Self::Boxed(prefix.into()),
        }
    }

    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, octets } => octets.get(..usize::from(*len)).unwrap_or_default(),
            Self::Boxed(octets) => octets,
        }
    }
}

/// Tag of a slot that was never used. Tags of prefixes are odd.
const NEVER_USED: u32 = 0;

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
    fn hash(&self, prefix: &[u8]) -> u64 {
        self.hasher.hash_one(prefix)
    }

    /// Returns the index of the slot that contains `prefix`; otherwise of the slot at which the search ended.
    #[inline(always)]
    fn find(&self, prefix: &[u8], hash: u64) -> Result<usize, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let tag = tag(hash);
        let mut index = (hash >> 32) as usize & mask;
        loop {
            match self.slots.get(index) {
                Some(slot) if slot.tag == tag && slot.prefix.as_bytes() == prefix => return Ok(index),
                Some(slot) if slot.tag != NEVER_USED => index = (index + 1) & mask,
                _ => return Err(index),
            }
        }
    }

    /// Returns whether the set contains a prefix.
    #[must_use]
    pub fn contains(&self, prefix: &[u8]) -> bool {
        let index = self.find(prefix, self.hash(prefix));
        index.is_ok_and(|index| self.slots.get(index).is_some_and(|slot| slot.count > 0))
    }

    /// Adds a prefix once. A prefix of more than 63 octets matches no topic, and is ignored.
    pub fn insert(&mut self, prefix: &[u8]) {
        if prefix.len() > Self::LEN_MAX {
            return;
        }
        if self.used_count * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = self.hash(prefix);
        match self.find(prefix, hash) {
            Ok(index) => {
                if let Some(slot) = self.slots.get_mut(index) {
                    slot.count += 1;
                    if slot.count == 1 {
                        self.count_length(prefix.len(), true);
                    }
                }
            }
            Err(index) => {
                if let Some(slot) = self.slots.get_mut(index) {
                    *slot = Slot { tag: tag(hash), count: 1, prefix: Prefix::new(prefix) };
                    self.used_count += 1;
                    self.count_length(prefix.len(), true);
                }
            }
        }
    }

    /// Removes a prefix once. Returns false if the set does not contain it.
    pub fn remove(&mut self, prefix: &[u8]) -> bool {
        let hash = self.hash(prefix);
        let Ok(index) = self.find(prefix, hash) else { return false };
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.count > 0) else { return false };
        slot.count -= 1;
        if slot.count == 0 {
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
        let kept: Vec<Slot> =
            std::mem::take(&mut self.slots).into_iter().filter(|slot| slot.count > 0).collect();
        self.slots.resize((kept.len() * 4).next_power_of_two().max(16), Slot::default());
        self.used_count = kept.len();
        for slot in kept {
            let prefix = slot.prefix.as_bytes();
            if let Err(index) = self.find(prefix, self.hash(prefix))
                && let Some(free) = self.slots.get_mut(index)
            {
                *free = slot;
            }
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
            if let Ok(index) = self.find(prefix, self.hash(prefix))
                && self.slots.get(index).is_some_and(|slot| slot.count > 0)
            {
                return true;
            }
        }
        false
    }

    /// Iterates over the different prefixes, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().filter(|slot| slot.count > 0).map(|slot| slot.prefix.as_bytes())
    }
}

/// Returns the tag of a slot with a hash.
#[inline(always)]
const fn tag(hash: u64) -> u32 {
    hash as u32 | 1
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
            let len = if next(50) == 0 { next(64) } else { next(5) };
            let octets: Vec<u8> = (0..len).map(|_| b'a' + next(3) as u8).collect();
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
