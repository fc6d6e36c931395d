//! Tracking of one capture file in parts, each on its own thread, with the records of a single pass.
//!
//! One pipeline, the carrier, has the true state at each border between two parts: it tracks the first part. Meanwhile
//! each other part is tracked alone, as if no flow were open before it. What is wrong then are only the flows with keys
//! that are open at the border. The frames with such keys are collected in a second pass over the part, and the carrier
//! tracks them, so that it ends these flows or has them open at the next border. It then takes over all other flows that
//! are open at the end of the part. A part whose records could depend on anything else is tracked by the carrier as a
//! whole.

mod carrier;
mod gathered;
mod kept;
mod memory;
mod part;

use std::collections::HashMap;
use std::thread;

use ahash::RandomState;

use super::builder::Builder;
use super::error::Error;
use super::runner::{RunOptions, Summary};
use super::sink::Stage;
use crate::base::{ConfigError, ConfigProblem, FlowKey, hash_state};
use crate::decode::ChecksumHandling;
use crate::decode::extractor::KeyPolicy;
use crate::decode::link::Decapsulation;
use crate::record::FlowRecord;
use crate::source::{FileParts, PartRange, PartReaders};
use crate::tracker::FlowView;
use carrier::Carrier;
use gathered::{Gathered, gather};
use kept::{Kept, Wants};
use part::{Part, track};

/// The index of the earliest part at whose end a flow with a key may be open; zero is the part of the carrier.
type Opened = HashMap<FlowKey, usize, RandomState>;

impl Builder {
    /// Tracks the flows of a capture file in parts, on `job_count` threads, and calls `deliver` on the current thread with
    /// the record of each flow that `wants` accepts. The records are those of [`Pipeline::run`](super::Pipeline::run) with
    /// a single pipeline.
    ///
    /// Records are ordered by part, and in a part by the time of their last packets, as far as the order of each thread
    /// permits. With the stage [`Sessions`](super::Sessions), records name the application protocol; the configuration of
    /// the [driver](crate::session::DriverConfig) must be `is_naming_only`.
    ///
    /// Frames of flows that are open at the beginning of a part are tracked on the current thread after all other frames
    /// of the part. On many cores, the run is faster than [`run_records`](Self::run_records), whose reader is a single
    /// thread, if most flows are short compared with a part. Nothing is gained for flows that last for the whole file. A
    /// part is tracked on the current thread as a whole if fragments wait for others at its beginning, if times step back
    /// behind the latest one before it or jump ([`TIME_JUMP_MAX`](super::TIME_JUMP_MAX)), if it describes new interfaces, or
    /// if its records take too much memory.
    ///
    /// Memory: a flow table for each thread, at most 262,144 records for each part that is being tracked, and 64 MiB for
    /// the frames that are tracked again. Counters of streams and sessions include packets that were tracked twice.
    ///
    /// # Errors
    ///
    /// Same as [`Pipeline::run`](super::Pipeline::run). A [`ConfigError`] for settings with which records depend on other
    /// parts: deduplication, checksums, [`Decapsulation::Both`], and stages with streams or messages. [`Error::Parts`] if
    /// a limit was reached, because the order of eviction would be another one.
    ///
    /// # Panics
    ///
    /// Panics if `wants` or `deliver` panics.
    pub fn run_parts<G: Stage>(
        &self,
        job_count: usize,
        parts: &mut FileParts,
        options: &RunOptions,
        wants: impl Fn(&FlowView<'_>) -> bool + Sync,
        deliver: impl FnMut(FlowRecord),
    ) -> Result<Summary, Error> {
        self.check_parts::<G>(job_count)?;
        let kept = Kept::default();
        let pipeline = self.build(kept.sink::<G>(&wants))?;
        let start = parts.records_at();
        let reader = parts.readers().open(PartRange { start, end: None })?;
        let mut carrier = Carrier::new((pipeline, kept, reader), options, deliver);
        let result = self.run_waves(job_count, (parts, &wants), &mut carrier);
        let (summary, outcome) = carrier.finish();
        parts.outcome = outcome;
        result?;
        summary
    }

    /// Returns an error for settings with which a part cannot be tracked alone.
    fn check_parts<G: Stage>(&self, job_count: usize) -> Result<(), ConfigError> {
        let conflict = |layer, field| {
            ConfigError::new(layer, field, ConfigProblem::Conflict { with: "parts of a file" })
        };
        if job_count == 0 {
            return Err(ConfigError::out_of_range("parts", "job_count", (1, u64::MAX)));
        }
        let config = &self.config;
        if config.dedup.is_some() {
            return Err(conflict("dedup", "dedup"));
        }
        if config.decoder.checksums != ChecksumHandling::Ignore {
            return Err(conflict("decode", "checksums"));
        }
        if config.tracker.key_policy.decapsulation == Decapsulation::Both {
            return Err(conflict("decode", "Decapsulation::Both"));
        }
        let is_naming_only = config.sessions.is_some_and(|sessions| sessions.is_naming_only);
        if G::HAS_STREAMS && !(G::HAS_SESSIONS && is_naming_only) {
            return Err(conflict("pipeline", "a stage with streams or messages"));
        }
        self.check_stage::<G>()
    }

    /// Tracks up to `job_count` parts at a time.
    fn run_waves<G: Stage, D: FnMut(FlowRecord)>(
        &self,
        job_count: usize,
        (parts, wants): (&FileParts, Wants<'_>),
        carrier: &mut Carrier<'_, G, D>,
    ) -> Result<(), Error> {
        loop {
            let position = carrier.reader().position();
            let ranges = parts.ranges(position, job_count);
            let Some((own, others)) = ranges.split_first() else { return Ok(()) };
            if !others.is_empty() {
                carrier.begin_others();
            }
            let options = carrier.options().clone();
            let tracked = thread::scope(|scope| {
                let (readers, options) = (parts.readers(), &options);
                let start = |range| scope.spawn(move || track::<G>(self, (readers, range), wants, options));
                let threads: Vec<_> = others.iter().map(|range| start(*range)).collect();
                let outcome = carrier.track(own.end);
                let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                let tracked: Vec<Option<Part>> = threads.into_iter().map(join).collect();
                outcome.map(|()| tracked)
            })?;
            if !carrier.is_part_over() {
                return Ok(());
            }
            let opened = opened(carrier, &tracked);
            let gathered = self.gather_all(parts.readers(), others, &opened);
            for (((range, part), gathered), index) in others.iter().zip(tracked).zip(gathered).zip(1..) {
                let alone = part.zip(gathered).filter(|_| parts.is_reached(*range, carrier.reader()));
                let is_gathered = |key: &FlowKey| is_open_before(&opened, index, key);
                match alone.filter(|(part, gathered)| carrier.can_join(part, gathered, is_gathered)) {
                    Some((part, gathered)) => carrier.join(part, &gathered)?,
                    None => carrier.track(range.end)?,
                }
                if !carrier.is_part_over() {
                    return Ok(());
                }
            }
            if carrier.reader().position() == position {
                // A record is longer than all parts together.
                return carrier.track(None);
            }
        }
    }

    /// Collects, in each part, the frames of flows that may be open at its beginning.
    fn gather_all(
        &self,
        readers: &PartReaders,
        ranges: &[PartRange],
        opened: &Opened,
    ) -> Vec<Option<Gathered>> {
        let gather = |index: usize, range| {
            let wants = |key: &FlowKey| is_open_before(opened, index, key);
            gather((readers, range), (self.policy(), &self.resources), wants)
        };
        thread::scope(|scope| {
            let gather = &gather;
            let threads: Vec<_> = ranges
                .iter()
                .zip(1..)
                .map(|(range, index)| scope.spawn(move || gather(index, *range)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    const fn policy(&self) -> KeyPolicy {
        self.config.tracker.key_policy
    }
}

/// Returns whether a flow with a key may be open at the beginning of the part with an index.
fn is_open_before(opened: &Opened, index: usize, key: &FlowKey) -> bool {
    opened.get(key).is_some_and(|first| *first < index)
}

/// Returns the keys of all flows that are open at the end of a part.
fn opened<G: Stage, D: FnMut(FlowRecord)>(carrier: &Carrier<'_, G, D>, tracked: &[Option<Part>]) -> Opened {
    let mut opened = Opened::with_hasher(hash_state(None));
    opened.extend(carrier.keys().map(|key| (key, 0)));
    for (part, index) in tracked.iter().zip(1..) {
        for key in part.iter().flat_map(|part| &part.keys) {
            opened.entry(*key).or_insert(index);
        }
    }
    opened
}
