//! Index from keyed hashes to slots: an extendible hash table of cache-line chunks.
//!
//! A chunk is one cache line: twelve slots, a tag for each (eight bits of its hash), and the number of entries that
//! found the chunk full and were stored in a later one. A look-up therefore almost always accesses one line, also for
//! a miss, and removal needs no tombstones. Chunks are stored in tables of a fixed size; a directory, indexed by the
//! highest bits of the hash, selects the table. When a table fills up, only that table is split in two, so growth
//! never accesses more than one table: the pause is bounded regardless of the number of flows.
//!
//! An attacker who knows the seeds can choose flows with equal hashes. A full table then cannot be relieved by
//! splits, or is split repeatedly for few entries. Tables and directory are therefore bounded by the number of
//! entries, and the distance of an entry from its home chunk by [`RUN_CHUNKS_MAX`]; beyond that, an entry of the same
//! run is evicted for each new one.

use std::mem;

use super::segments::Segments;

const CHUNK_ENTRIES: usize = 12;

/// Number of chunks in a table, which together take 16 KiB.
const TABLE_CHUNKS: usize = 256;

/// Number of entries at which a table is split: five sixths of its capacity, so that runs over several chunks stay
/// rare.
const TABLE_ENTRIES_MAX: u32 = (TABLE_CHUNKS * CHUNK_ENTRIES * 5 / 6) as u32;

/// Memory of the index in bytes per flow in the worst case, right after all tables were split.
pub(super) const BYTES_PER_FLOW_MAX: usize = 16;

/// Maximum number of chunks that are searched for a free entry. With random hashes, no run of full chunks is nearly as
/// long in a table that may be split.
const RUN_CHUNKS_MAX: usize = 32;

/// Number of tables that the index may have without any entry; one more is allowed for each `TABLE_ENTRIES_MIN`
/// entries. With random hashes, a table holds at least 1,280 entries, half of the number at which it was split.
const SPARE_TABLES: usize = 8;
const TABLE_ENTRIES_MIN: usize = 512;

/// Maximum number of directory entries for each table. With random hashes, the depths of tables differ by a bit or two.
const INDEXES_PER_TABLE_MAX: usize = 16;

const EMPTY: u8 = 0;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Chunk {
    /// Tags of the chunk's twelve entries, in the first twelve octets; the octet [`OVERFLOW`] is a counter. Sixteen
    /// octets, so that all tags can be compared at once.
    tags: [u8; 16],
    slots: [u32; CHUNK_ENTRIES],
}

/// Index of the octet of `tags` that counts the entries stored in later chunks because this one was full. The counter
/// saturates, and a saturated counter is never decreased.
const OVERFLOW: usize = 15;

#[derive(Debug)]
struct Table {
    chunks: [Chunk; TABLE_CHUNKS],
    len: u32,
    /// Number of leading hash bits that all entries of the table share.
    depth: u32,
}

/// Index from keyed hashes to slots of the flow table. The caller computes the hashes; equal keys must have equal
/// hashes.
#[derive(Debug)]
pub(super) struct Index {
    tables: Segments<Table, 1>,
    directory: Vec<u32>,
    depth: u32,
    len: usize,
}

impl Chunk {
    const VACANT: Self = Self { tags: [EMPTY; 16], slots: [0; CHUNK_ENTRIES] };

    /// Returns the positions in the chunk with the tag `tag`, as the high bit of one octet each. Exact: no carry
    /// crosses from one octet into the next.
    #[inline(always)]
    fn matches(&self, tag: u8) -> Matches {
        const LOW: u128 = u128::from_le_bytes([0x7f; 16]);
        const ENTRIES: u128 = (1 << (8 * CHUNK_ENTRIES)) - 1;
        let difference = u128::from_le_bytes(self.tags) ^ u128::from_le_bytes([tag; 16]);
        Matches(!(((difference & LOW) + LOW) | difference | LOW) & ENTRIES)
    }

    /// Iterates over the slots of the entries of the chunk.
    fn entries(&self) -> impl Iterator<Item = u32> {
        let taken = self.tags.iter().take(CHUNK_ENTRIES).zip(self.slots);
        taken.filter(|(tag, _)| **tag != EMPTY).map(|(_, slot)| slot)
    }
}

/// Iterator over positions of entries in a chunk, lowest first. Each position is the high bit of one octet.
#[derive(Clone, Copy)]
struct Matches(u128);

impl Iterator for Matches {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros() as usize / 8;
        self.0 &= self.0 - 1;
        // The modulo lets the compiler omit bounds checks.
        Some(index % CHUNK_ENTRIES)
    }
}

#[inline(always)]
const fn tag_of(hash: u64) -> u8 {
    let tag = hash as u8;
    if tag == EMPTY { u8::MAX } else { tag }
}

#[inline(always)]
const fn home_of(hash: u64) -> usize {
    (hash >> 8) as usize % TABLE_CHUNKS
}

impl Table {
    const fn new(depth: u32) -> Self {
        Self { chunks: [Chunk::VACANT; TABLE_CHUNKS], len: 0, depth }
    }

    /// Adds an entry to the first chunk with a free position, among `chunks_max` chunks starting at the entry's home
    /// chunk. If all are full, changes nothing and returns false.
    fn insert(&mut self, hash: u64, slot: u32, chunks_max: usize) -> bool {
        let home = home_of(hash);
        let vacant_in = |step: usize| self.chunks[(home + step) % TABLE_CHUNKS].matches(EMPTY).next();
        let vacant = (0..chunks_max).find_map(|step| vacant_in(step).map(|index| (step, index)));
        let Some((step, index)) = vacant else { return false };
        for passed in 0..step {
            let overflow = &mut self.chunks[(home + passed) % TABLE_CHUNKS].tags[OVERFLOW];
            *overflow = overflow.saturating_add(1);
        }
        let chunk = &mut self.chunks[(home + step) % TABLE_CHUNKS];
        chunk.tags[index] = tag_of(hash);
        chunk.slots[index] = slot;
        self.len += 1;
        true
    }

    fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let home = home_of(hash);
        for step in 0..TABLE_CHUNKS {
            let chunk = &mut self.chunks[(home + step) % TABLE_CHUNKS];
            for index in chunk.matches(tag_of(hash)) {
                if chunk.slots[index] == slot {
                    chunk.tags[index] = EMPTY;
                    self.len -= 1;
                    for passed in 0..step {
                        let overflow = &mut self.chunks[(home + passed) % TABLE_CHUNKS].tags[OVERFLOW];
                        if *overflow != u8::MAX {
                            *overflow -= 1;
                        }
                    }
                    return true;
                }
            }
            if chunk.tags[OVERFLOW] == 0 {
                return false;
            }
        }
        false
    }
}

impl Index {
    /// Creates an empty index, whose tables are in huge pages on request.
    pub(super) fn new(in_huge_pages: bool) -> Self {
        let mut tables = Segments::new(in_huge_pages);
        tables.push(|| Table::new(0));
        Self { tables, directory: vec![0], depth: 0, len: 0 }
    }

    /// Returns the table with a number.
    #[inline(always)]
    fn at(&self, number: usize) -> &Table {
        let [table] = self.tables.at(number);
        table
    }

    #[inline(always)]
    fn at_mut(&mut self, number: usize) -> &mut Table {
        let [table] = self.tables.at_mut(number);
        table
    }

    #[inline(always)]
    fn table(&self, hash: u64) -> &Table {
        self.at(self.directory[self.directory_index(hash)] as usize)
    }

    #[inline(always)]
    fn directory_index(&self, hash: u64) -> usize {
        // A shift by 64 in two steps, because depth may be zero.
        (hash >> 1 >> (63 - self.depth)) as usize
    }

    /// Returns the slot that is stored with this hash and for which `is_it` returns true.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let table = self.table(hash);
        let mut at = home_of(hash);
        for _ in 0..TABLE_CHUNKS {
            let chunk = &table.chunks[at];
            for index in chunk.matches(tag_of(hash)) {
                let slot = chunk.slots[index];
                if is_it(slot) {
                    return Some(slot);
                }
            }
            if chunk.tags[OVERFLOW] == 0 {
                return None;
            }
            at = (at + 1) % TABLE_CHUNKS;
        }
        None
    }

    /// Loads the cache line of the chunk in which a hash is searched first. The returned value has no meaning.
    #[inline(always)]
    pub(super) fn touch(&self, hash: u64) -> u64 {
        u64::from(self.table(hash).chunks[home_of(hash)].slots[0])
    }

    /// Returns the first slot with the tag of a hash, in the hash's home chunk or, if that overflowed, the next one: a
    /// cheap guess that is probably right.
    #[inline(always)]
    pub(super) fn candidate(&self, hash: u64) -> Option<u32> {
        let (table, home) = (self.table(hash), home_of(hash));
        let chunk = &table.chunks[home];
        if let Some(index) = chunk.matches(tag_of(hash)).next() {
            return Some(chunk.slots[index]);
        }
        if chunk.tags[OVERFLOW] == 0 {
            return None;
        }
        let chunk = &table.chunks[(home + 1) % TABLE_CHUNKS];
        chunk.matches(tag_of(hash)).next().map(|index| chunk.slots[index])
    }

    /// Adds a slot that is not in the index. `hash_of` returns the hash of a slot in the index, for splitting a table.
    ///
    /// # Errors
    ///
    /// Returns the slot that must be removed first, if too many hashes agree with this one to leave a free position,
    /// which does not happen by chance.
    pub(super) fn insert(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) -> Result<(), u32> {
        loop {
            let index = self.directory_index(hash);
            let number = self.directory[index] as usize;
            let is_full = self.at(number).len >= TABLE_ENTRIES_MAX;
            let is_split_first = is_full && self.may_split(number);
            if !is_split_first && self.at_mut(number).insert(hash, slot, RUN_CHUNKS_MAX) {
                self.len += 1;
                return Ok(());
            }
            if !is_split_first && !self.may_split(number) {
                return Err(self.at(number).chunks[home_of(hash)].slots[0]);
            }
            self.split(number, index, &hash_of);
        }
    }

    /// Returns whether the table `number` may be split: the numbers of tables and directory entries must stay in
    /// proportion to the entries.
    fn may_split(&self, number: usize) -> bool {
        let table_count = self.tables.len();
        let is_deepest = self.at(number).depth == self.depth;
        let directory_len = self.directory.len() * if is_deepest { 2 } else { 1 };
        table_count < SPARE_TABLES + self.len / TABLE_ENTRIES_MIN
            && directory_len <= INDEXES_PER_TABLE_MAX * (table_count + 1)
    }

    /// Splits the table `number` by the next bit of the hash, and doubles the directory if its index has too few bits
    /// to distinguish the halves. `index` is the index of a directory entry of the table.
    fn split(&mut self, number: usize, index: usize, hash_of: impl Fn(u32) -> u64) {
        let depth = self.at(number).depth;
        let mut index = index;
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|table| [*table, *table]).collect();
            self.depth += 1;
            index *= 2;
        }
        let whole = mem::replace(self.at_mut(number), Table::new(depth + 1));
        let high_number = self.tables.len();
        self.tables.push(|| Table::new(depth + 1));
        // The hashes of a chunk are computed first, so that the cache misses for their keys overlap.
        for chunk in &whole.chunks {
            let mut hashes = [0; CHUNK_ENTRIES];
            for (hash, slot) in hashes.iter_mut().zip(chunk.entries()) {
                *hash = hash_of(slot);
            }
            for (hash, slot) in hashes.into_iter().zip(chunk.entries()) {
                let is_high = hash >> (63 - depth) & 1 != 0;
                let half = self.at_mut(if is_high { high_number } else { number });
                let is_taken = half.insert(hash, slot, TABLE_CHUNKS);
                debug_assert!(is_taken, "half a table fits a whole one");
            }
        }
        // The directory entries of the table are contiguous; the upper half of them is set to the new table.
        let run = 1 << (self.depth - depth);
        let start = index / run * run;
        for entry in &mut self.directory[start + run / 2..start + run] {
            *entry = high_number as u32;
        }
    }

    /// Removes a slot that is stored with this hash. Returns whether it was present.
    pub(super) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let number = self.directory[self.directory_index(hash)] as usize;
        let was_there = self.at_mut(number).remove(hash, slot);
        self.len -= usize::from(was_there);
        was_there
    }

    /// Returns the number of entries in all tables of the index.
    pub(super) fn len(&self) -> usize {
        debug_assert_eq!(
            self.len,
            (0..self.tables.len()).map(|number| self.at(number).len as usize).sum::<usize>()
        );
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Returns a hash of the value that a slot represents, good enough for tests (the finalizer of SplitMix64).
    fn mix(value: u64) -> u64 {
        let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    #[test]
    fn the_index_agrees_with_a_map_through_growth_and_removal() {
        let mut index = Index::new(false);
        let mut model = HashMap::new();
        let hash_of = |slot: u32| mix(slot.into());
        for round in 0..60_000_u32 {
            index.insert(hash_of(round), round, hash_of).unwrap();
            model.insert(round, ());
            if round % 3 == 0 {
                let removed = mix(u64::from(round) << 32) as u32 % (round + 1);
                assert_eq!(index.remove(hash_of(removed), removed), model.remove(&removed).is_some());
            }
        }
        assert_eq!(index.len(), model.len());
        for slot in 0..60_000 {
            let found = index.find(hash_of(slot), |candidate| candidate == slot);
            assert_eq!(found.is_some(), model.contains_key(&slot), "slot {slot}");
        }
    }

    #[test]
    fn entries_that_overflow_a_chunk_are_found_and_removed() {
        let mut index = Index::new(false);
        let hash = 0x1234_5678;
        for slot in 0..40 {
            index.insert(hash, slot, |_| hash).unwrap();
        }
        for slot in 0..40 {
            assert_eq!(index.find(hash, |candidate| candidate == slot), Some(slot));
            assert!(index.remove(hash, slot));
            assert!(!index.remove(hash, slot));
        }
        assert_eq!(index.candidate(hash), None);
        assert!(index.at(0).chunks.iter().all(|chunk| chunk.tags == [EMPTY; 16]));
    }

    /// Adds hashes that an attacker who knows the seeds could create: all equal; equal in the bits that select the
    /// table but spread within it; and such that each split separates one entry from all others.
    #[test]
    fn colliding_hashes_drop_entries_without_extra_memory_or_panic() {
        let equal = |_: u32| 0x1234_5678_9abc_def0_u64;
        let one_table = |slot: u32| mix(slot.into()) >> 24;
        let lopsided =
            |slot: u32| if slot.is_multiple_of(2000) { mix(slot.into()) } else { mix(slot.into()) >> 20 };
        type Hash<'a> = &'a dyn Fn(u32) -> u64;
        for (name, hash_of, kept_min) in [
            ("equal", &equal as Hash<'_>, 380),
            ("one table", &one_table, 2500),
            ("lopsided", &lopsided, 2500),
        ] {
            let mut index = Index::new(false);
            let (mut kept, mut evicted_count) = (HashMap::new(), 0);
            for slot in 0..40_000 {
                while let Err(victim) = index.insert(hash_of(slot), slot, hash_of) {
                    assert!(kept.remove(&victim).is_some(), "{name}: {victim} is an entry");
                    assert!(index.remove(hash_of(victim), victim));
                    evicted_count += 1;
                }
                kept.insert(slot, ());
            }
            assert_eq!((index.len(), kept.len() + evicted_count), (kept.len(), 40_000), "{name}");
            assert!(kept.len() >= kept_min, "{name}: {} are kept", kept.len());
            assert!(kept.keys().all(|slot| index.find(hash_of(*slot), |found| found == *slot).is_some()));
            let table_count_max = SPARE_TABLES + 40_000 / TABLE_ENTRIES_MIN;
            assert!(index.tables.len() <= table_count_max, "{name}: {} tables", index.tables.len());
            assert!(index.directory.len() <= INDEXES_PER_TABLE_MAX * (index.tables.len() + 1), "{name}");
        }
    }

    /// Checks that random hashes never reach the limits of the index, with as many entries as a test permits.
    #[test]
    fn random_hashes_never_reach_the_limits() {
        let mut index = Index::new(false);
        let hash_of = |slot: u32| mix(slot.into());
        for slot in 0..300_000 {
            index.insert(hash_of(slot), slot, hash_of).unwrap();
        }
        assert!(index.tables.len() <= 300_000 / 1280 + 1, "{} tables", index.tables.len());
    }

    #[test]
    fn a_chunk_occupies_one_cache_line() {
        assert_eq!(size_of::<Chunk>(), 64);
    }
}
