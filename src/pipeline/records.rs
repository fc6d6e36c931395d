//! Sinks that call closures, and the iterator over flow records.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::builder::Builder;
use super::error::Error;
use super::pipeline::Pipeline;
use super::sink::{Sink, Stage};
use super::stage::{Flows, Sessions};
use super::stats::PipelineStats;
use crate::base::{ConfigError, EndReason, FrameBatch};
use crate::record::FlowRecord;
use crate::session::{MessageMeta, Protocols};
use crate::source::{Next, Source};
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
#[derive(Debug, Default)]
pub(super) struct Buffer(VecDeque<FlowRecord>);

impl Sink for Buffer {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        self.0.push_back(flow.view.record(reason));
    }
}

/// Iterator over the records of a source; created by [`records`] and [`Builder::records`](super::Builder::records).
#[derive(Debug)]
pub struct RecordIter<S> {
    pipeline: Pipeline<Buffer>,
    /// The source of frames; `None` once it has ended.
    source: Option<S>,
    batch: FrameBatch,
    error: Option<Error>,
}

impl<S: Source> RecordIter<S> {
    pub(super) const fn new(pipeline: Pipeline<Buffer>, source: S) -> Self {
        Self { pipeline, source: Some(source), batch: FrameBatch::new(), error: None }
    }

    /// Returns the current counters of all layers.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        self.pipeline.stats()
    }

    /// Reads the next batch of the source and stores its records; at the end of the source, ends the next open flow.
    fn read(&mut self) {
        let Some(source) = &mut self.source else { return };
        match source.next_batch(&mut self.batch) {
            Ok(Next::Frames) => {
                let _ = self.pipeline.batch(&self.batch);
            }
            Ok(Next::Idle(now)) => self.pipeline.advance(now),
            Ok(Next::End) => self.source = None,
            Err(error) => {
                // The batch contains the frames that were read before the error.
                let _ = self.pipeline.batch(&self.batch);
                (self.source, self.error) = (None, Some(error.into()));
            }
        }
    }
}

impl<S: Source> Iterator for RecordIter<S> {
    type Item = Result<FlowRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.pipeline.sink_mut().0.pop_front() {
                return Some(Ok(record));
            }
            if self.source.is_some() {
                self.read();
            } else if !self.pipeline.end_next() && self.pipeline.sink().0.is_empty() {
                return self.error.take().map(Err);
            }
        }
    }
}

impl<S: Source> FusedIterator for RecordIter<S> {}

impl Builder {
    /// Iterates over the flow records of a source; see [`records`](super::records()).
    ///
    /// # Errors
    ///
    /// Same as [`build`](Self::build).
    pub fn records<S: Source>(&self, source: S) -> Result<RecordIter<S>, ConfigError> {
        Ok(RecordIter::new(self.build(Buffer::default())?, source))
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
