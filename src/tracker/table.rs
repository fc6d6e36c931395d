//! Storage and look-up of flows: slabs, index, and cache of recently used flows.

use std::mem;

use ahash::RandomState;

use super::extras::{Extra, Extras};
use super::flow::{Cold, FlowId, Hot};
use super::hot_cache::HotCache;
use super::index::{BYTES_PER_FLOW_MAX, Index};
use super::lists::Lists;
use super::observer::Flow;
use super::recency::{Links, NONE};
use super::slab::{SEGMENT_LEN, Slab};
use super::view::FlowView;
use crate::base::Packet;
use crate::base::{Account, Budget, FlowKey, Limits};

/// Number of packets that are extracted, looked up and tracked together, so that their memory is loaded at the same time.
pub(crate) const GROUP_LEN: usize = 32;

/// Information about a packet's flow before the packet is processed: the slot that probably holds the flow, and the
/// hash of the key if it was computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hint {
    pub(super) slot: Option<u32>,
    pub(super) hash: Option<u64>,
}

/// Some of the entries of a batch, in order.
struct Picked {
    values: [u32; GROUP_LEN],
    count: usize,
}

impl Picked {
    const fn new() -> Self {
        Self { values: [0; GROUP_LEN], count: 0 }
    }

    /// Adds a value if it is picked. Does not branch, because no processor predicts which values of a batch are picked.
    #[inline(always)]
    fn push_if(&mut self, is_picked: bool, value: u32) {
        self.values[self.count % GROUP_LEN] = value;
        self.count += usize::from(is_picked);
    }

    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = &u32> {
        self.values.iter().take(self.count)
    }
}

/// Reason why a flow could not be added to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The limit on the number of open flows is reached.
    Count,
    /// The memory budget is exhausted.
    Budget,
    /// The index is full because of colliding hashes: the flow in this slot must be removed first.
    Index(u32),
}

#[derive(Debug)]
pub(super) struct Table<S> {
    hot: Slab<Hot>,
    cold: Slab<Cold>,
    /// The caller's state of each flow. The state in a vacant slot is the default.
    states: Slab<S>,
    pub(super) extras: Extras,
    index: Index,
    hot_cache: HotCache,
    hasher: RandomState,
    /// The slot that was vacated last; its links contain the next vacant slot.
    vacant: u32,
    live_count: u32,
    max: u32,
    budget: Budget,
    /// Memory in bytes that is charged for a segment of flows.
    segment_cost: u64,
    /// True if the memory of the first segment is already charged.
    is_reserved: bool,
}

impl<S> Table<S> {
    /// Creates an empty flow table. `beside_len` is the number of bytes that other structures allocate for each slot.
    /// On request, the memory of flows and index is in huge pages.
    pub(super) fn new(
        hasher: RandomState,
        limits: Limits,
        budget: Budget,
        beside_len: usize,
        in_huge_pages: bool,
    ) -> Self {
        Self {
            hot: Slab::new(in_huge_pages),
            cold: Slab::new(in_huge_pages),
            states: Slab::new(in_huge_pages),
            extras: Extras::new(&limits, budget.clone(), in_huge_pages),
            index: Index::new(in_huge_pages),
            hot_cache: HotCache::new(),
            hasher,
            vacant: NONE,
            live_count: 0,
            max: limits.flow_count_max,
            budget,
            segment_cost: Self::segment_bytes() + (SEGMENT_LEN * beside_len) as u64,
            is_reserved: false,
        }
    }

    /// Sets the maximum number of flows, which must not be below the current number of flows.
    pub(super) const fn set_max(&mut self, max: u32) {
        self.max = max;
    }

    /// Charges the memory of the first segment, so that there is always a flow that can be evicted. Returns whether the
    /// budget allows it.
    pub(super) fn reserve(&mut self) -> bool {
        self.is_reserved = self.budget.charge(Account::Flows, self.segment_cost);
        self.is_reserved
    }

    /// Charges the memory of one more segment of flows. Returns whether the budget allows it.
    fn may_grow(&self) -> bool {
        (self.hot.len() == 0 && self.is_reserved) || self.budget.charge(Account::Flows, self.segment_cost)
    }

    /// Returns the memory of a segment of flows in bytes, including its share of the index.
    pub(super) const fn segment_bytes() -> u64 {
        let per_flow = size_of::<Hot>() + size_of::<Cold>() + size_of::<S>() + BYTES_PER_FLOW_MAX;
        (SEGMENT_LEN * per_flow) as u64
    }

    /// Returns the memory in bytes that is charged for a segment of flows.
    pub(super) const fn segment_cost(&self) -> u64 {
        self.segment_cost
    }

    pub(super) const fn live_count(&self) -> u32 {
        self.live_count
    }

    #[inline(always)]
    pub(super) fn hash(&self, key: &FlowKey) -> u64 {
        self.hasher.hash_one(key)
    }

    #[inline(always)]
    pub(super) fn find(&self, hash: u64, key: &FlowKey) -> Option<u32> {
        self.index.find(hash, |slot| self.hot.at(slot).key == *key)
    }

    /// Returns the slot that probably holds the flow with a key, if the flow was used recently.
    #[inline(always)]
    pub(super) fn guess(&self, key: &FlowKey) -> Option<u32> {
        self.hot_cache.get(key)
    }

    /// Returns the slot of the flow with a key that is not in the hot cache, and adds the slot to the cache.
    #[inline(always)]
    pub(super) fn find_and_note(&mut self, hash: u64, key: &FlowKey) -> Option<u32> {
        let slot = self.find(hash, key)?;
        self.hot_cache.note(key, slot);
        Some(slot)
    }

    /// Loads the cache lines that packets will need, and stores the probable slot of each packet's flow in `hints`.
    /// `touch` reads the caller's state of a flow.
    ///
    /// Each loop is as short as possible: the shorter a loop, the more of its loads the processor executes in parallel.
    #[inline(always)]
    pub(super) fn warm(
        &mut self,
        packets: &[Packet<'_>],
        hints: &mut [Hint; GROUP_LEN],
        lists: &Lists,
        touch: impl Fn(&S) -> u64,
    ) {
        let (mut missed, mut touched) = (Picked::new(), 0);
        for (index, (hint, packet)) in hints.iter_mut().zip(packets).enumerate() {
            hint.slot = self.hot_cache.get(&packet.key);
            missed.push_if(hint.slot.is_none(), index as u32);
        }
        let mut hashes = [0; GROUP_LEN];
        for (hash, index) in hashes.iter_mut().zip(missed.iter()) {
            *hash = self.hash(&packets[*index as usize].key);
        }
        for hash in hashes.iter().take(missed.count) {
            touched ^= self.index.touch(*hash);
        }
        for (hash, index) in hashes.iter().zip(missed.iter()) {
            hints[*index as usize % GROUP_LEN] =
                Hint { slot: self.index.candidate(*hash), hash: Some(*hash) };
        }
        let mut found = Picked::new();
        for hint in hints.iter().take(packets.len()) {
            found.push_if(hint.slot.is_some(), hint.slot.unwrap_or_default());
        }
        // The receiver's side too: an acknowledgment is compared with what the receiver has sent.
        for slot in found.iter() {
            let Hot { last_ns, sides: [a, b], .. } = self.hot.at(*slot);
            touched ^= last_ns ^ a.packet_count ^ b.packet_count;
        }
        for slot in found.iter() {
            if let Some(Extra { sides: [a, b], .. }) = self.extras.get(self.hot.at(*slot)) {
                touched ^= u64::from(a.stale_count ^ b.stale_count);
            }
        }
        for slot in found.iter() {
            touched ^= touch(self.states.at(*slot));
        }
        // The links of flows that will move in their recency lists, then those of their neighbors.
        let mut moved = Picked::new();
        for slot in found.iter() {
            let hot = self.hot.at(*slot);
            moved.push_if(hot.epoch != lists.epoch(hot.list), *slot);
        }
        for slot in moved.iter() {
            touched ^= u64::from(self.cold.at(*slot).links.newer);
        }
        for slot in moved.iter() {
            let Links { newer, older } = self.cold.at(*slot).links;
            for neighbor in [newer, older] {
                touched ^= self.cold.get(neighbor).map_or(0, |cold| u64::from(cold.links.newer));
            }
        }
        std::hint::black_box(touched);
        for index in missed.iter() {
            let (hint, packet) = (&mut hints[*index as usize % GROUP_LEN], &packets[*index as usize]);
            match hint.slot {
                Some(slot) if self.hot.at(slot).key == packet.key => self.hot_cache.note(&packet.key, slot),
                _ => hint.slot = None,
            }
        }
    }

    /// Adds a flow with a key that is not in the table. Returns its slot.
    pub(super) fn insert(&mut self, hash: u64, key: FlowKey, now_ns: u64, cold: Cold) -> Result<u32, Full>
    where
        S: Default,
    {
        if self.live_count >= self.max {
            return Err(Full::Count);
        }
        let is_new = self.vacant == NONE;
        let slot = if is_new { self.hot.len() as u32 } else { self.vacant };
        let (hasher, hot) = (&self.hasher, &self.hot);
        self.index.insert(hash, slot, |slot| hasher.hash_one(hot.at(slot).key)).map_err(Full::Index)?;
        if is_new && self.hot.is_full() && !self.may_grow() {
            self.index.remove(hash, slot);
            return Err(Full::Budget);
        }
        if is_new {
            self.cold.push(cold);
            self.states.push(S::default());
            self.hot.push(Hot::new(key, now_ns));
        } else {
            *self.hot.at_mut(slot) = Hot::new(key, now_ns);
            let vacated = self.cold.at_mut(slot);
            self.vacant = vacated.links.older;
            *vacated = Cold { generation: vacated.generation.wrapping_add(1), ..cold };
        }
        self.live_count += 1;
        self.hot_cache.note(&key, slot);
        Ok(slot)
    }

    /// Returns the caller's state of a flow that is about to be removed, and leaves the default in its place.
    pub(super) fn take_state(&mut self, slot: u32) -> S
    where
        S: Default,
    {
        mem::take(self.states.at_mut(slot))
    }

    /// Returns whether a slot holds an open flow.
    pub(super) fn is_open(&self, slot: u32) -> bool {
        self.hot.at(slot).key != FlowKey::VACANT
    }

    /// Removes the flow in a slot, which must not be in any recency list.
    pub(super) fn remove(&mut self, slot: u32) {
        let hash = self.hash(&self.hot.at(slot).key);
        let was_indexed = self.index.remove(hash, slot);
        debug_assert!(was_indexed, "every open flow is in the index");
        let hot = self.hot.at_mut(slot);
        self.extras.release(hot);
        hot.key = FlowKey::VACANT;
        self.cold.at_mut(slot).links.older = self.vacant;
        self.vacant = slot;
        self.live_count -= 1;
    }

    #[inline(always)]
    pub(super) fn hot_mut(&mut self, slot: u32) -> &mut Hot {
        self.hot.at_mut(slot)
    }

    #[inline(always)]
    pub(super) fn hot(&self, slot: u32) -> &Hot {
        self.hot.at(slot)
    }

    pub(super) const fn cold(&self) -> &Slab<Cold> {
        &self.cold
    }

    #[inline(always)]
    pub(super) fn cold_mut(&mut self) -> &mut Slab<Cold> {
        &mut self.cold
    }

    /// Returns mutable references to all parts of the flow in a slot.
    #[inline(always)]
    pub(super) fn parts(&mut self, slot: u32) -> (&mut Hot, &mut Cold, &mut Extras) {
        (self.hot.at_mut(slot), self.cold.at_mut(slot), &mut self.extras)
    }

    /// Returns the parts of the flow in a slot that an ordinary packet accesses.
    #[inline(always)]
    pub(super) fn hot_and_extras(&mut self, slot: u32) -> (&mut Hot, &mut Extras) {
        (self.hot.at_mut(slot), &mut self.extras)
    }

    /// Returns the additional state of the flow in a slot; creates it if there is none. Returns `None` if there is no
    /// memory for it.
    pub(super) fn extra_mut(&mut self, slot: u32) -> Option<&mut Extra> {
        self.extras.of(self.hot.at_mut(slot))
    }

    pub(super) fn view(&self, slot: u32) -> FlowView<'_> {
        let (hot, cold) = (self.hot.at(slot), self.cold.at(slot));
        let (bits, clock_ns) = (hot.bits, hot.last_ns);
        FlowView { slot, bits, hot, cold, extra: self.extras.get(hot), clock_ns, application: None }
    }

    pub(super) fn state(&self, slot: u32) -> &S {
        self.states.at(slot)
    }

    /// Returns the open flow in a slot as the argument of a callback.
    ///
    /// This function is inlined, because otherwise its result is written to memory by octets and read by words, which
    /// stalls the processor.
    #[inline(always)]
    pub(super) fn flow(&mut self, slot: u32) -> Flow<'_, S> {
        debug_assert!(self.is_open(slot), "callbacks are for open flows");
        let (hot, cold) = (self.hot.at(slot), self.cold.at(slot));
        let view = FlowView {
            slot,
            bits: hot.bits,
            hot,
            cold,
            extra: self.extras.get(hot),
            clock_ns: hot.last_ns,
            application: None,
        };
        Flow::new(self.states.at_mut(slot), view)
    }

    /// Returns the slot of the flow with an identifier, if the flow is still open.
    pub(super) fn resolve(&self, id: FlowId) -> Option<u32> {
        let hot = self.hot.get(id.slot)?;
        (self.cold.at(id.slot).generation == id.generation && hot.key != FlowKey::VACANT).then_some(id.slot)
    }

    /// Iterates over the slots of open flows, in order.
    /// Returns the number of entries, vacant ones included.
    pub(super) fn entry_count(&self) -> u32 {
        self.hot.len() as u32
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..self.hot.len() as u32).filter(|slot| self.is_open(*slot))
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.index.len(), self.live_count as usize, "the index holds the open flows");
        let mut extra_count = 0;
        for slot in self.slots() {
            let hot = self.hot(slot);
            assert_eq!(
                self.find(self.hash(&hot.key), &hot.key),
                Some(slot),
                "slot {slot} is found by its key"
            );
            extra_count += u32::from(self.extras.get(hot).is_some());
        }
        assert_eq!(extra_count, self.extras.live_count(), "extras belong to open flows");
    }
}

impl<S> Drop for Table<S> {
    fn drop(&mut self) {
        let segment_count = self.hot.len().div_ceil(SEGMENT_LEN).max(usize::from(self.is_reserved)) as u64;
        self.budget.release(Account::Flows, segment_count * self.segment_cost);
    }
}
