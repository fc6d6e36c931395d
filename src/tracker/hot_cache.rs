//! A cache of the flows of the most recent packets, which is searched before the index.
//!
//! Packets arrive in bursts. A direct-mapped table of 128 KiB from keys to slots, which stays in the second-level
//! cache, finds their flows without the keyed hash and without a probe of the index. Its own hash is cheap and has no
//! secret key: an attacker who crafts colliding keys only causes look-ups in the index.

use crate::base::FlowKey;

const ENTRIES: usize = 16384;

const VACANT: u32 = u32::MAX;

/// Cache from flow keys to recently used slots. An entry is a guess that the caller verifies against the flow's key.
#[derive(Debug)]
pub(super) struct HotCache {
    entries: Box<[(u32, u32); ENTRIES]>,
}

impl HotCache {
    pub(super) fn new() -> Self {
        Self { entries: Box::new([(0, VACANT); ENTRIES]) }
    }

    /// Returns the position of a flow key in the cache, and the tag that distinguishes the keys at that position.
    #[inline(always)]
    fn index(key: &FlowKey) -> (usize, u32) {
        let mixed = key.mixed();
        ((mixed >> 50) as usize % ENTRIES, (mixed >> 20) as u32)
    }

    /// Returns the slot that was stored for a flow key, unless another key has replaced it since.
    #[inline(always)]
    pub(super) fn get(&self, key: &FlowKey) -> Option<u32> {
        let (index, own_tag) = Self::index(key);
        let (tag, slot) = self.entries[index];
        (tag == own_tag && slot != VACANT).then_some(slot)
    }

    #[inline(always)]
    pub(super) fn note(&mut self, key: &FlowKey, slot: u32) {
        let (index, tag) = Self::index(key);
        self.entries[index] = (tag, slot);
    }
}
