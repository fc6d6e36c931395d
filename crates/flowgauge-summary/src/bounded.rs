//! A map of bounded size that keeps the entries with the greatest weights.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize, Serializer};

use crate::keyed::Keyed;

/// Number of entries that remain while memory is short: fewer take little memory, and totals such as those of protocols need
/// all of theirs.
const FEW: usize = 64;

/// An entry of a [`Bounded`] map.
pub trait Weight {
    /// Returns what the entry contributes to the capture.
    fn weight(&self) -> u64;

    /// Returns the memory of the entry in bytes beside its own size.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A map of up to `MAX` entries. When it is full, the half of the entries with the least weights is removed, so that the
/// values of those that remain may be too low.
#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "SavedMap<K, V>")]
#[serde(bound(serialize = "K: Serialize, V: Serialize"))]
#[serde(bound(deserialize = "K: Eq + Hash + Deserialize<'de>, V: Deserialize<'de>"))]
pub struct Bounded<K, V, const MAX: usize = 65_536> {
    #[serde(serialize_with = "as_list")]
    entries: HashMap<K, V, Keyed>,
    removed_count: u64,
}

impl<K, V, const MAX: usize> Default for Bounded<K, V, MAX> {
    fn default() -> Self {
        Self { entries: HashMap::default(), removed_count: 0 }
    }
}

/// A map in a checkpoint, as a list: keys are not only texts.
#[derive(Deserialize)]
struct SavedMap<K, V> {
    entries: Vec<(K, V)>,
    removed_count: u64,
}

fn as_list<K: Serialize, V: Serialize, S: Serializer>(
    entries: &HashMap<K, V, Keyed>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(entries)
}

impl<K: Eq + Hash, V, const MAX: usize> TryFrom<SavedMap<K, V>> for Bounded<K, V, MAX> {
    type Error = String;

    fn try_from(SavedMap { entries, removed_count }: SavedMap<K, V>) -> Result<Self, String> {
        if entries.len() > MAX {
            return Err(format!("more than {MAX} entries"));
        }
        Ok(Self { entries: entries.into_iter().collect(), removed_count })
    }
}

impl<K: Clone + Eq + Hash + Ord, V: Default + Weight, const MAX: usize> Bounded<K, V, MAX> {
    /// Returns the entry of a key, which is added if there is none.
    pub fn entry(&mut self, key: K) -> &mut V {
        if self.entries.len() >= MAX && !self.entries.contains_key(&key) {
            self.shrink();
        }
        self.entries.entry(key).or_default()
    }

    /// Removes the half with the least weights; of equal ones, those with the greatest keys, so that runs have equal results.
    #[cold]
    fn shrink(&mut self) {
        let mut all: Vec<_> = self.entries.iter().map(|(key, entry)| (entry.weight(), key.clone())).collect();
        let middle = all.len() / 2;
        let by_weight = |(weight, key): &(u64, K), (other_weight, other): &(u64, K)| {
            weight.cmp(other_weight).then_with(|| other.cmp(key))
        };
        all.select_nth_unstable_by(middle, by_weight);
        all.truncate(middle + 1);
        self.removed_count += all.len() as u64;
        all.iter().for_each(|(_, key)| drop(self.entries.remove(key)));
    }

    /// Removes the half of the entries with the least weights, and frees their memory, unless there are few.
    pub(crate) fn halve(&mut self) {
        if self.entries.len() > FEW {
            self.shrink();
            self.entries.shrink_to_fit();
        }
    }

    /// Returns the number of entries that were removed.
    #[must_use]
    pub const fn removed_count(&self) -> u64 {
        self.removed_count
    }

    /// Returns what precedes a number of an entry in a text: values may be too low if entries were removed.
    pub(crate) const fn at_least(&self) -> &'static str {
        if self.removed_count == 0 { "" } else { "at least " }
    }

    /// Returns the memory of the table in bytes, with that of the copy when it grows.
    pub(crate) fn table_bytes(&self) -> usize {
        // A hash table has an octet for each bucket beside the entry, and an eighth of them is free.
        self.entries.capacity() * (size_of::<(K, V)>() + 1) / 7 * 8 / 2 * 3
    }

    /// Returns the memory of the map in bytes, with that of all entries. `key` returns what a key has beside its own size.
    pub(crate) fn held_bytes(&self, key: impl Fn(&K) -> usize) -> usize {
        let heap_bytes: usize = self.entries.iter().map(|(name, entry)| key(name) + entry.heap_bytes()).sum();
        self.table_bytes() + heap_bytes
    }

    /// Returns the entry of a key, if there is one.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// Returns the entry of a key to change it, if there is one.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Returns all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter()
    }

    /// Returns the entries with the greatest weights, in this order; of equal ones, those with the least keys. Sorts all
    /// entries.
    #[must_use]
    pub fn first(&self, count: usize) -> Vec<(&K, &V)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_unstable_by(|(key, entry), (other_key, other)| {
            other.weight().cmp(&entry.weight()).then_with(|| key.cmp(other_key))
        });
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Count(u64);

    impl Weight for Count {
        fn weight(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn few_entries_remain_however_short_memory_is() {
        let mut map = Bounded::<u64, Count>::default();
        (0..1000).for_each(|number| map.entry(number).0 += 1 + number);
        (0..20).for_each(|_| map.halve());
        assert!((FEW / 2..=FEW).contains(&map.entries.len()), "{} entries", map.entries.len());
        assert_eq!(*map.first(1)[0].0, 999);
    }

    #[test]
    fn the_greatest_entries_remain() {
        let mut map = Bounded::<u64, Count>::default();
        for number in 0..300_000_u64 {
            map.entry(number % 10).0 += 1;
            map.entry(number + 10).0 += 1;
        }
        assert!(map.entries.len() <= 65_536 && map.removed_count > 200_000);
        let first: Vec<_> = map.first(10).into_iter().map(|(key, count)| (*key, count.0)).collect();
        assert_eq!(first, (0..10).map(|key| (key, 30_000)).collect::<Vec<_>>());
    }
}
