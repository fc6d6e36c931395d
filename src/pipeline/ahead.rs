//! The loop that reads a source and extracts its packets on another thread, while the current thread processes them.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::thread;

use super::jumps::Jumps;
use super::runner::{self, Outcome, RunOptions};
use super::shards::{Blocks, Dispatcher, Lent, QueueStats, Reader};
use crate::base::Budget;
use crate::base::ring::ring;
use crate::source::Source;

/// Maximum number of batches in flight. With more, a thread waits less often, but a trace of short flows takes longer: the
/// reader is always ahead, and the batches displace the flow table from the caches.
const BATCH_COUNT_MAX: u64 = 4;

/// Reads a source to its end like [`runner::drive`], and calls `process` with each block on the current thread, until it
/// returns [`ControlFlow::Break`]. Returns also the state of the dispatcher's time check, and the statistics of the queue.
pub(super) fn drive(
    dispatcher: Dispatcher,
    budget: Budget,
    (source, options): (&mut (impl Source + ?Sized), &RunOptions),
    process: impl FnMut(&Lent) -> ControlFlow<()>,
) -> (Outcome, Jumps, QueueStats) {
    // The queue takes all blocks in flight, so that the reader waits only for a free block.
    let (queue, mut batches) = ring(BATCH_COUNT_MAX as usize);
    let mut reader = Reader::new(dispatcher, vec![queue], Blocks::new(budget, BATCH_COUNT_MAX), None);
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let outcome = runner::drive(source, options, &mut reader);
            reader.end();
            (outcome, reader.close())
        });
        let mut process = process;
        let is_broken = batches.iter().any(|lent| process(&lent).is_break());
        // The reader finds the queue closed if it has not reached the end.
        drop(batches);
        let (mut outcome, (jumps, stats)) = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        if is_broken {
            outcome.note_break();
        }
        (outcome, jumps, stats)
    })
}
