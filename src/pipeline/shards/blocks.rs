//! Batches under way between the reader and the shards, and what they hold.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::Deal;
use crate::base::{Account, Allowance, Budget, FrameBatch};

/// Batches that are under way at once: enough for threads to run a while before they wait, and together less than a
/// last-level cache.
const BATCH_COUNT_MAX: u64 = 16;

/// What queues between threads held, as charged to [`Account::Queues`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct QueueStats {
    /// The most batches that were under way at once.
    pub batch_count_max: u64,
    /// The most bytes that batches held at once, as far as there was room in the budget.
    pub held_bytes_max: u64,
    /// How often the budget had no room for a batch or for records on their way: then fewer are under way, and threads wait.
    pub refused_count: u64,
}

impl QueueStats {
    /// Counts another run.
    pub(super) fn add(&mut self, other: &Self) {
        self.batch_count_max = self.batch_count_max.max(other.batch_count_max);
        self.held_bytes_max = self.held_bytes_max.max(other.held_bytes_max);
        self.refused_count += other.refused_count;
    }
}

/// A batch, and who is to look at what in it.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) batch: FrameBatch,
    pub(super) deal: Deal,
    charged_bytes: u64,
}

impl Block {
    fn held_bytes(&self) -> u64 {
        self.batch.held_bytes() + self.deal.held_bytes()
    }

    const fn is_charged(&self, held_bytes: u64) -> bool {
        held_bytes <= self.charged_bytes
    }
}

/// A block that shards look at; the last one gives it back by letting go of it.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) block: Block,
    free: Sender<Block>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.free.send(std::mem::take(&mut self.block));
    }
}

/// The blocks of a run. There is always one, for which there need not be room: without it nothing goes on.
#[derive(Debug)]
pub(super) struct Blocks {
    free: Sender<Block>,
    freed: Receiver<Block>,
    memory: Allowance,
    /// Blocks that were made and not dropped.
    count: u64,
    /// The most that one held: what a further one may come to.
    largest_bytes: u64,
    pub(super) stats: QueueStats,
}

impl Blocks {
    pub(super) fn new(budget: Budget) -> Self {
        let (free, freed) = channel();
        let memory = Allowance::new(budget, Account::Queues, u64::MAX);
        Self { free, freed, memory, count: 0, largest_bytes: 0, stats: QueueStats::default() }
    }

    /// A block to fill: one that came back, or a further one if there is room; waits for one otherwise.
    pub(super) fn next(&mut self) -> Block {
        loop {
            let freed = self.freed.try_recv().ok();
            let Some(block) = freed.or_else(|| self.make()).or_else(|| self.freed.recv().ok()) else {
                // Not reached, as this end of the channel is open; an empty block is right in any case.
                return Block::default();
            };
            if block.is_charged(block.held_bytes()) || self.count <= 1 {
                return block;
            }
            // There was no room for it, and others are there.
            self.count -= 1;
            self.memory.give(block.charged_bytes);
        }
    }

    /// A further block, if there is room for as much as the largest one holds.
    fn make(&mut self) -> Option<Block> {
        let is_first = self.count == 0;
        if !is_first && (self.count >= BATCH_COUNT_MAX || !self.take(self.largest_bytes)) {
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

    /// Charges what a block has come to hold, and makes it ready for shards.
    pub(super) fn lend(&mut self, mut block: Block) -> Arc<Lent> {
        let held_bytes = block.held_bytes();
        self.largest_bytes = self.largest_bytes.max(held_bytes);
        if !block.is_charged(held_bytes) && self.take(held_bytes - block.charged_bytes) {
            block.charged_bytes = held_bytes;
        }
        Arc::new(Lent { block, free: self.free.clone() })
    }
}
