//! The pipeline with the state of a single pass at the border between two parts.

use std::collections::HashSet;
use std::sync::Arc;

use ahash::RandomState;

use super::super::error::Error;
use super::super::observer::StageObserver;
use super::super::pipeline::{Direct, Pipeline};
use super::super::record_sink::RecordSink;
use super::super::runner::{self, Outcome, RunOptions, Summary};
use super::super::sink::Stage;
use super::super::stats::PipelineStats;
use super::gathered::Gathered;
use super::kept::Kept;
use super::memory::pressed_from;
use super::part::Part;
use crate::base::{FlowKey, FrameBatch, Timestamp, hash_state};
use crate::checkpoint::Reader;
use crate::record::FlowRecord;
use crate::source::{FileSource, PartsOutcome, Source};

/// Keys of flows that are open.
type Keys = HashSet<FlowKey, RandomState>;

/// The pipeline that has processed all parts so far, and the reader of the last one.
pub(super) struct Carrier<'a, G: Stage, D> {
    pipeline: Pipeline<RecordSink<'a, G>>,
    /// The records of the pipeline.
    kept: Kept,
    reader: FileSource,
    options: RunOptions,
    deliver: D,
    run: Outcome,
    /// Counters of the parts that were tracked alone.
    joined: PipelineStats,
    has_joined: bool,
    /// Peak of the budget, and the number of requests that it refused, before parts were tracked at the same time.
    memory_before: Option<(u64, u64)>,
    /// What earlier readers have counted.
    source: PartsOutcome,
}

impl<'a, G: Stage, D: FnMut(FlowRecord)> Carrier<'a, G, D> {
    pub(super) fn new(
        (pipeline, kept, reader): (Pipeline<RecordSink<'a, G>>, Kept, FileSource),
        options: &RunOptions,
        deliver: D,
    ) -> Self {
        Self {
            pipeline,
            kept,
            reader,
            options: options.clone(),
            deliver,
            run: Outcome::new(),
            joined: PipelineStats::default(),
            has_joined: false,
            memory_before: None,
            source: PartsOutcome::default(),
        }
    }

    pub(super) const fn reader(&self) -> &FileSource {
        &self.reader
    }

    pub(super) const fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Returns the keys of the flows that are open.
    pub(super) fn keys(&self) -> impl Iterator<Item = FlowKey> {
        self.pipeline.flows().map(|(view, ())| *view.key())
    }

    /// Returns whether the last part was read to its end, and another one follows. A stop ends the run then.
    pub(super) fn is_part_over(&mut self) -> bool {
        let is_over = self.reader.is_part_over() && !self.run.has_errors();
        if is_over && self.options.is_stopped() {
            self.run.note_stop();
        }
        is_over && !self.run.is_stopped()
    }

    /// Tracks all frames up to the offset `end`, or to the end of the file.
    pub(super) fn track(&mut self, end: Option<u64>) -> Result<(), Error> {
        self.reader.extend(end)?;
        self.source.part_counts.0 += 1;
        let mut intake = Direct { pipeline: &mut self.pipeline, batch: FrameBatch::new() };
        loop {
            let flow = runner::step(&mut self.reader, &self.options, &mut intake, &mut self.run);
            self.kept.drain(&mut self.deliver);
            if flow.is_break() {
                return self.check();
            }
        }
    }

    /// Notes that other parts are tracked at the same time from now on.
    pub(super) fn begin_others(&mut self) {
        let budget = self.pipeline.budget();
        self.memory_before.get_or_insert_with(|| (budget.peak(), budget.refused_count()));
    }

    /// Returns an error if records depend on the order in which flows are evicted, or on the memory that other parts take.
    fn check(&self) -> Result<(), Error> {
        let budget = self.pipeline.budget();
        let is_short = self.memory_before.is_some_and(|(peak, refused_count)| {
            let is_peak_new = budget.peak() > peak && budget.peak() > pressed_from(budget);
            is_peak_new || budget.refused_count() > refused_count
        });
        let is_limited = self.has_joined && self.pipeline.core.tracker().stats().is_limited();
        if is_limited || is_short { Err(Error::Parts) } else { Ok(()) }
    }

    /// Returns whether the next part may be joined: whether it depends on nothing but the open flows.
    /// `is_gathered` states whether the frames with a key were collected.
    pub(super) fn can_join(
        &self,
        part: &Part,
        gathered: &Gathered,
        is_gathered: impl Fn(&FlowKey) -> bool,
    ) -> bool {
        let core = &self.pipeline.core;
        let flow_count = core.tracker().len() as u64 + part.stats.tracker.open_count_max;
        core.jumps().is_plain_before(part.jumps.first_ns())
            && !core.has_fragments()
            && gathered.first_ns >= core.clock_ns()
            && flow_count < core.flow_count_max()
            && self.keys().all(|key| is_gathered(&key))
    }

    /// Continues the open flows with the frames of the next part, and takes over all other flows of it.
    pub(super) fn join(&mut self, part: Part, gathered: &Gathered) -> Result<(), Error> {
        let now = Timestamp::from_nanos(self.pipeline.core.clock_ns());
        self.pipeline.advance(now);
        let keys: Arc<Keys> = Arc::new({
            let mut keys = Keys::with_hasher(hash_state(None));
            keys.extend(self.keys());
            keys
        });
        let Pipeline { core, engine, sink, held } = &mut self.pipeline;
        core.restrict_to(Some(Arc::clone(&keys)));
        core.again(&gathered.frames, &gathered.clocks_ns, &mut StageObserver::new(engine, sink, held));
        core.restrict_to(None);
        core.note_clock(part.clock_ns);
        core.jumps_mut().follow(&part.jumps);
        self.has_joined = true;
        self.source.part_counts.1 += 1;
        self.count(&part, &keys);
        self.take_over(&part, &keys)?;
        let Part { kept, reader, .. } = part;
        let later = kept.take_records();
        let own = self.kept.take_records();
        merge(own, later.into_iter().filter(|record| !keys.contains(&record.key)), &mut self.deliver);
        let earlier = std::mem::replace(&mut self.reader, reader);
        self.source.add(&earlier);
        self.check()
    }

    /// Adds the flows that are open at the end of a part, except for those with the keys of this pipeline.
    fn take_over(&mut self, part: &Part, keys: &Keys) -> Result<(), Error> {
        // They are read as they were written; only limits may refuse them.
        let mut reader = Reader::new(&part.checkpoint[..]).map_err(|_| Error::Parts)?;
        self.pipeline.absorb(&mut reader, |key| !keys.contains(key)).map_err(|_| Error::Parts)
    }

    /// Adds the counters of a part, without the flows that this pipeline has tracked.
    fn count(&mut self, part: &Part, keys: &Keys) {
        let mut stats = part.stats.clone();
        part.kept.each_ended(|key, reason| {
            if keys.contains(key) {
                stats.tracker.uncount(reason);
            }
        });
        self.joined.add_part(&stats);
    }

    /// Ends all flows. Returns the counters of the run and of all readers.
    pub(super) fn finish(self) -> (Result<Summary, Error>, PartsOutcome) {
        let Self { mut pipeline, kept, reader, mut deliver, run, joined, mut source, .. } = self;
        while pipeline.end_next() {
            kept.drain(&mut deliver);
        }
        kept.drain(&mut deliver);
        let mut stats = pipeline.stats();
        stats.add_part(&joined);
        // All flows have ended, and each is counted once as such.
        stats.tracker.restored_count = 0;
        stats.tracker.started_count = stats.tracker.ended_count();
        source.add(&reader);
        source.interfaces = reader.interfaces().to_vec();
        (run.into_summary(stats), source)
    }
}

/// Delivers the records of two sequences in the order of their last packets, as far as each sequence permits.
fn merge(
    one: Vec<FlowRecord>,
    other: impl Iterator<Item = FlowRecord>,
    deliver: &mut impl FnMut(FlowRecord),
) {
    let place = |record: &FlowRecord| (record.end, record.start, record.key);
    let (mut one, mut other) = (one.into_iter().peekable(), other.peekable());
    loop {
        let is_one = match (one.peek(), other.peek()) {
            (Some(own), Some(later)) => place(own) <= place(later),
            (own, _) => own.is_some(),
        };
        match if is_one { one.next() } else { other.next() } {
            Some(record) => deliver(record),
            None => return,
        }
    }
}
