//! The reader's side of a run with more than one thread: it reads batches, decides which frames each thread processes,
//! and lends the batches to the threads.
//!
//! Shards and extraction ahead are built on it; it knows no pipeline.

mod blocks;
mod dispatcher;
mod reader;

pub use blocks::QueueStats;
pub(super) use blocks::{BATCH_COUNT_MAX, Block, Blocks, Lent};
pub(super) use dispatcher::{Content, Dispatch, Dispatched, Dispatcher};
pub(super) use reader::Reader;
