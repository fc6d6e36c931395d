//! The reading thread: fills blocks with frames, and sends them to the pipelines.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::super::jumps::Jumps;
use super::super::runner::{Intake, IntakeState};
use super::blocks::{Block, Blocks, Lent, QueueStats};
use super::dispatcher::Dispatcher;
use crate::base::ring::Producer;
use crate::base::{FrameBatch, Timestamp};
use crate::source::{Interface, Next};

/// Receives batches of the source, extracts packets of most of them, and sends each batch to all pipelines.
pub(in crate::pipeline) struct Reader {
    dispatcher: Dispatcher,
    queues: Vec<Producer<Arc<Lent>>>,
    blocks: Blocks,
    /// The block that is being filled with frames.
    block: Option<Block>,
    frame_count: u64,
    /// Number of blocks that were sent.
    block_count: u64,
    /// True if the latest batch was sent; false if it was empty.
    is_latest_sent: bool,
    /// Receives a message from each shard with a sink that requests a stop; `None` if a pipeline that stops drops its
    /// end of the queue instead.
    stops: Option<Receiver<()>>,
}

impl Reader {
    pub(in crate::pipeline) fn new(
        dispatcher: Dispatcher,
        queues: Vec<Producer<Arc<Lent>>>,
        blocks: Blocks,
        stops: Option<Receiver<()>>,
    ) -> Self {
        Self {
            dispatcher,
            queues,
            blocks,
            block: None,
            frame_count: 0,
            block_count: 0,
            is_latest_sent: false,
            stops,
        }
    }

    /// Sends the filled block to all shards. Returns [`ControlFlow::Break`] if one of them no longer receives, because
    /// its sink panicked or requested a stop.
    fn send(&mut self, idle: Option<Timestamp>, is_last: bool) -> ControlFlow<()> {
        let Some(mut block) = self.block.take() else { return ControlFlow::Continue(()) };
        block.idle = idle;
        self.dispatcher.review(&mut block.batch, is_last);
        if let Some(held) = idle.and_then(|now| self.dispatcher.idle(now)) {
            held.iter().for_each(|frame| block.batch.push(&frame));
        }
        // A single pipeline that has received all batches extracts the next one itself, so that no thread waits while
        // the other one has work for both.
        let is_awaited = self.dispatcher.share.is_none() && self.queues.iter().all(Producer::is_empty);
        self.dispatcher.dispatch(&block.batch, &mut block.dispatch, is_awaited);
        self.is_latest_sent = !block.batch.is_empty() || idle.is_some();
        if !self.is_latest_sent {
            self.block = Some(block);
            return ControlFlow::Continue(());
        }
        block.jumps = self.dispatcher.jumps.snapshot();
        self.frame_count += block.batch.len() as u64;
        self.block_count += 1;
        let lent = self.blocks.lend(block);
        // The panic is resumed where the thread of the shard is joined.
        let is_taken = self.queues.iter_mut().all(|queue| queue.push(Arc::clone(&lent)).is_ok());
        if is_taken && self.stops.as_ref().is_none_or(|stops| stops.try_recv().is_err()) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    /// Returns the number of blocks that were sent, and whether the latest batch was one of them, because it was not
    /// empty.
    pub(in crate::pipeline) const fn sent(&self) -> (u64, bool) {
        (self.block_count, self.is_latest_sent)
    }

    /// Sends the deferred frame to the pipelines at the end of the input.
    pub(in crate::pipeline) fn end(&mut self) {
        self.buffer().clear();
        let _ = self.send(None, true);
    }

    /// Closes the queues, so that the pipelines find the end of the input. Returns the state of the time check and the
    /// statistics of the queues.
    pub(in crate::pipeline) fn close(self) -> (Jumps, QueueStats) {
        (self.dispatcher.jumps, self.blocks.stats)
    }
}

impl Intake for Reader {
    fn buffer(&mut self) -> &mut FrameBatch {
        let Self { block, blocks, .. } = self;
        &mut block.get_or_insert_with(|| blocks.next()).batch
    }

    fn process(&mut self, next: Next, _: &[Interface]) -> ControlFlow<()> {
        match next {
            Next::Frames => self.send(None, false),
            Next::Idle(now) => self.send(Some(now), false),
            Next::End(_) => ControlFlow::Break(()),
        }
    }

    fn state(&self) -> IntakeState {
        IntakeState { frame_count: self.frame_count, flow_count: None, held_bytes: self.blocks.budget_held() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatcher::Content;
    use super::*;
    use crate::base::ring::ring;
    use crate::base::{Budget, Frame};
    use crate::decode::extractor::{Extractor, PacketMarks};

    /// A segment of one octet.
    const SEGMENT: &[u8] = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0\
        \x45\0\0\x29\0\0\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02\
        \x9c\x40\0\x50\0\0\0\x01\0\0\0\0\x50\x18\x04\0\0\0\0\0x";

    #[test]
    fn packets_are_extracted_only_if_they_have_to_wait() {
        let dispatcher = Dispatcher {
            jumps: Jumps::new(false),
            extractor: Extractor::default(),
            slow_path_marks: PacketMarks::default(),
            is_all_for_all: false,
            share: None,
            clock_ns: 0,
        };
        let (queue, mut batches) = ring(4);
        let mut reader = Reader::new(dispatcher, vec![queue], Blocks::new(Budget::new(1 << 20), 4), None);
        let mut send = || {
            let batch = reader.buffer();
            batch.clear();
            batch.push(&Frame::ethernet(Timestamp::from_nanos(1), SEGMENT));
            assert!(reader.process(Next::Frames, &[]).is_continue());
        };
        (0..3).for_each(|_| send());
        let mut extracted = Vec::new();
        let mut receive = || {
            let lent: Arc<Lent> = batches.try_pop().unwrap();
            let Block { batch, dispatch, .. } = lent.block();
            let sent: Vec<_> = dispatch.queue(0).unwrap().iter(batch).collect();
            let [frame] = sent[..] else { panic!("{sent:?}") };
            extracted.push(matches!(frame.content, Content::Own(..)));
        };
        (0..3).for_each(|_| receive());
        send();
        receive();
        assert_eq!(extracted, [false, true, true, false]);
    }
}
