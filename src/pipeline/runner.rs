//! The loop that reads a source of frames, shared by pipelines and shards.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::error::Error;
use super::stats::PipelineStats;
use crate::base::{FrameBatch, StopHandle};
use crate::source::{self, End, Interface, Next, Source, SourceStats};

/// Maximum number of source errors that a run stores; the next error ends the run. A merge of many files may reject
/// each of them and read the rest, but a source that fails permanently must not exhaust memory.
const ERROR_COUNT_MAX: usize = 1 << 16;

/// Behavior of a run when its source returns an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorPolicy {
    /// Ends the run with the error. This is the default.
    #[default]
    End,
    /// Stores the error in [`Summary::errors`] and continues, for sources with more input after an error, such as
    /// [`Files`](crate::source::Files). After 65,536 errors, the next one ends the run.
    Continue,
}

/// Progress of a run, for a callback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunProgress {
    /// Number of frames that were read so far.
    pub frame_count: u64,
    /// Number of octets of the input that were read so far; for a compressed file, compressed octets.
    pub input_octet_count: u64,
    /// Total number of octets of the input, if it is known.
    pub input_len: Option<u64>,
    /// Counts of the source, such as the frames that the kernel and the interface dropped.
    pub source: SourceStats,
    /// Number of open flows; `None` if other threads track them (shards, [`RunOptions::extract_ahead`]).
    pub flow_count: Option<u64>,
    /// Memory that all layers hold in bytes, as charged to the [budget](crate::base::Budget).
    pub held_bytes: u64,
}

type Callback = Arc<dyn Fn(&RunProgress) + Send + Sync>;

/// Options of a run: stop handle, error policy, progress callback, number of threads.
///
/// ```
/// use flowgauge::{FileSource, Pipeline, RunOptions};
///
/// let options = RunOptions::default().progress(|progress| eprint!("\r{} frames", progress.frame_count));
/// let mut pipeline = Pipeline::builder().build(())?;
/// let summary = pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &options)?;
/// assert_eq!(summary.stats.tracker.ended_count(), 27);
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct RunOptions {
    stop: Option<StopHandle>,
    error_policy: ErrorPolicy,
    progress: Option<Callback>,
    is_ahead: bool,
}

impl RunOptions {
    /// Ends the run, between batches, once the stop handle is set: all open flows end as at the end of the input. Pass
    /// the same handle to a source that may block ([`SourceConfig::stop`](crate::source::SourceConfig::stop)).
    #[must_use]
    pub fn stop(self, handle: StopHandle) -> Self {
        Self { stop: Some(handle), ..self }
    }

    /// Sets the behavior of the run when its source returns an error.
    #[must_use]
    pub fn error_policy(self, error_policy: ErrorPolicy) -> Self {
        Self { error_policy, ..self }
    }

    /// Sets a function that the run calls after each batch, on the thread that reads the source.
    #[must_use]
    pub fn progress(self, callback: impl Fn(&RunProgress) + Send + Sync + 'static) -> Self {
        Self { progress: Some(Arc::new(callback)), ..self }
    }

    /// Lets [`Pipeline::run`](super::Pipeline::run) read the source and extract the packets of its frames on another
    /// thread, while the current thread tracks earlier packets. Off by default.
    ///
    /// On two cores, a run over a file takes 0.6 to 0.8 of the time, or the same if nearly all flows are short. The sink
    /// is called on the current thread, and receives the same as without this option, unless the budget is exhausted: at
    /// most four batches are in flight, which are charged to it ([`Account::Queues`](crate::base::Account::Queues)), and
    /// [`PipelineStats::queues`](super::PipelineStats::queues) counts them. Only
    /// [`Sink::batch_ended`](super::Sink::batch_ended) is not called for a batch without frames, and once more if a
    /// frame waits for the time check at the end. Fragments are extracted on the current thread, and so are all frames
    /// if checksums are verified or duplicates are removed, and batches for which the current thread would probably wait.
    ///
    /// A run that a sink ends waits for the batch that is being read. The frames that were read by then, up to five
    /// batches, are not processed, also not by a later run over the same source.
    ///
    /// If the system refuses another thread, the run has one. Other functions that run pipelines ignore this option;
    /// shards always read on a thread of their own.
    ///
    /// ```
    /// use flowgauge::{FileSource, Pipeline, RunOptions};
    ///
    /// let mut pipeline = Pipeline::builder().build(())?;
    /// let mut source = FileSource::open("examples/data/web.pcap")?;
    /// let summary = pipeline.run(&mut source, &RunOptions::default().extract_ahead(true))?;
    /// assert_eq!(summary.stats.frame_count, 1286);
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    #[must_use]
    pub fn extract_ahead(self, is_ahead: bool) -> Self {
        Self { is_ahead, ..self }
    }

    pub(super) const fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(StopHandle::is_stopped)
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("stop", &self.stop)
            .field("error_policy", &self.error_policy)
            .field("has_progress", &self.progress.is_some())
            .field("is_ahead", &self.is_ahead)
            .finish_non_exhaustive()
    }
}

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunEnd {
    /// The source has no more frames ([`End::Complete`]).
    EndOfInput,
    /// The stop handle in the options of the run was set, or the source was stopped ([`End::Stopped`]): there may be
    /// frames that were not read.
    Stopped,
    /// A sink returned [`ControlFlow::Break`] from [`Sink::batch_ended`](super::Sink::batch_ended).
    SinkBreak,
}

impl From<End> for RunEnd {
    fn from(end: End) -> Self {
        match end {
            End::Complete => Self::EndOfInput,
            End::Stopped => Self::Stopped,
        }
    }
}

/// The result of a run that did not fail.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Reason for the end of the run.
    pub end: RunEnd,
    /// Counters of all layers. For several shards, events common to all shards are counted once, and the counters of
    /// each shard are summed.
    pub stats: PipelineStats,
    /// Errors of the source that did not end the run ([`ErrorPolicy::Continue`]).
    pub errors: Vec<source::Error>,
}

impl Summary {
    /// Returns the number of messages that no sink has received, because their flows reported more than their octets justify
    /// ([`Protocol::with_message_len_min`](crate::session::Protocol::with_message_len_min)). A program with a parser of its own
    /// should report it.
    #[must_use]
    pub const fn suppressed_message_count(&self) -> u64 {
        self.stats.sessions.suppressed_message_count
    }
}

/// What the receiver of frames knows of the progress of a run.
pub(super) struct IntakeState {
    /// Number of frames so far.
    pub(super) frame_count: u64,
    /// Number of open flows, if this thread tracks them.
    pub(super) flow_count: Option<u64>,
    /// Memory charged to the budget in bytes.
    pub(super) held_bytes: u64,
}

/// Receives the frames that the run loop reads from a source.
pub(super) trait Intake {
    /// Returns the batch to fill with frames next.
    fn buffer(&mut self) -> &mut FrameBatch;

    /// Processes the result of reading from the source: the frames in the batch to fill, or the time of an idle source.
    /// `interfaces` are the interfaces of the source.
    fn process(&mut self, next: Next, interfaces: &[Interface]) -> ControlFlow<()>;

    /// Returns what the receiver knows of the progress.
    fn state(&self) -> IntakeState;
}

/// Result of reading a source until the run ended.
#[derive(Debug)]
pub(super) struct Outcome {
    end: RunEnd,
    errors: Vec<source::Error>,
    /// Number of errors so far that did not end the run, including those that were removed from `errors`.
    error_count: usize,
    fatal: Option<source::Error>,
}

impl Outcome {
    pub(super) const fn new() -> Self {
        Self { end: RunEnd::EndOfInput, errors: Vec::new(), error_count: 0, fatal: None }
    }

    /// Returns whether an error ended the run.
    pub(super) const fn is_failed(&self) -> bool {
        self.fatal.is_some()
    }

    /// Returns whether the source has returned an error.
    pub(super) const fn has_errors(&self) -> bool {
        self.error_count > 0 || self.fatal.is_some()
    }

    /// Returns whether a stop ended the run.
    pub(super) fn is_stopped(&self) -> bool {
        self.end == RunEnd::Stopped
    }

    /// Notes that a stop has ended the run between two reads.
    pub(super) const fn note_stop(&mut self) {
        self.end = RunEnd::Stopped;
    }

    /// Returns the reason for the end of a run that has ended; `None` if an error ended it.
    pub(super) fn end(&self) -> Option<RunEnd> {
        self.fatal.is_none().then_some(self.end)
    }

    /// Notes that the sink has ended the run before frames that were already read, or before an error.
    pub(super) fn note_break(&mut self) {
        (self.end, self.fatal) = (RunEnd::SinkBreak, None);
    }

    /// Removes the latest error that did not end the run.
    pub(super) fn take_error(&mut self) -> Option<source::Error> {
        self.errors.pop()
    }

    /// Removes the error that ended the run.
    pub(super) fn take_fatal(&mut self) -> Option<source::Error> {
        self.fatal.take()
    }

    pub(super) fn into_summary(self, stats: PipelineStats) -> Result<Summary, Error> {
        let Self { end, errors, fatal, .. } = self;
        match fatal {
            Some(error) => Err(error.into()),
            None => Ok(Summary { end, stats, errors }),
        }
    }
}

/// Reads a source to its end, or until the options, the receiver of the frames (`intake`) or an error ends the loop.
pub(super) fn drive(
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
    intake: &mut impl Intake,
) -> Outcome {
    let mut outcome = Outcome::new();
    while step(source, options, intake, &mut outcome).is_continue() {}
    outcome
}

/// Reads a source once; the only place that does. Breaks when the run has ended.
pub(super) fn step(
    source: &mut (impl Source + ?Sized),
    options: &RunOptions,
    intake: &mut impl Intake,
    outcome: &mut Outcome,
) -> ControlFlow<()> {
    if options.is_stopped() {
        outcome.end = RunEnd::Stopped;
        return ControlFlow::Break(());
    }
    let flow = match source.next_batch(intake.buffer()) {
        Ok(Next::End(end)) => {
            outcome.end = end.into();
            return ControlFlow::Break(());
        }
        Ok(next) => intake.process(next, source.interfaces()),
        Err(error) => {
            if options.error_policy == ErrorPolicy::End || outcome.error_count >= ERROR_COUNT_MAX {
                outcome.fatal = Some(error);
            } else {
                outcome.error_count += 1;
                outcome.errors.push(error);
            }
            // The batch contains the frames that were read before the error.
            intake.process(Next::Frames, source.interfaces())
        }
    };
    if let Some(callback) = &options.progress {
        let IntakeState { frame_count, flow_count, held_bytes } = intake.state();
        callback(&RunProgress {
            frame_count,
            input_octet_count: source.progress(),
            input_len: source.total_len(),
            source: source.stats(),
            flow_count,
            held_bytes,
        });
    }
    if outcome.fatal.is_some() {
        return ControlFlow::Break(());
    }
    if flow.is_break() {
        outcome.end = RunEnd::SinkBreak;
    }
    flow
}
