//! The pipeline, which processes frames in all layers and calls a sink with the results.

use std::ops::ControlFlow;

use super::ahead;
use super::config::Config;
use super::core::Core;
use super::dispatch::{Block, Lent, QueueStats};
use super::error::Error;
use super::held::Held;
use super::observer::StageObserver;
use super::runner::{self, Intake, IntakeState, Outcome, RunOptions, Summary};
use super::sink::sealed::Stage as _;
use super::sink::{EngineOf, Sink, SlotOf};
use super::stats::PipelineStats;
use crate::base::{Budget, ConfigError, FlowKey, Frame, FrameBatch, Resources, Timestamp};
use crate::source::{Interface, Next, Source};
use crate::tracker::{FlowId, FlowScan, FlowView, Share};

/// All layers of the crate combined: processes frames, and calls a sink.
///
/// Created by [`Pipeline::builder`]. [`run`](Self::run) processes a whole source, [`feed`](Self::feed) one of several;
/// [`batch`](Self::batch),
/// [`frame`](Self::frame), [`advance`](Self::advance) and [`finish`](Self::finish) are for callers with their own loop.
///
/// A packet of a known flow causes no allocation. Memory is bounded by the limits and the budget of the builder.
///
/// Dropping a pipeline does not call its sink, because that may fail: flows that are open then have no record, no end of their
/// streams, and no last messages. [`run`](Self::run) ends them; after all other functions, call [`finish`](Self::finish), or
/// [`checkpoint`](Self::checkpoint) to continue them in another process:
///
/// ```
/// use flowgauge::{FileSource, Pipeline, Records, RunOptions};
///
/// let count_of = |is_finished: bool| -> Result<u32, flowgauge::Error> {
///     let mut count = 0;
///     let mut pipeline = Pipeline::builder().build(Records::new(|_| count += 1))?;
///     pipeline.feed(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
///     if is_finished {
///         pipeline.finish();
///     }
///     drop(pipeline);
///     Ok(count)
/// };
/// assert_eq!((count_of(true)?, count_of(false)?), (27, 0));
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[must_use = "a pipeline that is dropped without `run`, `finish` or `checkpoint` loses its open flows"]
pub struct Pipeline<K: Sink> {
    pub(super) core: Core<SlotOf<K>>,
    pub(super) engine: EngineOf<K>,
    pub(super) sink: K,
    pub(super) held: Held,
}

impl<K: Sink> Pipeline<K> {
    pub(super) fn new(config: &Config, resources: &Resources, mut sink: K) -> Result<Self, ConfigError> {
        let engine = K::Stage::engine(config, resources)?;
        let core = Core::new(config, resources)?;
        let mut held = Held::new(resources.budget.clone());
        held.update(|left| sink.held_bytes(left));
        Ok(Self { core, engine, sink, held })
    }

    /// Processes all frames of a source, then ends all open flows.
    ///
    /// Stops early, between batches, if the stop handle of the options is set or the sink returns
    /// [`ControlFlow::Break`] from [`Sink::batch_ended`]. The warnings of the source list everything that it could not
    /// read.
    ///
    /// # Errors
    ///
    /// Returns the error of a source that ends the run according to the [error policy](super::ErrorPolicy) of the
    /// options. All flows so far are ended before it is returned.
    pub fn run(
        &mut self,
        source: &mut (impl Source + ?Sized),
        options: &RunOptions,
    ) -> Result<Summary, Error> {
        let (outcome, queues) = self.drive(source, options);
        self.finish();
        outcome.into_summary(PipelineStats { queues, ..self.stats() })
    }

    /// Processes all frames of a source, and leaves the flows open, so that the next source continues them: files of a
    /// capture that was rotated, or parts of an input in a loop of the caller. Otherwise like [`run`](Self::run). Call
    /// [`finish`](Self::finish) after the last one.
    ///
    /// The counters in the summary are those of the pipeline since it was built. Indexes of interfaces are those of
    /// each source.
    ///
    /// ```
    /// use flowgauge::{FileSource, Pipeline, RunOptions};
    ///
    /// let mut pipeline = Pipeline::builder().build(())?;
    /// for path in ["examples/data/web.pcap", "examples/data/dns.pcap"] {
    ///     let summary = pipeline.feed(&mut FileSource::open(path)?, &RunOptions::default())?;
    ///     println!("{path}: {} frames so far", summary.stats.frame_count);
    /// }
    /// pipeline.finish();
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`run`](Self::run), except that the flows stay open.
    pub fn feed(
        &mut self,
        source: &mut (impl Source + ?Sized),
        options: &RunOptions,
    ) -> Result<Summary, Error> {
        let (outcome, queues) = self.drive(source, options);
        outcome.into_summary(PipelineStats { queues, ..self.stats() })
    }

    /// Processes the frames of a source on one or two threads.
    fn drive(&mut self, source: &mut (impl Source + ?Sized), options: &RunOptions) -> (Outcome, QueueStats) {
        if options.is_ahead() {
            let (dispatcher, budget) = (self.core.begin_ahead(), self.budget().clone());
            match ahead::drive(dispatcher, budget, source, options, |block| self.lent(block, 0)) {
                Ok((outcome, jumps, queues)) => {
                    self.core.end_ahead(jumps);
                    return (outcome, queues);
                }
                // The system refuses another thread, and nothing was read.
                Err(jumps) => self.core.end_ahead(jumps),
            }
        }
        let mut intake = Direct { pipeline: self, batch: FrameBatch::new() };
        (runner::drive(source, options, &mut intake), QueueStats::default())
    }

    /// Runs like [`run`](Self::run), but frame by frame, for programs that write frames of chosen flows: calls `each`
    /// with the sink, a frame, and the interfaces of the source, after the sink has received the content of the frame.
    /// Slower than [`run`](Self::run).
    ///
    /// Deferred frames are received later: a fragment, unless
    /// [`FragmentHandling::AsTheyCome`](super::FragmentHandling::AsTheyCome) is set, and a frame whose time is far
    /// ahead, unless [`Builder::time_check`](super::Builder::time_check) is off.
    ///
    /// ```
    /// use flowgauge::source::PcapngWriter;
    /// use flowgauge::{FileSource, Flow, Flows, FragmentHandling, Packet, Pipeline, RunOptions, Sink};
    ///
    /// /// Marks the packets of a flow behind its tenth.
    /// #[derive(Default)]
    /// struct Late { is_chosen: bool }
    ///
    /// impl Sink for Late {
    ///     type State = ();
    ///     type Stage = Flows;
    ///
    ///     fn packet(&mut self, flow: &mut Flow<'_, ()>, _: &Packet<'_>) {
    ///         self.is_chosen = flow.view.packet_count() > 10;
    ///     }
    /// }
    ///
    /// let builder = Pipeline::builder().fragments(FragmentHandling::AsTheyCome).time_check(false);
    /// let mut writer = PcapngWriter::new(Vec::new())?;
    /// let mut written_count = 0;
    /// let mut source = FileSource::open("examples/data/web.pcap")?;
    /// builder.build(Late::default())?.run_frames(&mut source, &RunOptions::default(), |sink, frame, interfaces| {
    ///     if std::mem::take(&mut sink.is_chosen) && writer.write(frame, interfaces).is_ok() {
    ///         written_count += 1;
    ///     }
    /// })?;
    /// assert!((1..1286).contains(&written_count));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`run`](Self::run).
    pub fn run_frames(
        &mut self,
        source: &mut (impl Source + ?Sized),
        options: &RunOptions,
        each: impl FnMut(&mut K, &Frame<'_>, &[Interface]),
    ) -> Result<Summary, Error> {
        let mut intake = ByFrame { pipeline: self, batch: FrameBatch::new(), each };
        let outcome = runner::drive(source, options, &mut intake);
        self.finish();
        outcome.into_summary(self.stats())
    }

    /// Processes the frames of a batch. The last frame waits for the next batch if its time is far ahead of all earlier
    /// ones ([`TIME_JUMP_MAX`](super::TIME_JUMP_MAX)). Returns the result of [`Sink::batch_ended`].
    pub fn batch(&mut self, batch: &FrameBatch) -> ControlFlow<()> {
        let (core, mut observer) = self.parts();
        core.batch(batch, &mut observer);
        self.sink.batch_ended()
    }

    /// Processes those frames of a block that are assigned to the pipeline with the index `number`.
    pub(super) fn lent(&mut self, lent: &Lent, number: usize) -> ControlFlow<()> {
        let Block { batch, dispatch, idle, .. } = lent.block();
        let wants = if batch.is_empty() {
            ControlFlow::Continue(())
        } else {
            let (core, mut observer) = self.parts();
            core.dispatched(batch, dispatch, number, &mut observer);
            self.sink.batch_ended()
        };
        let Some(now) = idle else { return wants };
        self.advance(*now);
        let wants_more = self.sink.batch_ended();
        if wants.is_break() { wants } else { wants_more }
    }

    pub(super) fn restrict(&mut self, share: Share) {
        self.core.restrict(share);
    }

    /// Processes one frame. Calling [`batch`](Self::batch) for many frames is faster.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        let (core, mut observer) = self.parts();
        core.frame(frame, &mut observer);
    }

    /// Ends datagrams, flows and holes in streams that are due at the time `now`, for live capture while no packets
    /// arrive. Processes a deferred frame first.
    pub fn advance(&mut self, now: Timestamp) {
        let (core, mut observer) = self.parts();
        core.advance(now, &mut observer);
    }

    /// Ends all datagrams, streams, sessions and flows, in the order in which the flows began. The pipeline can be used
    /// again afterwards.
    pub fn finish(&mut self) {
        let (core, mut observer) = self.parts();
        core.finish(&mut observer);
    }

    /// Ends one open flow as [`finish`](Self::finish) would. Returns whether there was one; call it until it returns
    /// `false`. For callers that store the output of a sink, and must not store the output for all flows at once.
    pub fn end_next(&mut self) -> bool {
        let (core, mut observer) = self.parts();
        core.end_next(&mut observer)
    }

    /// Ends a flow, its streams and its session at once. Returns whether the flow was open.
    pub fn remove(&mut self, id: FlowId) -> bool {
        let (core, mut observer) = self.parts();
        core.tracker_mut().remove(id, &mut observer)
    }

    #[inline(always)]
    fn parts(&mut self) -> (&mut Core<SlotOf<K>>, StageObserver<'_, K>) {
        (&mut self.core, StageObserver::new(&mut self.engine, &mut self.sink, &mut self.held))
    }

    /// Returns the sink of the pipeline.
    #[must_use]
    pub const fn sink(&self) -> &K {
        &self.sink
    }

    /// Returns the sink of the pipeline for modification.
    pub const fn sink_mut(&mut self) -> &mut K {
        &mut self.sink
    }

    /// Returns the sink and drops the rest of the pipeline. Call [`finish`](Self::finish) first, unless
    /// [`run`](Self::run) has ended the flows.
    #[must_use]
    pub fn into_sink(self) -> K {
        self.sink
    }

    /// Returns the current counters of all layers. Copies the counts of skipped frames for each reason.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        let mut stats = self.core.stats();
        K::Stage::count(&self.engine, &mut stats);
        stats
    }

    /// Returns the number of flows that are currently open.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.core.tracker().len()
    }

    /// Iterates over the open flows and the caller's state of each flow, in no particular order.
    pub fn flows(&self) -> impl Iterator<Item = (FlowView<'_>, &K::State)> {
        self.core.tracker().iter().map(|(view, slot)| (named::<K>(view, slot), &slot.state))
    }

    /// Iterates over the open flows among the next `len` entries of the flow table, and moves `scan` behind them, so that
    /// a long iteration can be done in steps between batches. Returns `None` at the end.
    pub fn scan<'a>(
        &'a self,
        scan: &mut FlowScan,
        len: u32,
    ) -> Option<impl Iterator<Item = (FlowView<'a>, &'a K::State)> + use<'a, K>> {
        let flows = self.core.tracker().scan(scan, len)?;
        Some(flows.map(|(view, slot)| (named::<K>(view, slot), &slot.state)))
    }

    /// Returns the identifier of the open flow with a key, in constant time.
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> Option<FlowId> {
        self.core.tracker().find(key)
    }

    /// Returns an open flow and the caller's state of the flow; `None` once the flow has ended.
    #[must_use]
    pub fn flow(&self, id: FlowId) -> Option<(FlowView<'_>, &K::State)> {
        let (view, slot) = self.core.tracker().get(id)?;
        Some((named::<K>(view, slot), &slot.state))
    }

    /// Returns the caller's state of an open flow for modification.
    pub fn state_mut(&mut self, id: FlowId) -> Option<&mut K::State> {
        let (_, slot) = self.core.tracker_mut().get_mut(id)?;
        Some(&mut slot.state)
    }

    /// Returns the highest time that the pipeline has seen.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.core.tracker().now()
    }

    /// Returns the next time at which [`advance`](Self::advance) would end a flow; `None` if no open flow can time out.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.core.tracker().next_deadline()
    }

    /// Returns the budget that accounts for the memory of all layers.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        self.core.tracker().budget()
    }

    /// Returns the number of streams that hold octets after a hole or for comparison. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn held_stream_count(&self) -> usize {
        K::Stage::held_stream_count(&self.engine)
    }

    /// Panics unless the internal account of each layer is consistent, and all memory held by streams and sessions
    /// belongs to open flows. For tests and fuzzers; takes time linear in the stored state.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.core.check_invariants();
        let flows = self.core.tracker().iter().map(|(_, slot)| &slot.stage);
        K::Stage::check_invariants(&self.engine, flows);
    }
}

fn named<'t, K: Sink>(view: FlowView<'t>, slot: &SlotOf<K>) -> FlowView<'t> {
    view.with_application(K::Stage::application(&slot.stage))
}

impl<K: Sink + std::fmt::Debug> std::fmt::Debug for Pipeline<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("flow_count", &self.flow_count())
            .field("stats", &self.stats())
            .field("sink", &self.sink)
            .finish_non_exhaustive()
    }
}

/// Runs a pipeline on the thread that reads the source.
pub(super) struct Direct<'a, K: Sink> {
    pub(super) pipeline: &'a mut Pipeline<K>,
    pub(super) batch: FrameBatch,
}

impl<K: Sink> Intake for Direct<'_, K> {
    fn buffer(&mut self) -> &mut FrameBatch {
        &mut self.batch
    }

    fn process(&mut self, next: Next, _: &[Interface]) -> ControlFlow<()> {
        match next {
            Next::Frames => self.pipeline.batch(&self.batch),
            Next::Idle(now) => {
                self.pipeline.advance(now);
                self.pipeline.sink.batch_ended()
            }
            Next::End(_) => ControlFlow::Break(()),
        }
    }

    fn state(&self) -> IntakeState {
        self.pipeline.core.state()
    }
}

/// Runs a pipeline on the thread that reads the source, and calls a function after each frame.
struct ByFrame<'a, K: Sink, F> {
    pipeline: &'a mut Pipeline<K>,
    batch: FrameBatch,
    each: F,
}

impl<K: Sink, F: FnMut(&mut K, &Frame<'_>, &[Interface])> Intake for ByFrame<'_, K, F> {
    fn buffer(&mut self) -> &mut FrameBatch {
        &mut self.batch
    }

    fn process(&mut self, next: Next, interfaces: &[Interface]) -> ControlFlow<()> {
        match next {
            Next::Frames => {
                for frame in self.batch.iter() {
                    self.pipeline.frame(&frame);
                    (self.each)(&mut self.pipeline.sink, &frame, interfaces);
                }
            }
            Next::Idle(now) => self.pipeline.advance(now),
            Next::End(_) => return ControlFlow::Break(()),
        }
        self.pipeline.sink.batch_ended()
    }

    fn state(&self) -> IntakeState {
        self.pipeline.core.state()
    }
}
