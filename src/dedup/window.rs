//! Deduplication window: hashes a frame, searches for the hash, decides whether the frame is a duplicate, and adds
//! it.

use std::hash::Hasher as _;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

use super::config::{DedupConfig, Mode};
use super::identity::Identity;
use super::ring::{Found, Ring};
use super::stats::DedupStats;
use super::store::{Location, Store};
use crate::base::{Account, Allowance, Budget, ConfigError, Frame, Resources, duration_nanos};

/// Result of the check of a frame for duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// The frame is kept: it was not seen before within the window, or the configuration does not count it as a
    /// duplicate.
    First,
    /// The frame is a duplicate and is dropped.
    Duplicate,
}

impl Verdict {
    /// Returns whether the frame is a duplicate and is dropped.
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate)
    }
}

/// Stored octets of frames, and their position in the store for each entry of the ring.
#[derive(Debug)]
struct Octets {
    store: Store,
    locations: Vec<Option<Location>>,
}

/// Deduplication window, which remembers the last frames and detects duplicates of them.
pub struct Window {
    ring: Ring,
    octets: Option<Box<Octets>>,
    window_ns: u64,
    mode: Mode,
    only_between_interfaces: bool,
    seed: u64,
    shared_seed: SharedSeed,
    memory: Allowance,
    stats: DedupStats,
}

impl Window {
    const LOCATION_COST: usize = size_of::<Option<Location>>();

    /// Creates a deduplication window. Allocates memory for 256 frames, which doubles as it fills, up to the limit:
    /// 56 bytes per frame, and 24 more if octets are compared.
    ///
    /// # Errors
    ///
    /// Returns a [`ConfigError`] for a limit of no frames, or of more than 2^30, or a budget that is too small for
    /// the initial memory in its [account](Account::Dedup).
    pub fn new(config: DedupConfig, resources: &Resources) -> Result<Self, ConfigError> {
        const FRAME_COUNT_MAX: u32 = 1 << 30;
        let max = resources.limits.dedup_frame_count_max;
        if !(1..=FRAME_COUNT_MAX).contains(&max) {
            return Err(ConfigError::out_of_range(
                "dedup",
                "dedup_frame_count_max",
                (1, FRAME_COUNT_MAX.into()),
            ));
        }
        let mut memory = Allowance::new(resources.budget.clone(), Account::Dedup, u64::MAX);
        let count = Ring::first_count(max);
        let needed_bytes = Self::cost(count, config.verifies);
        if memory.take(needed_bytes).is_err() {
            return Err(ConfigError::too_small("dedup", "budget", needed_bytes));
        }
        let [a, b, c, d] = resources.seeds.unwrap_or_else(crate::base::random_seeds);
        let octets = config.verifies.then(|| {
            Box::new(Octets {
                store: Store::new(resources.limits.dedup_bytes_max),
                locations: vec![None; count],
            })
        });
        Ok(Self {
            ring: Ring::new(max),
            octets,
            window_ns: duration_nanos(config.window),
            mode: config.mode,
            only_between_interfaces: config.only_between_interfaces,
            seed: a ^ b.rotate_left(32),
            shared_seed: SharedSeed::from_u64(c ^ d.rotate_left(32)),
            memory,
            stats: DedupStats::default(),
        })
    }

    const fn cost(count: usize, verifies: bool) -> u64 {
        (count * (Ring::ENTRY_COST + if verifies { Self::LOCATION_COST } else { 0 })) as u64
    }

    /// Returns whether a frame was seen before, and remembers it. O(length) for the hash, and O(1) otherwise;
    /// allocates only while the ring and the store grow.
    #[inline]
    pub fn check(&mut self, frame: &Frame<'_>) -> Verdict {
        match self.mode {
            Mode::Exact => self.judge(frame, &Identity::exact(frame)),
            Mode::IgnoreMirrorChanges => self.judge(frame, &Identity::behind_the_link(frame)),
        }
    }

    #[inline(always)]
    fn judge(&mut self, frame: &Frame<'_>, identity: &Identity<'_>) -> Verdict {
        self.stats.frame_count += 1;
        let hash = self.hash(identity);
        let found = self.ring.find(hash);
        let is_duplicate = found.is_some_and(|found| self.is_duplicate(frame, identity, &found));
        if is_duplicate {
            self.stats.duplicate_count += 1;
            self.stats.duplicate_octet_count += u64::from(frame.wire_len);
        }
        // Between interfaces, the repetitions of the others are measured from the frames that are kept.
        if !(is_duplicate && self.only_between_interfaces) {
            self.enter(frame, identity, hash, found);
        }
        if is_duplicate { Verdict::Duplicate } else { Verdict::First }
    }

    #[inline(always)]
    fn hash(&self, identity: &Identity<'_>) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared_seed);
        for word in identity.head() {
            hasher.write_u64(*word);
        }
        hasher.write(identity.tail());
        hasher.write_u64(identity.word());
        hasher.finish()
    }

    /// Returns whether a frame is a duplicate of `found`, the last frame with the same hash.
    fn is_duplicate(&mut self, frame: &Frame<'_>, identity: &Identity<'_>, found: &Found) -> bool {
        let entry = found.entry;
        if entry.time.abs_diff(frame.timestamp.as_nanos()) > self.window_ns {
            return false;
        }
        if self.only_between_interfaces && entry.interface == frame.interface {
            self.stats.same_interface_count += 1;
            return false;
        }
        let Some(octets) = &self.octets else { return true };
        let position = octets.locations.get(found.position).copied().flatten();
        match position.and_then(|position| octets.store.octets(position)) {
            None => {
                self.stats.unverified_count += 1;
                false
            }
            Some(octets) => {
                let is_equal = is_equal(octets, identity);
                self.stats.mismatch_count += u64::from(!is_equal);
                is_equal
            }
        }
    }

    #[inline(always)]
    fn enter(&mut self, frame: &Frame<'_>, identity: &Identity<'_>, hash: u64, mut found: Option<Found>) {
        if self.ring.is_due_to_grow() && self.grow() {
            // The entry that was found has moved.
            found = self.ring.find(hash);
        }
        let position = self.ring.push(hash, frame.timestamp.as_nanos(), frame.interface, found);
        if self.octets.is_some() {
            self.store(position, identity);
        }
    }

    /// Doubles the capacity of the ring, if the memory budget allows it. Returns whether the ring has grown.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> bool {
        let (count, verifies) = (self.ring.capacity(), self.octets.is_some());
        // While entries move, both rings are allocated.
        if self.memory.take(Self::cost(2 * count, verifies)).is_err() {
            self.stats.refused_count += 1;
            return false;
        }
        match &mut self.octets {
            None => self.ring.grow(|_, _| {}),
            Some(octets) => {
                let old = std::mem::replace(&mut octets.locations, vec![None; 2 * count]);
                self.ring.grow(|from, to| {
                    if let (Some(from), Some(to)) = (old.get(from), octets.locations.get_mut(to)) {
                        *to = *from;
                    }
                });
            }
        }
        self.memory.give(Self::cost(count, verifies));
        true
    }

    #[inline(never)]
    fn store(&mut self, position: usize, identity: &Identity<'_>) {
        let Some(octets) = &mut self.octets else { return };
        let (head, tail) = (identity.head(), identity.tail());
        let growth = octets.store.growth(size_of_val(head) + tail.len());
        if growth > 0 {
            if self.memory.take(growth as u64).is_ok() {
                octets.store.grow(growth);
            } else {
                self.stats.refused_count += 1;
            }
        }
        if let Some(slot) = octets.locations.get_mut(position) {
            *slot = octets.store.put(head, tail);
        }
    }

    /// Removes all frames from the window, as if none had been seen; counters and memory are kept. O(1).
    pub fn clear(&mut self) {
        self.ring.clear();
    }

    /// Returns the number of frames that the window remembers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ring.len() as usize
    }

    /// Returns whether the window remembers no frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ring.len() == 0
    }

    /// Returns the counters of the window.
    #[must_use]
    pub const fn stats(&self) -> &DedupStats {
        &self.stats
    }

    /// Returns the number of bytes that the window has allocated and charged to its budget.
    #[must_use]
    pub const fn held_bytes(&self) -> u64 {
        self.memory.held_bytes()
    }

    /// Returns the memory budget to which the window charges its allocations.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        self.memory.budget()
    }

    /// Panics unless the parts of the window are consistent with each other and with its memory account; for tests
    /// and fuzzers. O(frames).
    pub fn check_invariants(&self) {
        self.ring.check_invariants();
        let mut bytes = Self::cost(self.ring.capacity(), self.octets.is_some());
        if let Some(octets) = &self.octets {
            assert_eq!(octets.locations.len(), self.ring.capacity());
            bytes += octets.store.capacity() as u64;
        }
        assert_eq!(bytes, self.memory.held_bytes(), "what is held is what was charged");
        assert!(self.stats.duplicate_count <= self.stats.frame_count);
    }

    /// Sets the number of the next ring entry, so that a test can check wrapping.
    #[cfg(test)]
    pub(super) fn start_at(&mut self, number: u32) {
        self.ring.start_at(number);
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The seeds are omitted.
        f.debug_struct("Window")
            .field("len", &self.len())
            .field("window_ns", &self.window_ns)
            .field("mode", &self.mode)
            .field("only_between_interfaces", &self.only_between_interfaces)
            .field("verifies", &self.octets.is_some())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// Returns whether the stored octets of a frame equal an identity.
fn is_equal(octets: &[u8], identity: &Identity<'_>) -> bool {
    let (head, tail) = (identity.head(), identity.tail());
    octets.split_at_checked(size_of_val(head)).is_some_and(|(own_head, own_tail)| {
        let words = own_head.chunks_exact(size_of::<u64>());
        words.zip(head).all(|(own, word)| *own == word.to_ne_bytes()) && own_tail == tail
    })
}
