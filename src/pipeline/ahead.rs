//! The loop that reads a source on another thread, which extracts packets too, while the current thread processes them.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::dispatch::{Blocks, Dispatcher, Lent, QueueStats, Reader};
use super::jumps::Jumps;
use super::runner::{self, Outcome, RunOptions};
use crate::base::Budget;
use crate::base::ring::ring;
use crate::source::Source;

/// Maximum number of batches in flight. With more, a thread waits less often, but a trace of short flows takes longer: the
/// reader is always ahead, and the batches displace the flow table from the caches.
const BATCH_COUNT_MAX: u64 = 4;

/// Reads a source to its end like [`runner::drive`], and calls `process` with each block on the current thread, until it
/// returns [`ControlFlow::Break`]. Returns also the state of the dispatcher's time check, and the statistics of the queue.
/// If the system refuses another thread, reads nothing and returns the state of the time check as an error.
pub(super) fn drive(
    dispatcher: Dispatcher,
    budget: Budget,
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
    process: impl FnMut(&Lent) -> ControlFlow<()>,
) -> Result<(Outcome, Jumps, QueueStats), Jumps> {
    // The queue takes all blocks in flight, so that the reader waits only for a free block.
    let (queue, mut batches) = ring(BATCH_COUNT_MAX as usize);
    let reader = Reader::new(dispatcher, vec![queue], Blocks::new(budget, BATCH_COUNT_MAX), None);
    // The reader is sent to the thread, so that it is not lost if there cannot be another thread.
    let (to_thread, from_here) = sync_channel::<Reader>(1);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("extract-ahead".to_owned()).spawn_scoped(scope, move || {
            let mut reader = from_here.recv().ok()?;
            let outcome = runner::drive(source, options, &mut reader);
            let sent = reader.sent();
            reader.end();
            Some((outcome, sent, reader.close()))
        });
        let Ok(thread) = thread else { return Err(reader.close().0) };
        let _ = to_thread.send(reader);
        let mut process = process;
        let mut taken_count = 0;
        let broken = batches.iter().find_map(|lent| {
            taken_count += 1;
            process(&lent).is_break().then(|| lent.jumps().snapshot())
        });
        // The reader finds the queue closed if it has not reached the end.
        drop(batches);
        let read = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        let (mut outcome, (sent_count, is_latest_sent), (jumps, stats)) =
            read.expect("the reader was sent to the thread");
        let Some(jumps_then) = broken else { return Ok((outcome, jumps, stats)) };
        // An error belongs to the latest batch. After the latest batch, the sink has nothing to end.
        let has_failed_then = outcome.is_failed() && is_latest_sent && taken_count == sent_count;
        if !has_failed_then && taken_count <= sent_count {
            outcome.note_break();
        }
        Ok((outcome, jumps_then, stats))
    })
}
