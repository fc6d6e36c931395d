//! Batches in flight between the reader and the shards (blocks), and their memory.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::super::jumps::Jumps;
use super::dispatcher::Dispatch;
use crate::base::{Account, Allowance, Budget, FrameBatch, Timestamp};

/// Maximum number of batches in flight: enough for threads to run for a while before they wait, and few enough to fit
/// in a last-level cache.
pub(in crate::pipeline) const BATCH_COUNT_MAX: u64 = 16;

/// Statistics of the queues between threads, with their memory as charged to [`Account::Queues`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct QueueStats {
    /// Maximum number of batches in flight at once.
    pub batch_count_max: u64,
    /// Maximum memory of batches in flight at once in bytes, as far as it could be charged to the budget.
    pub held_bytes_max: u64,
    /// Number of times that the budget rejected memory for a batch or for records in flight. Fewer batches or records
    /// are then in flight, and threads wait.
    pub refused_count: u64,
}

impl QueueStats {
    /// Adds the counters of another run; maxima are combined to the larger one.
    pub(in crate::pipeline) fn add(&mut self, other: &Self) {
        self.batch_count_max = self.batch_count_max.max(other.batch_count_max);
        self.held_bytes_max = self.held_bytes_max.max(other.held_bytes_max);
        self.refused_count += other.refused_count;
    }
}

/// A batch of frames, and its distribution over the shards.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Block {
    pub(in crate::pipeline) batch: FrameBatch,
    pub(in crate::pipeline) dispatch: Dispatch,
    /// Time of an idle source, at which the shards end everything that is due after they processed the batch.
    pub(in crate::pipeline) idle: Option<Timestamp>,
    /// State of the time check after the batch.
    pub(super) jumps: Jumps,
    charged_bytes: u64,
}

impl Block {
    fn held_bytes(&self) -> u64 {
        self.batch.held_bytes() + self.dispatch.held_bytes()
    }

    const fn is_charged(&self, held_bytes: u64) -> bool {
        held_bytes <= self.charged_bytes
    }
}

/// A block that shards process. When the last shard drops it, the block returns to the reader.
#[derive(Debug)]
pub(in crate::pipeline) struct Lent {
    block: Block,
    free: Sender<Block>,
}

impl Lent {
    pub(in crate::pipeline) const fn block(&self) -> &Block {
        &self.block
    }

    /// Returns the state of the time check after the block.
    pub(in crate::pipeline) const fn jumps(&self) -> &Jumps {
        &self.block.jumps
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.free.send(std::mem::take(&mut self.block));
    }
}

/// All blocks of a run. There is always at least one, even if the budget rejects its memory, because a run cannot
/// proceed without it.
#[derive(Debug)]
pub(in crate::pipeline) struct Blocks {
    free: Sender<Block>,
    freed: Receiver<Block>,
    memory: Allowance,
    /// Number of blocks that exist.
    count: u64,
    /// Maximum number of blocks.
    count_max: u64,
    /// Largest memory of a block in bytes so far, which is charged for a new block.
    largest_bytes: u64,
    pub(super) stats: QueueStats,
}

impl Blocks {
    pub(in crate::pipeline) fn new(budget: Budget, count_max: u64) -> Self {
        let (free, freed) = channel();
        let memory = Allowance::new(budget, Account::Queues, u64::MAX);
        Self { free, freed, memory, count: 0, count_max, largest_bytes: 0, stats: QueueStats::default() }
    }

    /// Returns the memory that all layers have charged to the budget in bytes.
    pub(super) fn budget_held(&self) -> u64 {
        self.memory.budget().held()
    }

    /// Returns a block for the reader to fill: one that the shards have returned, or a new one if the budget permits.
    /// Otherwise waits until a block is returned.
    pub(super) fn next(&mut self) -> Block {
        loop {
            let freed = self.freed.try_recv().ok();
            let Some(block) = freed.or_else(|| self.make()).or_else(|| self.freed.recv().ok()) else {
                // Unreachable, because this end of the channel is open; an empty block is correct in any case.
                return Block::default();
            };
            if block.is_charged(block.held_bytes()) || self.count <= 1 {
                return block;
            }
            // The budget rejected its memory, and other blocks exist.
            self.count -= 1;
            self.memory.give(block.charged_bytes);
        }
    }

    /// Creates a block if there are fewer than the maximum, and the budget has memory for the size of the
    /// largest block so far.
    fn make(&mut self) -> Option<Block> {
        let is_first = self.count == 0;
        if !is_first && (self.count >= self.count_max || !self.take(self.largest_bytes)) {
            return None;
        }
        self.count += 1;
        self.stats.batch_count_max = self.stats.batch_count_max.max(self.count);
        Some(Block { charged_bytes: if is_first { 0 } else { self.largest_bytes }, ..Block::default() })
    }

    fn take(&mut self, bytes: u64) -> bool {
        let is_taken = self.memory.take(bytes).is_ok();
        self.stats.refused_count += u64::from(!is_taken);
        self.stats.held_bytes_max = self.memory.peak_bytes();
        is_taken
    }

    /// Charges the current memory of a block to the budget, and prepares the block for the shards.
    pub(super) fn lend(&mut self, mut block: Block) -> Arc<Lent> {
        let held_bytes = block.held_bytes();
        self.largest_bytes = self.largest_bytes.max(held_bytes);
        if !block.is_charged(held_bytes) && self.take(held_bytes - block.charged_bytes) {
            block.charged_bytes = held_bytes;
        }
        Arc::new(Lent { block, free: self.free.clone() })
    }
}
