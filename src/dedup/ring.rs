//! Ring of the last frames, which can be searched by hash.
//!
//! Entries are stored in a ring in the order of arrival and have sequential numbers from zero. A table of buckets,
//! eight times as many as entries, has the number of the newest entry of each bucket; each entry has the number of
//! the previous entry in its bucket. Entries are never removed: a number older than the ring ends the chain, and its
//! position is overwritten in turn.

/// Initial capacity of a ring in frames.
const FIRST_COUNT: usize = 256;

/// Number of hash buckets per entry of the ring. Random hashes determine whether a bucket is empty, and each branch
/// misprediction costs more than the look-up itself: with two buckets per entry a third of them are occupied, with
/// eight a ninth.
const BUCKETS: usize = 8;

/// Initial value of each bucket. In an empty ring, no entry has this number.
const NONE: u32 = u32::MAX;

/// The data that the ring stores about a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) hash: u64,
    /// Timestamp of the frame, in nanoseconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) interface: u32,
    /// Number of the previous entry in the same bucket.
    older: u32,
}

/// The entry that a search by hash found, and its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) entry: Entry,
    /// Position of the entry in the ring, for data that is stored beside the ring.
    pub(super) position: usize,
    /// Number of the next entry in the same bucket.
    newer: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Ring {
    entries: Box<[Entry]>,
    buckets: Box<[u32]>,
    /// Number that the next new entry of the ring gets; wraps.
    next: u32,
    /// Number of valid entries in the ring.
    len: u32,
    /// Maximum number of entries in the ring.
    max: u32,
}

impl Ring {
    /// Memory per entry of the ring in bytes, including its buckets.
    pub(super) const ENTRY_COST: usize = size_of::<Entry>() + BUCKETS * size_of::<u32>();

    /// Returns the initial capacity, in entries, of a ring of at most `max` entries.
    pub(super) fn first_count(max: u32) -> usize {
        (max as usize).next_power_of_two().min(FIRST_COUNT)
    }

    /// Creates an empty ring of at most `max` entries, where `max` is from 1 to 2^30.
    pub(super) fn new(max: u32) -> Self {
        let count = Self::first_count(max);
        Self {
            entries: vec![Entry::default(); count].into(),
            buckets: vec![NONE; BUCKETS * count].into(),
            next: 0,
            len: 0,
            max,
        }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of entries for which the ring has allocated memory.
    pub(super) const fn capacity(&self) -> usize {
        self.entries.len()
    }

    #[inline(always)]
    fn position(&self, number: u32) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// Returns the newest entry with a hash. O(1) on average over the hashes, because there are more buckets than
    /// entries.
    ///
    /// Entry numbers wrap. A stale number from the previous round may refer to an entry of another bucket, and the
    /// search then follows the chain of that bucket: no entry there has the hash, and ages only grow, so the search
    /// ends.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64) -> Option<Found> {
        let mut number = *self.buckets.get(self.bucket(hash))?;
        let (mut newer, mut age_before) = (None, 0);
        loop {
            let age = self.next.wrapping_sub(number);
            if age > self.len || age <= age_before {
                return None;
            }
            let position = self.position(number);
            let entry = *self.entries.get(position)?;
            if entry.hash == hash {
                return Some(Found { entry, position, newer });
            }
            (newer, age_before, number) = (Some(number), age, entry.older);
        }
    }

    /// Adds the entry of a frame. If `found` contains an older entry with the same hash, that entry is removed from
    /// its chain, so that each hash occurs once. Returns the position of the new entry.
    #[inline(always)]
    pub(super) fn push(&mut self, hash: u64, time: u64, interface: u32, found: Option<Found>) -> usize {
        let (number, position, bucket) = (self.next, self.position(self.next), self.bucket(hash));
        let mut older = self.buckets.get(bucket).copied().unwrap_or(NONE);
        if let Some(found) = found {
            match found.newer {
                None => older = found.entry.older,
                Some(newer) => {
                    let newer = self.position(newer);
                    if let Some(newer) = self.entries.get_mut(newer) {
                        newer.older = found.entry.older;
                    }
                }
            }
        }
        if let Some(slot) = self.entries.get_mut(position) {
            *slot = Entry { hash, time, interface, older };
        }
        if let Some(head) = self.buckets.get_mut(bucket) {
            *head = number;
        }
        self.next = number.wrapping_add(1);
        self.len = (self.len + 1).min(self.max).min(self.entries.len() as u32);
        position
    }

    /// Returns whether the ring should grow before the next entry. This is the case at most once per round, so that a
    /// refused memory charge is not retried at once.
    #[inline(always)]
    pub(super) fn is_due_to_grow(&self) -> bool {
        self.position(self.next) == 0 && self.len as usize == self.entries.len() && self.len < self.max
    }

    /// Doubles the capacity of the ring. Calls `moves` with the old and the new position of each entry. O(entries),
    /// once per doubling.
    pub(super) fn grow(&mut self, mut moves: impl FnMut(usize, usize)) {
        let count = self.entries.len() * 2;
        let old = std::mem::replace(&mut self.entries, vec![Entry::default(); count].into());
        self.buckets = vec![NONE; BUCKETS * count].into();
        for age in (1..=self.len).rev() {
            let number = self.next.wrapping_sub(age);
            let (from, to) = (number as usize & (old.len() - 1), self.position(number));
            let Some(mut entry) = old.get(from).copied() else { continue };
            let bucket = self.bucket(entry.hash);
            if let Some(head) = self.buckets.get_mut(bucket) {
                entry.older = std::mem::replace(head, number);
            }
            if let Some(slot) = self.entries.get_mut(to) {
                *slot = entry;
            }
            moves(from, to);
        }
    }

    /// Removes all entries from the ring.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[cfg(test)]
    pub(super) fn start_at(&mut self, number: u32) {
        assert_eq!(self.len, 0);
        self.next = number;
    }

    /// Returns the maximum number of ring entries that a search for a hash reads.
    #[cfg(test)]
    pub(super) fn chain_len(&self, hash: u64) -> usize {
        let (mut number, mut age_before, mut len) = (self.buckets[self.bucket(hash)], 0, 0);
        loop {
            let age = self.next.wrapping_sub(number);
            if age > self.len || age <= age_before {
                return len;
            }
            (age_before, len) = (age, len + 1);
            number = self.entries[self.position(number)].older;
        }
    }

    /// Panics unless a search by hash finds each reachable entry of the ring.
    pub(super) fn check_invariants(&self) {
        assert!(self.len <= self.max && self.len as usize <= self.entries.len());
        assert!(self.entries.len().is_power_of_two());
        assert!(self.entries.len() <= (self.max as usize).next_power_of_two());
        assert_eq!(self.buckets.len(), self.entries.len() * BUCKETS);
        for age in 1..=self.len {
            let position = self.position(self.next.wrapping_sub(age));
            let hash = self.entries.get(position).map(|entry| entry.hash);
            let found = hash.and_then(|hash| self.find(hash));
            assert!(found.is_some(), "an entry of age {age} is not found");
            let found_age = found.map_or(0, |found| self.age_of(found.position));
            assert!(found_age <= age, "an older entry of a hash hides a newer one");
        }
    }

    fn age_of(&self, position: usize) -> u32 {
        let newest = self.position(self.next.wrapping_sub(1));
        (newest.wrapping_sub(position) & (self.entries.len() - 1)) as u32 + 1
    }
}
