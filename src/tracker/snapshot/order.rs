//! Encoding of the order of flows in a checkpoint.
//!
//! Flows are named by their index in the checkpoint, so that a list has no links that could be inconsistent.

use super::super::recency::Epoch;
use crate::checkpoint::{Invalid, StateWriter, number};
use crate::codec::Reader;

/// Name of the list of flows by the beginning of their current records, beside the numbers of recency lists.
pub(super) const ACTIVE: u8 = u8::MAX;

/// Maximum number of flows in a block.
pub(super) const ORDER_BLOCK_COUNT: usize = 65_536;

/// A part of a list: its number, its current epoch, and how many flows follow.
pub(super) struct Header {
    pub(super) list: u8,
    pub(super) epoch: Epoch,
    pub(super) count: u32,
}

impl Header {
    pub(super) fn write(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        out.be(self.list)?;
        out.be(self.epoch.number)?;
        out.varint(self.epoch.added_count.into())?;
        out.varint(self.epoch.began_ns)?;
        Ok(out.be(self.count)?)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let list = reader.be()?;
        let number_of_epoch = reader.be()?;
        let epoch =
            Epoch { number: number_of_epoch, added_count: number(reader)?, began_ns: reader.varint()? };
        Ok(Self { list, epoch, count: reader.be()? })
    }
}
