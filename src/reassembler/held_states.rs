//! State of streams that have held octets or pending acknowledgments: the held pieces, the acknowledgments, and the
//! lists that determine when a hole ends.

use super::pieces::Pieces;
use super::recent::Recent;
use super::store::Store;
use super::stream::Handle;
use crate::base::{Allowance, Timestamp};

const NONE: u32 = u32::MAX;

/// The list that contains the held state of a stream (a hold), according to what the stream waits for. Each list is in
/// order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// List of streams that wait for the end of the grace period after an acknowledgment.
    Grace,
    /// List of streams that wait for a direction which may be captured late: for their own octets after the last
    /// captured ones, which were acknowledged, or for the octets of the opposite direction before their next ones.
    Late,
    /// List of streams with a hole that ends at a deadline, because no acknowledgments were seen.
    Deadline,
    /// List of streams that wait, without a time limit, for octets, an acknowledgment or the end of the stream.
    Open,
    /// List of streams that do not wait: delivered octets are kept only for comparison with repeated octets.
    Kept,
    /// List of streams that were returned to the caller as due, and that the caller has not processed yet.
    Returned,
    /// Not a list: the held state (hold) of the stream is in no list, for example because its slot is vacant.
    Vacant,
}

const LISTS: usize = 6;

/// End of the acknowledged octets beyond a hole, and the time of the acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// Stream offset after the last acknowledged octet.
    pub(super) end: u64,
    pub(super) since_ns: u64,
}

#[derive(Debug)]
pub(super) struct HeldState<T> {
    pub(super) name: T,
    pub(super) pieces: Pieces,
    pub(super) recent: Recent,
    /// The acknowledgment beyond a hole whose grace period runs; it decides when the hole is reported.
    pub(super) acked: Acked,
    /// The latest acknowledgment beyond a hole, whose grace period runs next.
    pub(super) acked_latest: Acked,
    /// Capture time of the FIN, if there is a hole before the FIN.
    pub(super) fin_at: Timestamp,
    /// Time in nanoseconds from which the stream waits in its list; the deadline of a hole is counted from this time.
    pub(super) armed_ns: u64,
    generation: u32,
    wait: Wait,
    newer: u32,
    older: u32,
}

impl<T> HeldState<T> {
    /// Returns the time in nanoseconds from which the grace period of an acknowledged hole counts: when the hole was
    /// acknowledged, and octets or the FIN after it were captured.
    pub(super) fn graced_ns(&self) -> u64 {
        let first = self.pieces.first_segment().map_or(self.fin_at, |(timestamp, _)| timestamp);
        self.acked.since_ns.max(first.as_nanos())
    }

    /// Returns the time in nanoseconds from which a stream in the list [`Wait::Late`] waits.
    pub(super) fn late_ns(&self) -> u64 {
        self.pieces.first_segment().map_or(self.acked.since_ns, |(timestamp, _)| timestamp.as_nanos())
    }

    /// Discards acknowledgments of octets up to the stream offset `offset`. An acknowledgment beyond `fin`, the offset
    /// of the FIN, is reduced to it. Returns whether `acked` was discarded and replaced by a later acknowledgment.
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

    /// Subtracts `by` octets from the stream offsets of all held data, after the beginning of a stream without
    /// delivered octets moved by that number.
    pub(super) fn shift(&mut self, store: &mut Store, by: i64) {
        self.pieces.shift(store, by);
        for acked in [&mut self.acked, &mut self.acked_latest].into_iter().filter(|acked| acked.end > 0) {
            acked.end = acked.end.saturating_add_signed(-by);
        }
    }
}

/// Size of a stream's [`HeldState`] in bytes, without the memory of its held pieces.
pub(super) const fn hold_cost<T>() -> u64 {
    size_of::<HeldState<T>>() as u64
}

#[derive(Clone, Copy, Debug)]
struct List {
    newest: u32,
    oldest: u32,
}

/// The held states (holds) of all streams that have held octets or pending acknowledgments, by slot.
#[derive(Debug)]
pub(super) struct HeldStates<T> {
    holds: Vec<HeldState<T>>,
    vacant: Vec<u32>,
    lists: [List; LISTS],
    live_count: usize,
    /// Generation for the next slot that is freed, incremented each time, so that a stale handle does not match a later
    /// hold in the same slot.
    generation: u32,
}

impl<T: Copy> HeldStates<T> {
    /// Memory of one slot in bytes: the [`HeldState`] of a stream without its held pieces, and an entry in the list of
    /// vacant slots.
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

    /// Creates the held state (hold) of the stream `name`. The hold is in no list yet. Returns `None` if there is no
    /// memory for it.
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

    /// Returns the hold (held state of a stream) that `handle` refers to, or `None` if it was removed.
    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<&HeldState<T>> {
        self.holds.get(handle.slot as usize).filter(|hold| hold.generation == handle.generation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut HeldState<T>> {
        self.holds.get_mut(handle.slot as usize).filter(|hold| hold.generation == handle.generation)
    }

    /// Removes the hold (held state of a stream) that `handle` refers to, and releases its memory. The handle is stale
    /// afterwards.
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

    /// Releases the memory of all slots if no stream has held state.
    pub(super) fn give_back(&mut self, memory: &mut Allowance) {
        if self.live_count == 0 {
            // Vacant slots keep capacity for a few pieces.
            let pieces_bytes: u64 = self.holds.iter().map(|hold| hold.pieces.memory_bytes()).sum();
            memory.give(self.holds.capacity() as u64 * Self::SLOT_COST + pieces_bytes);
            (self.holds, self.vacant) = (Vec::new(), Vec::new());
        }
    }

    /// Returns the hold (held state of a stream) that was inserted first in the list `wait`, and its handle.
    pub(super) fn oldest(&self, wait: Wait) -> Option<(Handle, &HeldState<T>)> {
        let slot = self.lists.get(wait as usize)?.oldest;
        let hold = self.holds.get(slot as usize)?;
        Some((Handle { slot, generation: hold.generation }, hold))
    }

    pub(super) fn wait(&self, handle: Handle) -> Wait {
        self.get(handle).map_or(Wait::Vacant, |hold| hold.wait)
    }

    /// Moves a hold (held state of a stream) from its current list to the end of the list `wait`. Sets the time from
    /// which the stream waits there, and from which a deadline is counted, to `now_ns`.
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

    /// Panics unless the lists and counts agree. Returns sums over the held state of all streams: octets in blocks,
    /// number of blocks, and bytes of memory.
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
            let (octets, blocks) = hold.pieces.check_invariants();
            sums = (
                sums.0 + octets,
                sums.1 + blocks,
                sums.2 + hold.pieces.memory_bytes() + hold.recent.memory_bytes(),
            );
        }
        sums
    }
}
