//! Index of datagrams by key, and their order by deadline.

use super::datagram::Body;
use super::input::DatagramKey;
use crate::base::Timestamp;

/// Index that stands for no slot.
const NONE: u32 = u32::MAX;

/// Maximum number of hash buckets. With more datagrams than that, the chains of the buckets become longer.
const BUCKETS_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) key: DatagramKey,
    pub(super) deadline: Timestamp,
    /// State of the datagram; `None` for a tombstone of a discarded datagram.
    pub(super) body: Option<Box<Body<T>>>,
    hash: u64,
    next_in_bucket: u32,
    newer: u32,
    older: u32,
}

/// Indexes of the slots at the two ends of a list in order of deadlines, which is linked through the slots.
#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
}

/// Hash table of datagrams with chained buckets over a vector of slots. Live datagrams and tombstones are
/// each in a list in order of deadlines.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    buckets: Box<[u32]>,
    lists: [List; 2],
    vacant: u32,
    len: usize,
}

const LIVE: usize = 0;
const TOMBSTONES: usize = 1;

impl<T> Slots<T> {
    pub(super) fn bucket_count(datagram_count_max: u32) -> usize {
        (datagram_count_max as usize).clamp(1, BUCKETS_MAX).next_power_of_two()
    }

    pub(super) fn new(datagram_count_max: u32) -> Self {
        Self {
            slots: Vec::new(),
            buckets: vec![NONE; Self::bucket_count(datagram_count_max)].into(),
            lists: [List { newest: NONE, oldest: NONE }; 2],
            vacant: NONE,
            len: 0,
        }
    }

    /// Returns the number of datagrams and tombstones.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of slots to allocate before the next insertion; zero if there is a free slot.
    pub(super) fn growth(&self, max: u32) -> usize {
        if self.vacant != NONE || self.slots.len() < self.slots.capacity() {
            return 0;
        }
        self.slots.len().clamp(64, 65_536).min((max as usize).saturating_sub(self.slots.len())).max(1)
    }

    pub(super) fn grow(&mut self, count: usize) {
        self.slots.reserve_exact(count);
    }

    /// Releases the memory of all slots if no slot is in use. Returns the number of slots that were released.
    pub(super) fn clear(&mut self) -> usize {
        if self.len > 0 {
            return 0;
        }
        self.vacant = NONE;
        std::mem::take(&mut self.slots).capacity()
    }

    pub(super) const fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    fn bucket_of(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    pub(super) fn at(&self, slot: u32) -> Option<&Slot<T>> {
        self.slots.get(slot as usize)
    }

    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Slot<T>> {
        self.slots.get_mut(slot as usize)
    }

    pub(super) fn find(&self, hash: u64, key: &DatagramKey) -> Option<u32> {
        let mut next = *self.buckets.get(self.bucket_of(hash))?;
        while let Some(slot) = self.at(next) {
            if slot.hash == hash && slot.key == *key {
                return Some(next);
            }
            next = slot.next_in_bucket;
        }
        None
    }

    /// Adds a datagram whose deadline is not before the deadline of any other datagram, and returns the index
    /// of its slot. There must be a free slot.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        key: DatagramKey,
        deadline: Timestamp,
        body: Box<Body<T>>,
    ) -> u32 {
        let bucket = self.bucket_of(hash);
        let next_in_bucket = self.buckets.get(bucket).copied().unwrap_or(NONE);
        let entry = Slot { key, deadline, body: Some(body), hash, next_in_bucket, newer: NONE, older: NONE };
        let slot = self.vacant;
        let slot = if let Some(insert) = self.slots.get_mut(slot as usize) {
            self.vacant = insert.newer;
            *insert = entry;
            slot
        } else {
            self.slots.push(entry);
            self.slots.len() as u32 - 1
        };
        if let Some(head) = self.buckets.get_mut(bucket) {
            *head = slot;
        }
        self.link(slot, LIVE);
        self.len += 1;
        slot
    }

    /// Removes a datagram or a tombstone from its slot. Returns the body of the datagram, or `None` for a
    /// tombstone.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<Body<T>>> {
        let (hash, next, list) = match self.at(slot) {
            Some(entry) => (entry.hash, entry.next_in_bucket, Self::list_of(entry)),
            None => return None,
        };
        self.unlink(slot, list);
        let bucket = self.bucket_of(hash);
        let mut insert = self.buckets.get(bucket).copied().unwrap_or(NONE);
        if insert == slot {
            if let Some(head) = self.buckets.get_mut(bucket) {
                *head = next;
            }
        } else {
            while let Some(entry) = self.at_mut(insert) {
                if entry.next_in_bucket == slot {
                    entry.next_in_bucket = next;
                    break;
                }
                insert = entry.next_in_bucket;
            }
        }
        let vacant = std::mem::replace(&mut self.vacant, slot);
        self.len -= 1;
        let entry = self.at_mut(slot)?;
        (entry.newer, entry.older, entry.next_in_bucket) = (vacant, NONE, NONE);
        entry.body.take()
    }

    /// Replaces the datagram in a slot with a tombstone and returns the datagram's body. The deadline of the
    /// tombstone must not be before the deadline of any other tombstone.
    pub(super) fn bury(&mut self, slot: u32, deadline: Timestamp) -> Option<Box<Body<T>>> {
        self.unlink(slot, LIVE);
        let body = self.at_mut(slot).and_then(|entry| {
            entry.deadline = deadline;
            entry.body.take()
        });
        self.link(slot, TOMBSTONES);
        body
    }

    const fn list_of(slot: &Slot<T>) -> usize {
        if slot.body.is_some() { LIVE } else { TOMBSTONES }
    }

    fn end_of(&self, list: usize) -> List {
        self.lists.get(list).copied().unwrap_or(List { newest: NONE, oldest: NONE })
    }

    /// Returns the index of the slot of the oldest datagram other than `except`.
    pub(super) fn oldest_live(&self, except: Option<u32>) -> Option<u32> {
        let oldest = self.end_of(LIVE).oldest;
        let found = if Some(oldest) == except { self.at(oldest)?.newer } else { oldest };
        (found != NONE).then_some(found)
    }

    /// Returns the index of the slot of the datagram or tombstone that expires next, and its deadline.
    pub(super) fn next_due(&self) -> Option<(u32, Timestamp)> {
        let due = |list| {
            let oldest = self.end_of(list).oldest;
            self.at(oldest).map(|slot| (oldest, slot.deadline))
        };
        match (due(LIVE), due(TOMBSTONES)) {
            (Some(live), Some(tombstone)) => Some(if tombstone.1 < live.1 { tombstone } else { live }),
            (live, tombstone) => live.or(tombstone),
        }
    }

    fn link(&mut self, slot: u32, list: usize) {
        let newest = self.end_of(list).newest;
        if let Some(entry) = self.at_mut(slot) {
            (entry.newer, entry.older) = (NONE, newest);
        }
        if let Some(entry) = self.at_mut(newest) {
            entry.newer = slot;
        }
        if let Some(ends) = self.lists.get_mut(list) {
            ends.newest = slot;
            if ends.oldest == NONE {
                ends.oldest = slot;
            }
        }
    }

    fn unlink(&mut self, slot: u32, list: usize) {
        let Some((newer, older)) = self.at(slot).map(|entry| (entry.newer, entry.older)) else { return };
        if let Some(entry) = self.at_mut(newer) {
            entry.older = older;
        }
        if let Some(entry) = self.at_mut(older) {
            entry.newer = newer;
        }
        if let Some(ends) = self.lists.get_mut(list) {
            if newer == NONE {
                ends.newest = older;
            }
            if older == NONE {
                ends.oldest = newer;
            }
        }
    }

    /// Panics unless the lists, buckets and slots are consistent. Calls `live` with the body of each live
    /// datagram.
    pub(super) fn check_invariants(&self, mut live: impl FnMut(&Body<T>)) {
        let mut count = 0;
        for list in [LIVE, TOMBSTONES] {
            let (mut at, mut before) = (self.end_of(list).oldest, NONE);
            let mut deadline = Timestamp::ZERO;
            while let Some(slot) = self.at(at) {
                assert_eq!(slot.older, before, "slot {at} points back to its neighbor");
                assert!(slot.deadline >= deadline, "deadlines are in order");
                assert_eq!(Self::list_of(slot), list);
                assert_eq!(self.find(slot.hash, &slot.key), Some(at));
                if let Some(body) = &slot.body {
                    live(body);
                }
                count += 1;
                (deadline, before, at) = (slot.deadline, at, slot.newer);
            }
            assert_eq!(self.end_of(list).newest, before, "the list ends at its newest entry");
        }
        assert_eq!(count, self.len);
    }
}
