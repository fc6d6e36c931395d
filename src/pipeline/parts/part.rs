//! A part that is tracked alone.

use super::super::builder::Builder;
use super::super::jumps::Jumps;
use super::super::runner::RunOptions;
use super::super::sink::Stage;
use super::super::stats::PipelineStats;
use super::kept::{Kept, Wants};
use crate::base::{FlowKey, FrameBatch};
use crate::checkpoint::Writer;
use crate::source::{End, FileSource, Next, PartRange, PartReaders, Source};

/// What a pipeline has made of a part, as if no flow were open before it.
pub(super) struct Part {
    /// The flows that are open at the end of the part.
    pub(super) checkpoint: Vec<u8>,
    pub(super) keys: Vec<FlowKey>,
    /// The flows that ended.
    pub(super) kept: Kept,
    pub(super) stats: PipelineStats,
    /// State of the time check at the end.
    pub(super) jumps: Jumps,
    /// Time that packets have reached, in nanoseconds.
    pub(super) clock_ns: u64,
    pub(super) reader: FileSource,
}

/// Tracks a part alone. Returns `None` if it cannot be, so that the carrier has to track it.
pub(super) fn track<G: Stage>(
    builder: &Builder,
    (readers, range): (&PartReaders, PartRange),
    wants: Wants<'_>,
    options: &RunOptions,
) -> Option<Part> {
    let kept = Kept::part(builder.budget().clone());
    let mut pipeline = builder.build(kept.sink::<G>(wants)).ok()?;
    let mut reader = readers.open(range).ok()?;
    let mut batch = FrameBatch::new();
    loop {
        match reader.next_batch(&mut batch) {
            Ok(Next::End(End::Complete)) => break,
            // The carrier reports an error, or the stop, when it reads the part again.
            Err(_) | Ok(Next::End(End::Stopped)) => return None,
            Ok(Next::Frames | Next::Idle(_)) => {}
        }
        let _ = pipeline.batch(&batch);
        if options.is_stopped() || kept.is_full() {
            return None;
        }
    }
    let stats = pipeline.stats();
    let core = &pipeline.core;
    // Then nothing but the open flows depends on what precedes or follows the part.
    let is_independent =
        core.jumps().is_calm() && !stats.tracker.is_limited() && pipeline.held_stream_count() == 0;
    if !is_independent {
        return None;
    }
    let mut writer = Writer::new(Vec::new()).ok()?;
    pipeline.checkpoint(&mut writer).ok()?;
    Some(Part {
        checkpoint: writer.finish().ok()?,
        keys: pipeline.flows().map(|(view, ())| *view.key()).collect(),
        stats,
        jumps: core.jumps().snapshot(),
        clock_ns: core.clock_ns(),
        kept,
        reader,
    })
}
