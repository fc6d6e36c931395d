//! One of several files that are merged, and the batch of frames that was read from it.

use crate::base::{FrameBatch, Timestamp};
use crate::source::capture::Capture;
use crate::source::error::Error;
use crate::source::memory::{Charge, Memory};

/// Sort key of frames in a merge: the time, and the index of the frame's file in the order in which the files
/// were specified.
pub(super) type Key = (Timestamp, usize);

/// Maximum memory that an emptied batch may keep for the next block, in bytes per octet of that block. The memory of a
/// larger batch is freed.
const HELD_PER_BLOCK_MAX: u64 = 8;

/// File whose frames are being merged.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) source: Capture,
    pub(super) order: usize,
    pub(super) batch: FrameBatch,
    /// Charge for the memory of the batch.
    charge: Charge,
    /// Index of the next frame in the batch.
    pub(super) at: usize,
    /// Latest timestamp of this file up to the next frame in the batch; `None` if the batch is exhausted.
    pub(super) head: Option<Timestamp>,
    /// Latest timestamp of this file up to the end of the batch.
    pub(super) tail: Timestamp,
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
        }
    }

    /// Sets the charge to the memory that the batch currently uses.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let charged = self.charge.set(self.batch.held_bytes());
        charged.map_err(|refused| Error::memory(self.source.path(), refused))
    }

    /// Charges memory for reading a block of `block_len` octets, and sets this block length for the capture.
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

    /// Starts the merge of a new batch at its first frame.
    pub(super) fn begin_batch(&mut self) {
        self.at = 0;
        self.head = self.batch.get(0).map(|frame| frame.timestamp.max(self.tail));
        self.tail = self.batch.iter().map(|frame| frame.timestamp).fold(self.tail, Timestamp::max);
    }

    /// Copies the next frames of the batch to `out`, as long as they precede `end` and until `out` has
    /// `len_max` octets.
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
