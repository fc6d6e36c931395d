//! Merge of the flow records of all shards into one sequence.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use super::super::error::Error;
use super::super::record_sink::{RecordReceiver, RecordSink};
use super::super::runner::{RunOptions, Summary};
use super::super::sink::Stage;
use super::threads::{Layers, run};
use crate::base::ring::{Consumer, Producer, ring};
use crate::base::{Account, Budget, EndReason};
use crate::record::FlowRecord;
use crate::source::Source;
use crate::tracker::FlowView;

/// Number of records that a shard sends together in a chunk.
const CHUNK_LEN: usize = 256;

/// Number of records that a shard sends together in a chunk if the budget has no memory for more.
const SMALL_CHUNK_LEN: usize = 8;

/// Maximum number of messages from one shard, each a chunk of records or the end of a batch, that are queued for the
/// merge; beyond it, the shard waits.
const WAITING_COUNT: usize = 64;

enum Message {
    Records(Chunk),
    BatchEnd,
}

/// Records that a shard sends to the merge, and the memory charge for them, which is released when the chunk is
/// dropped.
#[derive(Default)]
struct Chunk {
    records: VecDeque<FlowRecord>,
    charge: Option<(Budget, u64)>,
}

impl Chunk {
    /// Returns an empty chunk, and whether its memory was charged; an uncharged chunk has capacity for few records.
    fn new(budget: &Budget) -> (Self, bool) {
        let bytes = (CHUNK_LEN * size_of::<FlowRecord>()) as u64;
        let is_charged = budget.charge(Account::Queues, bytes);
        let len_max = if is_charged { CHUNK_LEN } else { SMALL_CHUNK_LEN };
        let charge = is_charged.then(|| (budget.clone(), bytes));
        (Self { records: VecDeque::with_capacity(len_max), charge }, is_charged)
    }

    fn len_max(&self) -> usize {
        if self.charge.is_some() { CHUNK_LEN } else { SMALL_CHUNK_LEN }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some((budget, bytes)) = self.charge.take() {
            self.records = VecDeque::new();
            budget.release(Account::Queues, bytes);
        }
    }
}

/// Sends the records of the flows of a shard to the merge. When it is dropped, the merge detects the end of the shard, while
/// other shards still run.
struct Feed<'a> {
    wants: &'a (dyn Fn(&FlowView<'_>) -> bool + Sync),
    budget: Budget,
    refused_count: &'a AtomicU64,
    pending: Chunk,
    /// Queue of records and batch ends to the merge.
    queue: Producer<Message>,
}

impl Feed<'_> {
    fn flush(&mut self) {
        if !self.pending.records.is_empty() {
            let chunk = std::mem::take(&mut self.pending);
            self.send(Message::Records(chunk));
        }
    }

    fn send(&mut self, message: Message) {
        // If the merge has ended, a panic is in progress.
        let _ = self.queue.push(message);
    }
}

impl RecordReceiver for Feed<'_> {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        if !(self.wants)(view) {
            return;
        }
        if self.pending.records.is_empty() {
            let (chunk, is_charged) = Chunk::new(&self.budget);
            self.refused_count.fetch_add(u64::from(!is_charged), Relaxed);
            self.pending = chunk;
        }
        self.pending.records.push_back(view.record(reason));
        if self.pending.records.len() >= self.pending.len_max() {
            self.flush();
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.flush();
        self.send(Message::BatchEnd);
        ControlFlow::Continue(())
    }
}

impl Drop for Feed<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Runs `shard_count` pipelines, and calls `deliver` with each record for which `wants` returns true.
pub(in crate::pipeline) fn run_records<G: Stage>(
    layers: Layers<'_>,
    shard_count: usize,
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
    (wants, deliver): (&(dyn Fn(&FlowView<'_>) -> bool + Sync), impl FnMut(FlowRecord) + Send),
) -> Result<Summary, Error> {
    let (_, resources) = layers;
    let refused_count = &AtomicU64::new(0);
    let mut merges = Vec::with_capacity(shard_count);
    let mut sinks = Vec::with_capacity(shard_count);
    for _ in 0..shard_count {
        let (queue, messages) = ring(WAITING_COUNT);
        let (budget, pending) = (resources.budget.clone(), Chunk::default());
        sinks.push(RecordSink::<G>::new(Feed { wants, budget, refused_count, pending, queue }));
        merges.push(Incoming { messages, step: 0, chunk: Chunk::default() });
    }
    let mut summary = thread::scope(|scope| {
        scope.spawn(move || merge(&mut merges, deliver));
        run(layers, sinks, source, options)
    })?;
    summary.stats.queues.refused_count += refused_count.load(Relaxed);
    Ok(summary)
}

/// Records that one shard has sent and that have not been delivered yet.
struct Incoming {
    messages: Consumer<Message>,
    /// Index of the batch to which the next records belong; `u64::MAX` if there will be no more records.
    step: u64,
    chunk: Chunk,
}

impl Incoming {
    /// Waits until a record of the batch with the index `step` arrives from the shard, or the batch has ended.
    fn wait(&mut self, step: u64) {
        while self.chunk.records.is_empty() && self.step <= step && self.step != u64::MAX {
            match self.messages.pop() {
                Some(Message::Records(chunk)) => self.chunk = chunk,
                Some(Message::BatchEnd) => self.step += 1,
                None => self.step = u64::MAX,
            }
        }
    }

    /// Returns the next record of the shard, if it belongs to the batch with the index `step`.
    fn head(&self, step: u64) -> Option<&FlowRecord> {
        self.chunk.records.front().filter(|_| self.step == step)
    }
}

fn merge(shards: &mut [Incoming], mut deliver: impl FnMut(FlowRecord)) {
    let mut step = 0;
    loop {
        shards.iter_mut().for_each(|shard| shard.wait(step));
        let heads = shards.iter().enumerate().filter_map(|(index, shard)| Some((shard.head(step)?, index)));
        let first =
            heads.min_by_key(|(record, _)| (record.end, record.start, record.key)).map(|(_, index)| index);
        match first.and_then(|index| shards.get_mut(index)?.chunk.records.pop_front()) {
            Some(record) => deliver(record),
            None => match shards.iter().map(|shard| shard.step).min() {
                None | Some(u64::MAX) => return,
                Some(least) => step = least,
            },
        }
    }
}
