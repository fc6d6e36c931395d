//! State of streams that have held octets or pending acknowledgments, by slot: pieces, acknowledgments, and when a hole
//! ends.

use super::pieces::Pieces;
use super::recent::Recent;
use super::store::Store;
use super::stream::Handle;
use crate::base::{Allowance, Timestamp};

const NONE: u32 = u32::MAX;

/// The list in which a hold is. Each list is in the order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Waits for the grace period after an acknowledgment to expire.
    Grace,
    /// Waits for a deadline.
    Deadline,
    /// Waits for octets, an acknowledgment or the end.
    Open,
    /// Does not wait: contains octets for comparison only.
    Kept,
    /// Was returned to the caller as due.
    Returned,
    /// In no list: vacant.
    Vacant,
}

const LISTS: usize = 5;

/// End of the acknowledged octets beyond a hole, and the time of the acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// Stream offset.
    pub(super) end: u64,
    pub(super) since_ns: u64,
}

#[derive(Debug)]
pub(super) struct HeldState<T> {
    pub(super) name: T,
    pub(super) pieces: Pieces,
    pub(super) recent: Recent,
    /// The acknowledgment whose grace period expires next, and the highest one.
    pub(super) acked: Acked,
    pub(super) acked_latest: Acked,
    /// Capture time of the FIN, if there is a hole in front of it.
    pub(super) fin_at: Timestamp,
    /// Time at which the hold was inserted into its list.
    pub(super) armed_ns: u64,
    generation: u32,
    wait: Wait,
    newer: u32,
    older: u32,
}

impl<T> HeldState<T> {
    /// Discards acknowledgments that the stream has reached, and the octet that a FIN occupies in them. Returns whether
    /// the grace period of another one is pending.
    pub(super) fn pass_acked(&mut self, offset: u64, fin: Option<u64>) -> bool {
        let is_reached = self.acked.end > 0 && self.acked.end <= offset;
        for acked in [&mut self.acked, &mut self.acked_latest] {
            acked.end = acked.end.min(fin.unwrap_or(u64::MAX));
        }
        if self.acked.end <= offset {
            self.acked = self.acked_latest;
        }
        if self.acked.end <= offset {
            (self.acked, self.acked_latest) = Default::default();
        }
        is_reached && self.acked.end > 0
    }

    /// Adjusts offsets after the beginning of a stream, of which nothing was delivered, moved by a number of octets.
    pub(super) fn shift(&mut self, store: &mut Store, by: i64) {
        self.pieces.shift(store, by);
        for acked in [&mut self.acked, &mut self.acked_latest].into_iter().filter(|acked| acked.end > 0) {
            acked.end = acked.end.saturating_add_signed(-by);
        }
    }
}

/// Memory of a hold in bytes, without its pieces.
pub(super) const fn hold_cost<T>() -> u64 {
    size_of::<HeldState<T>>() as u64
}

#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
}

/// All holds.
#[derive(Debug)]
pub(super) struct HeldStates<T> {
    holds: Vec<HeldState<T>>,
    vacant: Vec<u32>,
    lists: [List; LISTS],
    live_count: usize,
    /// Incremented with each hold that is freed, so that a stale handle does not match a later hold in its slot.
    generation: u32,
}

impl<T: Copy> HeldStates<T> {
    /// Memory of a hold without its pieces, and of its entry in the list of vacant slots.
    const SLOT_COST: u64 = hold_cost::<T>() + size_of::<u32>() as u64;

    pub(super) const fn new() -> Self {
        Self {
            holds: Vec::new(),
            vacant: Vec::new(),
            lists: [List { newest: NONE, oldest: NONE }; LISTS],
            live_count: 0,
            generation: 0,
        }
    }

    pub(super) const fn live_count(&self) -> usize {
        self.live_count
    }

    /// Inserts a new hold that is in no list yet. Returns `None` if there is no memory for it.
    pub(super) fn insert(&mut self, memory: &mut Allowance, name: T) -> Option<Handle> {
        let slot = match self.vacant.pop() {
            Some(slot) => slot,
            None => {
                if self.holds.len() == self.holds.capacity() {
                    let grown = self.holds.capacity().clamp(16, 4096);
                    if memory.take(grown as u64 * Self::SLOT_COST).is_err() {
                        return None;
                    }
                    self.holds.reserve_exact(grown);
                    self.vacant.reserve_exact(self.holds.capacity());
                }
                self.holds.push(HeldState {
                    name,
                    pieces: Pieces::new(),
                    recent: Recent::default(),
                    acked: Acked::default(),
                    acked_latest: Acked::default(),
                    fin_at: Timestamp::ZERO,
                    armed_ns: 0,
                    generation: self.generation,
                    wait: Wait::Vacant,
                    newer: NONE,
                    older: NONE,
                });
                (self.holds.len() - 1) as u32
            }
        };
        let hold = self.holds.get_mut(slot as usize)?;
        hold.name = name;
        (hold.acked, hold.acked_latest, hold.fin_at) = Default::default();
        self.live_count += 1;
        Some(Handle { slot, generation: hold.generation })
    }

    /// Returns the hold of a handle; `None` if it was removed.
    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<&HeldState<T>> {
        self.holds.get(handle.slot as usize).filter(|hold| hold.generation == handle.generation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut HeldState<T>> {
        self.holds.get_mut(handle.slot as usize).filter(|hold| hold.generation == handle.generation)
    }

    /// Frees a hold; its handle is stale from now on.
    pub(super) fn remove(&mut self, store: &mut Store, memory: &mut Allowance, handle: Handle) {
        // The slot of a stale handle belongs to another stream.
        if self.get(handle).is_none() {
            return;
        }
        self.unlink(handle.slot);
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let Some(hold) = self.get_mut(handle) else { return };
        hold.generation = generation;
        hold.pieces.clear(store, memory);
        hold.recent.clear(memory);
        store.trim(memory);
        self.vacant.push(handle.slot);
        self.live_count -= 1;
    }

    /// Releases the slots if none is in use.
    pub(super) fn give_back(&mut self, memory: &mut Allowance) {
        if self.live_count == 0 {
            // Vacant slots keep capacity for a few pieces.
            let pieces_bytes: u64 = self.holds.iter().map(|hold| hold.pieces.memory_bytes()).sum();
            memory.give(self.holds.capacity() as u64 * Self::SLOT_COST + pieces_bytes);
            (self.holds, self.vacant) = (Vec::new(), Vec::new());
        }
    }

    /// Returns the oldest hold of a list.
    pub(super) fn oldest(&self, wait: Wait) -> Option<(Handle, &HeldState<T>)> {
        let slot = self.lists.get(wait as usize)?.oldest;
        let hold = self.holds.get(slot as usize)?;
        Some((Handle { slot, generation: hold.generation }, hold))
    }

    pub(super) fn wait(&self, handle: Handle) -> Wait {
        self.get(handle).map_or(Wait::Vacant, |hold| hold.wait)
    }

    /// Appends a hold to a list.
    pub(super) fn arm(&mut self, handle: Handle, wait: Wait, now_ns: u64) {
        self.unlink(handle.slot);
        let Some(list) = self.lists.get_mut(wait as usize) else { return };
        let newest = std::mem::replace(&mut list.newest, handle.slot);
        if newest == NONE {
            list.oldest = handle.slot;
        }
        if let Some(before) = self.holds.get_mut(newest as usize) {
            before.newer = handle.slot;
        }
        if let Some(hold) = self.holds.get_mut(handle.slot as usize) {
            (hold.wait, hold.newer, hold.older, hold.armed_ns) = (wait, NONE, newest, now_ns);
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Some(hold) = self.holds.get_mut(slot as usize) else { return };
        let (wait, newer, older) = (hold.wait, hold.newer, hold.older);
        (hold.wait, hold.newer, hold.older) = (Wait::Vacant, NONE, NONE);
        let Some(list) = self.lists.get_mut(wait as usize) else { return };
        if list.newest == slot {
            list.newest = older;
        }
        if list.oldest == slot {
            list.oldest = newer;
        }
        if let Some(hold) = self.holds.get_mut(newer as usize) {
            hold.older = older;
        }
        if let Some(hold) = self.holds.get_mut(older as usize) {
            hold.newer = newer;
        }
    }

    /// Panics unless lists and counts agree. Returns octets in blocks, blocks, and bytes of memory of all holds.
    pub(super) fn check_invariants(&self) -> (u64, u64, u64) {
        let mut listed_count = 0;
        for (number, list) in self.lists.iter().enumerate() {
            let (mut slot, mut older) = (list.oldest, NONE);
            while let Some(hold) = self.holds.get(slot as usize) {
                assert_eq!((hold.wait as usize, hold.older), (number, older), "lists are linked both ways");
                (older, slot) = (slot, hold.newer);
                listed_count += 1;
            }
            assert_eq!(list.newest, older, "the end of a list is its newest");
        }
        assert_eq!(listed_count, self.live_count, "every hold is in one list");
        assert_eq!(self.vacant.len() + self.live_count, self.holds.len());
        let capacity = self.holds.capacity() as u64;
        let mut sums = (0, 0, capacity * (hold_cost::<T>() + size_of::<u32>() as u64));
        for hold in &self.holds {
            let (octets, blocks) = hold.pieces.check_invariants(0);
            sums = (
                sums.0 + octets,
                sums.1 + blocks,
                sums.2 + hold.pieces.memory_bytes() + hold.recent.memory_bytes(),
            );
        }
        sums
    }
}
