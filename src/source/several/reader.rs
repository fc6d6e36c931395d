//! One of several files, and the frames that were read from it.

use crate::base::{FrameBatch, Timestamp};
use crate::source::capture::Capture;
use crate::source::error::Error;
use crate::source::memory::{Charge, Memory};

/// Sort key of frames: time, then the index of the file in the order specified.
pub(super) type Key = (Timestamp, usize);

/// Maximum memory of a batch that is kept for the next one, in bytes per octet of a block: the frames of the
/// shortest records are described in twice their octets, in a vector that grows by doubling.
const HELD_PER_BLOCK_MAX: u64 = 8;

/// File that the merge has started.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) source: Capture,
    pub(super) order: usize,
    pub(super) batch: FrameBatch,
    /// Memory of the batch.
    charge: Charge,
    /// Index of the next frame in the batch.
    pub(super) at: usize,
    /// Latest time up to that frame; `None` if the batch is exhausted.
    pub(super) head: Option<Timestamp>,
    /// Latest time up to the end of the batch.
    pub(super) tail: Timestamp,
    pub(super) refilled: u64,
}

impl Reader {
    pub(super) fn new(source: Capture, order: usize, memory: &Memory) -> Self {
        Self {
            source,
            order,
            batch: FrameBatch::new(),
            charge: memory.charge(),
            at: 0,
            head: None,
            tail: Timestamp::ZERO,
            refilled: 0,
        }
    }

    /// Charges the current memory of the batch.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let charged = self.charge.set(self.batch.held_bytes());
        charged.map_err(|refused| Error::memory(self.source.path(), refused))
    }

    /// Prepares to read a block of a length, whose memory is charged.
    pub(super) fn prepare(&mut self, block_len: u32) -> Result<(), Error> {
        // Memory that was allocated for a longer block, or for a record that exceeds a block, is not kept.
        if self.batch.held_bytes() > HELD_PER_BLOCK_MAX * u64::from(block_len) {
            self.drop_batch();
        }
        self.source.set_block_len(block_len);
        let charged = self.charge.set(self.batch.held_bytes().max(block_len.into()));
        charged.map_err(|refused| Error::memory(self.source.path(), refused))
    }

    /// Releases the memory of an exhausted batch.
    pub(super) fn drop_batch(&mut self) {
        self.batch = FrameBatch::new();
        let released = self.charge.set(0);
        debug_assert!(released.is_ok(), "to hold less is never refused");
    }

    /// Returns the key of the next frame; an exhausted batch comes first.
    pub(super) fn key(&self) -> Key {
        (self.head.unwrap_or(Timestamp::ZERO), self.order)
    }

    /// Starts with the first frame of the batch.
    pub(super) fn begin_batch(&mut self) {
        self.at = 0;
        self.head = self.batch.get(0).map(|frame| frame.timestamp.max(self.tail));
        self.tail = self.batch.iter().map(|frame| frame.timestamp).fold(self.tail, Timestamp::max);
    }

    /// Copies frames that precede `end`, until `out` has `len_max` octets.
    pub(super) fn copy(&mut self, end: Option<Key>, out: &mut FrameBatch, len_max: usize) {
        while let Some(head) = self.head
            && end.is_none_or(|end| (head, self.order) < end)
            && out.bytes().len() < len_max
            && let Some(frame) = self.batch.get(self.at)
        {
            out.push(&frame);
            self.at += 1;
            self.head = self.batch.get(self.at).map(|next| next.timestamp.max(head));
        }
    }
}
