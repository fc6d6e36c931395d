//! Memory for held octets: blocks of equal size. Several segments of one stream share a block.

use crate::base::Allowance;

/// Length of a block in octets, enough for a segment of common size or for many small ones.
pub(super) const BLOCK_LEN: usize = 2048;

/// Memory of a block in bytes, including its entries in the block table and the lists of blocks.
pub(super) const BLOCK_COST: u64 = BLOCK_LEN as u64 + 48;

/// Identifier that stands for no block.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// Maximum number of spare blocks (128 KiB) that are kept for octets held later, instead of being released.
const SPARE_MAX: usize = 64;

#[derive(Debug)]
struct Block {
    /// Octets that were written since the block was last empty, in memory for [`BLOCK_LEN`] octets; no memory if the block was
    /// released.
    bytes: Vec<u8>,
    /// Number of octets in the block that held pieces refer to.
    live_len: u32,
}

/// All blocks for held octets.
#[derive(Debug, Default)]
pub(super) struct Store {
    blocks: Vec<Block>,
    spare: Vec<u32>,
    vacant: Vec<u32>,
    /// Number of held pieces that were visited or moved, for tests; counted in debug builds only.
    pub(super) step_count: u64,
}

impl Store {
    /// Ensures that `count` spare blocks are available. Returns false if memory is refused.
    pub(super) fn reserve(&mut self, memory: &mut Allowance, count: usize) -> bool {
        while self.spare.len() < count {
            if memory.take(BLOCK_COST).is_err() {
                return false;
            }
            let block = Block { bytes: Vec::with_capacity(BLOCK_LEN), live_len: 0 };
            let id = match self.vacant.pop() {
                Some(id) => id,
                None => self.blocks.len() as u32,
            };
            match self.blocks.get_mut(id as usize) {
                Some(place) => *place = block,
                None => self.blocks.push(block),
            }
            self.spare.push(id);
        }
        true
    }

    #[inline(always)]
    pub(super) const fn count_steps(&mut self, count: usize) {
        if cfg!(debug_assertions) {
            self.step_count += count as u64;
        }
    }

    /// Removes a spare block, which was reserved before, from the spare ones, and returns its identifier.
    pub(super) fn obtain(&mut self) -> u32 {
        debug_assert!(!self.spare.is_empty(), "blocks are reserved first");
        self.spare.pop().unwrap_or(NO_BLOCK)
    }

    /// Adds an unused block to the spare blocks.
    pub(super) fn put_back(&mut self, id: u32) {
        debug_assert_eq!(
            self.blocks.get(id as usize).map(|block| block.live_len),
            Some(0),
            "nothing refers to it"
        );
        self.spare.push(id);
    }

    /// Releases spare blocks beyond [`SPARE_MAX`].
    pub(super) fn trim(&mut self, memory: &mut Allowance) {
        while self.spare.len() > SPARE_MAX {
            let Some(id) = self.spare.pop() else { return };
            if let Some(block) = self.blocks.get_mut(id as usize) {
                block.bytes = Vec::new();
            }
            self.vacant.push(id);
            memory.give(BLOCK_COST);
        }
    }

    /// Returns `len` bytes of the block `id` from the index `at`.
    pub(super) fn bytes(&self, id: u32, at: u32, len: u32) -> &[u8] {
        let block = self.blocks.get(id as usize);
        block.and_then(|block| block.bytes.get(at as usize..(at + len) as usize)).unwrap_or_default()
    }

    /// Writes bytes to a block from the index `at`, at and after which no held piece refers to it yet, and counts them as in
    /// use.
    pub(super) fn write_new(&mut self, id: u32, at: u32, bytes: &[u8]) {
        if let Some(block) = self.blocks.get_mut(id as usize) {
            debug_assert!(at as usize <= block.bytes.len(), "a block is filled from its start");
            block.bytes.truncate(at as usize);
            block.bytes.extend_from_slice(bytes);
            debug_assert!(block.bytes.len() <= BLOCK_LEN, "pieces lie in their blocks");
            block.live_len += bytes.len() as u32;
        }
    }

    /// Overwrites bytes of the block `id` from the index `at`.
    pub(super) fn write(&mut self, id: u32, at: u32, bytes: &[u8]) {
        let block = self.blocks.get_mut(id as usize);
        let target = block.and_then(|block| block.bytes.get_mut(at as usize..at as usize + bytes.len()));
        debug_assert!(target.is_some(), "pieces lie in their blocks");
        if let Some(target) = target {
            target.copy_from_slice(bytes);
        }
    }

    /// Subtracts `len` octets that held pieces no longer refer to from the octets in use of a block. Returns whether
    /// the block is unused now.
    pub(super) fn forget(&mut self, id: u32, len: u32) -> bool {
        let Some(block) = self.blocks.get_mut(id as usize) else { return false };
        debug_assert!(len <= block.live_len, "what is forgotten was live");
        block.live_len = block.live_len.saturating_sub(len);
        block.live_len == 0
    }

    /// Returns the charged memory of the spare blocks in bytes.
    pub(super) fn spare_bytes(&self) -> u64 {
        self.spare.len() as u64 * BLOCK_COST
    }

    /// Panics unless the counts agree with the given ones: `live_len` octets that held pieces refer to, and
    /// `block_count` blocks in use.
    pub(super) fn check_invariants(&self, live_len: u64, block_count: u64) {
        let present = self.blocks.iter().filter(|block| block.bytes.capacity() > 0).count();
        assert_eq!(present as u64, block_count + self.spare.len() as u64, "blocks are held or spare");
        assert_eq!(present + self.vacant.len(), self.blocks.len(), "all others are vacant");
        let live: u64 = self.blocks.iter().map(|block| u64::from(block.live_len)).sum();
        assert_eq!(live, live_len, "octets of blocks are octets of pieces");
    }
}
