//! Sinks that call closures, and the iterator over flow records.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::builder::Builder;
use super::error::Error;
use super::pipeline::{Direct, Pipeline};
use super::runner::{self, Outcome, RunOptions};
use super::sink::{Sink, Stage};
use super::stage::{Flows, Sessions};
use super::stats::PipelineStats;
use crate::base::{ConfigError, EndReason, FrameBatch};
use crate::record::FlowRecord;
use crate::session::{MessageMeta, Protocols};
use crate::source::Source;
use crate::tracker::{Flow, FlowView, Interest};

/// A sink that calls a function with the record of each flow that ends, and at each active timeout.
///
/// ```
/// use flowgauge::{FileSource, Pipeline, Records, RunOptions};
///
/// let mut octet_count = 0;
/// let sink = Records::new(|record| octet_count += record.octet_count());
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// assert!(octet_count > 1_000_000);
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub struct Records<F, G = Flows> {
    call: F,
    stage: PhantomData<fn() -> G>,
}

impl<F: FnMut(FlowRecord)> Records<F> {
    /// Creates a sink that calls the function `call` with each record.
    #[must_use]
    pub const fn new(call: F) -> Self {
        Self { call, stage: PhantomData }
    }

    /// Changes the stage of the sink: with [`Sessions`], records name the application protocol.
    #[must_use]
    pub fn with_stage<G: Stage>(self) -> Records<F, G> {
        Records { call: self.call, stage: PhantomData }
    }
}

impl<F: FnMut(FlowRecord), G: Stage> Sink for Records<F, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        (self.call)(flow.view.record(reason));
    }
}

impl<F, G> std::fmt::Debug for Records<F, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

/// A sink that calls a function with each message of an application protocol; created by [`on_message`].
pub struct OnMessage<P, F> {
    call: F,
    protocols: PhantomData<fn() -> P>,
}

/// Returns a sink that calls a function with each message of a set of parsers.
///
/// ```
/// # #[cfg(feature = "protocols")] {
/// use flowgauge::{FileSource, Pipeline, RunOptions, Standard, on_message};
///
/// let sink = on_message::<Standard>(|flow, meta, message| {
///     println!("{} {} {message:?}", flow.key(), meta.protocol.name());
/// });
/// let mut source = FileSource::open("examples/data/dns.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// # }
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub const fn on_message<P: Protocols>(
    call: impl for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>),
) -> OnMessage<P, impl for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>)> {
    OnMessage { call, protocols: PhantomData }
}

impl<P, F> Sink for OnMessage<P, F>
where
    P: Protocols,
    F: for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>),
{
    type State = ();
    type Stage = Sessions<P>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &P::Message<'_>) {
        (self.call)(&flow.view, meta, message);
    }
}

impl<P, F> std::fmt::Debug for OnMessage<P, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnMessage").finish_non_exhaustive()
    }
}

/// Sink that stores the records of one batch of frames.
struct Buffer<G> {
    records: VecDeque<FlowRecord>,
    stage: PhantomData<fn() -> G>,
}

impl<G> Default for Buffer<G> {
    fn default() -> Self {
        Self { records: VecDeque::new(), stage: PhantomData }
    }
}

impl<G: Stage> Sink for Buffer<G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        self.records.push_back(flow.view.record(reason));
    }
}

/// Iterator over the records of a source; created by [`records`] and [`Builder::records`](super::Builder::records).
///
/// With the stage [`Sessions`], records name the application protocol:
///
/// ```
/// # #[cfg(feature = "protocols")] {
/// use flowgauge::{FileSource, Pipeline, Sessions, Standard};
///
/// let source = FileSource::open("examples/data/web.pcap")?;
/// let records = Pipeline::builder().records(source)?.with_stage::<Sessions<Standard>>()?;
/// let names: Vec<_> = records.filter_map(|record| Some(record.ok()?.application?.name)).collect();
/// assert!(names.iter().any(|name| name == "tls"));
/// # }
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub struct RecordIter<S, G: Stage = Flows> {
    builder: Builder,
    pipeline: Pipeline<Buffer<G>>,
    /// The source of frames; `None` once it has ended.
    source: Option<S>,
    batch: FrameBatch,
    options: RunOptions,
    outcome: Outcome,
}

impl<S: Source, G: Stage> RecordIter<S, G> {
    fn new(builder: Builder, source: S, options: RunOptions) -> Result<Self, ConfigError> {
        let pipeline = builder.build(Buffer::default())?;
        let (batch, outcome) = (FrameBatch::new(), Outcome::new());
        Ok(Self { builder, pipeline, source: Some(source), batch, options, outcome })
    }

    /// Sets the stop handle, the error policy and the progress callback. With [`ErrorPolicy::Continue`], the errors of
    /// the source are items between the records, and the iterator continues after them; after 65,536 errors, the next one is
    /// the last item.
    ///
    /// [`ErrorPolicy::Continue`]: super::ErrorPolicy::Continue
    #[must_use]
    pub fn options(self, options: RunOptions) -> Self {
        Self { options, ..self }
    }

    /// Returns an iterator with another stage over the source, before the first record. The pipeline is built again.
    ///
    /// # Errors
    ///
    /// Same as [`Builder::build`].
    pub fn with_stage<H: Stage>(self) -> Result<RecordIter<S, H>, ConfigError> {
        let Self { builder, pipeline, source, options, .. } = self;
        // Its memory is returned to the budget first.
        drop(pipeline);
        let pipeline = builder.build(Buffer::default())?;
        let (batch, outcome) = (FrameBatch::new(), Outcome::new());
        Ok(RecordIter { builder, pipeline, source, batch, options, outcome })
    }

    /// Returns the current counters of all layers.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        self.pipeline.stats()
    }

    /// Reads the next batch of the source and stores its records.
    fn read(&mut self) {
        let Some(source) = &mut self.source else { return };
        let batch = std::mem::take(&mut self.batch);
        let mut intake = Direct { pipeline: &mut self.pipeline, batch };
        let flow = runner::step(source, &self.options, &mut intake, &mut self.outcome);
        self.batch = intake.batch;
        if flow.is_break() {
            self.source = None;
        }
    }
}

impl<S, G: Stage> std::fmt::Debug for RecordIter<S, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordIter").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<S: Source, G: Stage> Iterator for RecordIter<S, G> {
    type Item = Result<FlowRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.pipeline.sink_mut().records.pop_front() {
                return Some(Ok(record));
            }
            // A step stores at most one error, which follows the records of the frames before it.
            if let Some(error) = self.outcome.take_error() {
                return Some(Err(error.into()));
            }
            if self.source.is_some() {
                self.read();
            } else if !self.pipeline.end_next() && self.pipeline.sink().records.is_empty() {
                return self.outcome.take_fatal().map(|error| Err(error.into()));
            }
        }
    }
}

impl<S: Source, G: Stage> FusedIterator for RecordIter<S, G> {}

impl Builder {
    /// Iterates over the flow records of a source; see [`records`](super::records()).
    ///
    /// # Errors
    ///
    /// Same as [`build`](Self::build).
    pub fn records<S: Source>(&self, source: S) -> Result<RecordIter<S>, ConfigError> {
        RecordIter::new(self.clone(), source, RunOptions::default())
    }
}

/// Iterates over the flow records of a source, with the default settings. [`Builder::records`](super::Builder::records)
/// does the same with other settings.
///
/// A record is returned when its flow has ended. The iterator stores the records of one batch of frames; flows that are
/// open at the end of the source are ended one by one. An error of the source is the last item.
///
/// ```
/// for record in flowgauge::records(flowgauge::FileSource::open("examples/data/web.pcap")?) {
///     println!("{}", record?);
/// }
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[expect(clippy::expect_used, reason = "a test builds a pipeline with the default settings")]
pub fn records<S: Source>(source: S) -> RecordIter<S> {
    Builder::default().records(source).expect("the default settings are valid")
}
