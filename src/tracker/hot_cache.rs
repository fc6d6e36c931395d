//! The flows of the last packets, in front of the index.
//!
//! Packets come in bursts. A small direct-mapped table from the keyed hash to the slot, which stays in the first-level
//! cache, answers for them without a probe of the index.

const ENTRIES: usize = 512;

/// Recently used slots by hash; an entry is a guess that the caller checks against the flow's key.
#[derive(Debug)]
pub(super) struct HotCache {
    entries: Box<[(u32, u32); ENTRIES]>,
}

impl HotCache {
    pub(super) fn new() -> Self {
        Self { entries: Box::new([(0, u32::MAX); ENTRIES]) }
    }

    #[inline(always)]
    fn place(hash: u64) -> usize {
        (hash >> 16) as usize % ENTRIES
    }

    /// The slot that was noted for this hash, if no other hash took its place since.
    #[inline(always)]
    pub(super) fn get(&self, hash: u64) -> Option<u32> {
        let (tag, slot) = self.entries[Self::place(hash)];
        (tag == hash as u32 && slot != u32::MAX).then_some(slot)
    }

    #[inline(always)]
    pub(super) fn note(&mut self, hash: u64, slot: u32) {
        self.entries[Self::place(hash)] = (hash as u32, slot);
    }
}
