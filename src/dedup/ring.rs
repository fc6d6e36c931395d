//! The last frames, by hash.
//!
//! Entries lie in a ring in the order of arrival and are numbered from zero. A table of buckets, eight times as many as entries, has the
//! number of the newest entry of each bucket; each entry has the number of the one before it in its bucket. Nothing is ever
//! taken out: a number that lies further back than the ring reaches ends the chain, and its place is overwritten in turn.

/// Frames that a ring begins with.
const FIRST_COUNT: usize = 256;

/// Buckets per entry. Whether a bucket is empty is a matter of chance, and each time that a processor guesses wrong costs more
/// than the look-up itself: with two a third of them are not, with eight a ninth.
const BUCKETS: usize = 8;

/// A number that no bucket of an empty ring reaches.
const NONE: u32 = u32::MAX;

/// What is remembered of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) hash: u64,
    /// Nanoseconds since the epoch.
    pub(super) time: u64,
    pub(super) interface: u32,
    /// The number of the entry before it in its bucket.
    older: u32,
}

/// Where an entry was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) entry: Entry,
    /// The place of the entry, for what is kept beside the ring.
    pub(super) place: usize,
    /// The number of the entry after it in its bucket.
    newer: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Ring {
    entries: Box<[Entry]>,
    buckets: Box<[u32]>,
    /// The number of the next entry; wraps.
    next: u32,
    /// Entries that are reached back to.
    len: u32,
    /// Entries at most.
    max: u32,
}

impl Ring {
    /// Bytes per entry, the buckets included.
    pub(super) const ENTRY_COST: usize = size_of::<Entry>() + BUCKETS * size_of::<u32>();

    /// Entries that a ring of at most `max` begins with.
    pub(super) fn first_count(max: u32) -> usize {
        (max as usize).next_power_of_two().min(FIRST_COUNT)
    }

    /// An empty ring of at most `max` entries, from 1 to 2^30.
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

    /// Places that are allocated.
    pub(super) const fn capacity(&self) -> usize {
        self.entries.len()
    }

    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The newest entry with a hash. O(1) on average over the hashes, as buckets are more than entries.
    ///
    /// Numbers wrap. A number that was left over from the last round may name an entry of another bucket, and lead along that
    /// one's chain: no entry there has the hash, and ages only grow, so that this ends.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64) -> Option<Found> {
        let mut number = *self.buckets.get(self.bucket(hash))?;
        let (mut newer, mut age_before) = (None, 0);
        loop {
            let age = self.next.wrapping_sub(number);
            if age > self.len || age <= age_before {
                return None;
            }
            let place = self.place(number);
            let entry = *self.entries.get(place)?;
            if entry.hash == hash {
                return Some(Found { entry, place, newer });
            }
            (newer, age_before, number) = (Some(number), age, entry.older);
        }
    }

    /// Enters a frame; an entry of the same hash that was found leaves the chain, so that each hash is there once. The place of
    /// the new entry.
    #[inline(always)]
    pub(super) fn push(&mut self, hash: u64, time: u64, interface: u32, found: Option<Found>) -> usize {
        let (number, place, bucket) = (self.next, self.place(self.next), self.bucket(hash));
        let mut older = self.buckets.get(bucket).copied().unwrap_or(NONE);
        if let Some(found) = found {
            match found.newer {
                None => older = found.entry.older,
                Some(newer) => {
                    let newer = self.place(newer);
                    if let Some(newer) = self.entries.get_mut(newer) {
                        newer.older = found.entry.older;
                    }
                }
            }
        }
        if let Some(slot) = self.entries.get_mut(place) {
            *slot = Entry { hash, time, interface, older };
        }
        if let Some(head) = self.buckets.get_mut(bucket) {
            *head = number;
        }
        self.next = number.wrapping_add(1);
        self.len = (self.len + 1).min(self.max).min(self.entries.len() as u32);
        place
    }

    /// Whether the ring should grow before the next entry: once in each round, so that a refusal is not repeated at once.
    #[inline(always)]
    pub(super) fn is_due_to_grow(&self) -> bool {
        self.place(self.next) == 0 && self.len as usize == self.entries.len() && self.len < self.max
    }

    /// Doubles the ring. `moves` hears the old and the new place of each entry. O(entries), once per doubling.
    pub(super) fn grow(&mut self, mut moves: impl FnMut(usize, usize)) {
        let count = self.entries.len() * 2;
        let old = std::mem::replace(&mut self.entries, vec![Entry::default(); count].into());
        self.buckets = vec![NONE; BUCKETS * count].into();
        for age in (1..=self.len).rev() {
            let number = self.next.wrapping_sub(age);
            let (from, to) = (number as usize & (old.len() - 1), self.place(number));
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

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[cfg(test)]
    pub(super) fn start_at(&mut self, number: u32) {
        assert_eq!(self.len, 0);
        self.next = number;
    }

    /// Entries that a search for a hash would look at, at most.
    #[cfg(test)]
    pub(super) fn chain_len(&self, hash: u64) -> usize {
        let (mut number, mut age_before, mut len) = (self.buckets[self.bucket(hash)], 0, 0);
        loop {
            let age = self.next.wrapping_sub(number);
            if age > self.len || age <= age_before {
                return len;
            }
            (age_before, len) = (age, len + 1);
            number = self.entries[self.place(number)].older;
        }
    }

    /// Panics unless each entry that is reachable is found by its hash.
    pub(super) fn check_invariants(&self) {
        assert!(self.len <= self.max && self.len as usize <= self.entries.len());
        assert!(self.entries.len().is_power_of_two());
        assert!(self.entries.len() <= (self.max as usize).next_power_of_two());
        assert_eq!(self.buckets.len(), self.entries.len() * BUCKETS);
        for age in 1..=self.len {
            let place = self.place(self.next.wrapping_sub(age));
            let hash = self.entries.get(place).map(|entry| entry.hash);
            let found = hash.and_then(|hash| self.find(hash));
            assert!(found.is_some(), "an entry of age {age} is not found");
            let found_age = found.map_or(0, |found| self.age_of(found.place));
            assert!(found_age <= age, "an older entry of a hash hides a newer one");
        }
    }

    fn age_of(&self, place: usize) -> u32 {
        let newest = self.place(self.next.wrapping_sub(1));
        (newest.wrapping_sub(place) & (self.entries.len() - 1)) as u32 + 1
    }
}
