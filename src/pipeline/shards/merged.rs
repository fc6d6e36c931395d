//! The records of all shards in one stream.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::super::records::note;
use super::super::{Pipeline, SessionPipeline, SessionSink};
use super::{Shard, Shards, Step};
use crate::base::{Account, Application, Budget, EndReason};
use crate::record::FlowRecord;
use crate::session::{About, Protocols, SessionEvent};
use crate::source::{Error, Source};
use crate::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest};

/// Records that a shard hands over together.
const CHUNK_LEN: usize = 256;

/// The same where the budget has no room for them.
const SMALL_CHUNK_LEN: usize = 8;

/// Chunks and ends of batches of one shard that wait to be merged; then the shard waits.
const WAITING_COUNT: usize = 64;

enum Message {
    Records(Chunk),
    BatchEnd,
}

/// Records on their way, and what was charged for them, which is given back with them.
#[derive(Default)]
struct Chunk {
    records: VecDeque<FlowRecord>,
    charge: Option<(Budget, u64)>,
}

impl Chunk {
    /// An empty one, and whether there was room for it; if not, it is to be a small one.
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

/// The sink of a shard.
struct Feed<'a, W> {
    wants: &'a W,
    budget: Budget,
    refused_count: &'a AtomicU64,
    pending: Chunk,
    /// Until the shard has ended: that nothing more comes must be known while others still go on.
    queue: Option<SyncSender<Message>>,
}

impl<W: Fn(&FlowView<'_>) -> bool> Feed<'_, W> {
    fn take(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        if view.is_empty() || !(self.wants)(view) {
            return;
        }
        if self.pending.records.is_empty() {
            let (chunk, is_charged) = Chunk::new(&self.budget);
            self.refused_count.fetch_add(u64::from(!is_charged), Relaxed);
            self.pending = chunk;
        }
        self.pending.records.push_back(view.record(reason).with_application(application));
        if self.pending.records.len() >= self.pending.len_max() {
            self.flush();
        }
    }
}

impl<W> Feed<'_, W> {
    fn flush(&mut self) {
        if !self.pending.records.is_empty() {
            let chunk = std::mem::take(&mut self.pending);
            self.send(Message::Records(chunk));
        }
    }

    fn send(&self, message: Message) {
        if let Some(queue) = &self.queue {
            // If nobody merges any more, a panic is on its way.
            let _ = queue.send(message);
        }
    }

    fn end(&mut self, step: Step) {
        self.flush();
        match step {
            Step::Batch => self.send(Message::BatchEnd),
            Step::End => self.queue = None,
        }
    }
}

impl<S, W: Fn(&FlowView<'_>) -> bool> FlowSink<S> for Feed<'_, W> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, S>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.take(&flow.view, EndReason::ActiveTimeout, None);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, _state: S) {
        self.take(view, reason, None);
    }
}

/// The sink of a shard that names what is spoken.
struct NamedFeed<'a, W>(Feed<'a, W>);

impl<W: Fn(&FlowView<'_>) -> bool> FlowSink<Option<Application>> for NamedFeed<'_, W> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, Option<Application>>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.0.take(&flow.view, EndReason::ActiveTimeout, *flow.state);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        self.0.take(view, reason, application);
    }
}

impl<P: Protocols, W: Fn(&FlowView<'_>) -> bool> SessionSink<P, Option<Application>> for NamedFeed<'_, W> {
    fn message(&mut self, _: &mut Flow<'_, Option<Application>>, _: &About, _: P::Message<'_>) {}

    fn session(&mut self, flow: &mut Flow<'_, Option<Application>>, event: &SessionEvent) {
        note(flow.state, event);
    }
}

impl<S: Default + Send> Shards<Pipeline<S>> {
    /// Takes all frames of a source, then ends the flows, and calls `deliver` with the record of each flow that ends, and of
    /// each active timeout, if `wants` says so of it.
    ///
    /// Records come in the order of the batches in which their flows ended, and of those that end with the same batch, in the
    /// order of their last packets, as far as the order of each shard allows it. `deliver` runs on a thread of its own. At most
    /// some 16,000 records of a shard wait.
    ///
    /// # Errors
    ///
    /// What the source gives; the flows so far are ended before it is returned.
    ///
    /// # Panics
    ///
    /// If `wants` or `deliver` does.
    pub fn run_records(
        &mut self,
        source: &mut (impl Source + ?Sized),
        wants: impl Fn(&FlowView<'_>) -> bool + Sync,
        deliver: impl FnMut(FlowRecord) + Send,
    ) -> Result<(), Error> {
        merged(self, source, (&wants, &AtomicU64::new(0)), deliver, (|feed| feed, Feed::end))
    }
}

impl<P: Protocols + Send> Shards<SessionPipeline<P, Option<Application>>> {
    /// As the same of flows without sessions; the records name what is spoken.
    ///
    /// # Errors
    ///
    /// Likewise.
    ///
    /// # Panics
    ///
    /// Likewise.
    pub fn run_records(
        &mut self,
        source: &mut (impl Source + ?Sized),
        wants: impl Fn(&FlowView<'_>) -> bool + Sync,
        deliver: impl FnMut(FlowRecord) + Send,
    ) -> Result<(), Error> {
        merged(
            self,
            source,
            (&wants, &AtomicU64::new(0)),
            deliver,
            (NamedFeed, |feed, step| feed.0.end(step)),
        )
    }
}

/// Runs shards with sinks that are made of feeds, and delivers what they hand over.
fn merged<'w, P: Shard<K>, W, K: Send>(
    shards: &mut Shards<P>,
    source: &mut (impl Source + ?Sized),
    (wants, refused_count): (&'w W, &'w AtomicU64),
    deliver: impl FnMut(FlowRecord) + Send,
    (sink, after): (impl Fn(Feed<'w, W>) -> K, impl Fn(&mut K, Step) + Sync),
) -> Result<(), Error> {
    let mut merges = Vec::with_capacity(shards.shards.len());
    let mut sinks = Vec::with_capacity(shards.shards.len());
    for _ in &shards.shards {
        let (queue, messages) = sync_channel(WAITING_COUNT);
        let budget = shards.budget.clone();
        let (pending, queue) = (Chunk::default(), Some(queue));
        sinks.push(sink(Feed { wants, budget, refused_count, pending, queue }));
        merges.push(Incoming { messages, step: 0, chunk: Chunk::default() });
    }
    let outcome = thread::scope(|scope| {
        scope.spawn(move || merge(&mut merges, deliver));
        let mut sinks = sinks;
        shards.run_with(source, &mut sinks, after)
    });
    shards.queues.refused_count += refused_count.load(Relaxed);
    outcome
}

/// What came of a shard and was not delivered yet.
struct Incoming {
    messages: Receiver<Message>,
    /// The batch that the records are of; `u64::MAX` if there will be none.
    step: u64,
    chunk: Chunk,
}

impl Incoming {
    /// Waits until there is a record of a batch, or the batch is over.
    fn wait(&mut self, step: u64) {
        while self.chunk.records.is_empty() && self.step <= step && self.step != u64::MAX {
            match self.messages.recv() {
                Ok(Message::Records(chunk)) => self.chunk = chunk,
                Ok(Message::BatchEnd) => self.step += 1,
                Err(_) => self.step = u64::MAX,
            }
        }
    }

    /// The next record, if it is of a batch.
    fn head(&self, step: u64) -> Option<&FlowRecord> {
        self.chunk.records.front().filter(|_| self.step == step)
    }
}

fn merge(shards: &mut [Incoming], mut deliver: impl FnMut(FlowRecord)) {
    let mut step = 0;
    loop {
        shards.iter_mut().for_each(|shard| shard.wait(step));
        let heads = shards.iter().enumerate().filter_map(|(place, shard)| Some((shard.head(step)?, place)));
        let first =
            heads.min_by_key(|(record, _)| (record.end, record.start, record.key)).map(|(_, place)| place);
        match first.and_then(|place| shards.get_mut(place)?.chunk.records.pop_front()) {
            Some(record) => deliver(record),
            None => match shards.iter().map(|shard| shard.step).min() {
                None | Some(u64::MAX) => return,
                Some(least) => step = least,
            },
        }
    }
}
