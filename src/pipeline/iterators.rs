//! Iterators over what a source contains.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::marker::PhantomData;

use super::builder::Builder;
use super::error::Error;
use super::pipeline::{Direct, Pipeline};
use super::runner::{self, Outcome, RunEnd, RunOptions};
use super::sink::{Sink, Stage};
use super::stage::{Flows, Sessions};
use super::stats::PipelineStats;
use crate::base::{ConfigError, EndReason, FrameBatch};
use crate::record::FlowRecord;
use crate::session::{MessageMeta, Protocols};
use crate::source::Source;
use crate::tracker::{Flow, FlowView, Interest};

/// A sink that stores the items of one batch of frames.
trait Queue: Sink {
    type Item;

    fn items(&mut self) -> &mut VecDeque<Self::Item>;
}

/// A pipeline that reads its source when the next item is wanted.
struct Pull<S, K: Sink> {
    pipeline: Pipeline<K>,
    /// The source of frames; `None` once it has ended.
    source: Option<S>,
    batch: FrameBatch,
    outcome: Outcome,
    /// Reason for the end; `None` before it, and after an error that ended the source.
    end: Option<RunEnd>,
}

impl<S: Source, K: Queue> Pull<S, K> {
    fn new(builder: &Builder, sink: K, source: S) -> Result<Self, ConfigError> {
        let (batch, outcome) = (FrameBatch::new(), Outcome::new());
        Ok(Self { pipeline: builder.build(sink)?, source: Some(source), batch, outcome, end: None })
    }

    /// Reads the next batch of the source and stores its items.
    fn read(&mut self, options: &RunOptions) {
        let Some(source) = &mut self.source else { return };
        let batch = std::mem::take(&mut self.batch);
        let mut intake = Direct { pipeline: &mut self.pipeline, batch };
        let flow = runner::step(source, options, &mut intake, &mut self.outcome);
        self.batch = intake.batch;
        if flow.is_break() {
            self.source = None;
            self.end = self.outcome.end();
        }
    }

    fn next(&mut self, options: &RunOptions) -> Option<Result<K::Item, Error>> {
        loop {
            if let Some(item) = self.pipeline.sink_mut().items().pop_front() {
                return Some(Ok(item));
            }
            // A step stores at most one error, which follows the items of the frames before it.
            if let Some(error) = self.outcome.take_error() {
                return Some(Err(error.into()));
            }
            if self.source.is_some() {
                self.read(options);
            } else if !self.pipeline.end_next() && self.pipeline.sink_mut().items().is_empty() {
                return self.outcome.take_fatal().map(|error| Err(error.into()));
            }
        }
    }
}

/// Sink that stores records.
struct RecordQueue<G> {
    records: VecDeque<FlowRecord>,
    stage: PhantomData<fn() -> G>,
}

impl<G> Default for RecordQueue<G> {
    fn default() -> Self {
        Self { records: VecDeque::new(), stage: PhantomData }
    }
}

impl<G: Stage> Sink for RecordQueue<G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        self.records.push_back(flow.view.record(reason));
    }
}

impl<G: Stage> Queue for RecordQueue<G> {
    type Item = FlowRecord;

    fn items(&mut self) -> &mut VecDeque<FlowRecord> {
        &mut self.records
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
    pull: Pull<S, RecordQueue<G>>,
    options: RunOptions,
}

impl<S: Source, G: Stage> RecordIter<S, G> {
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
        let Self { builder, pull, options } = self;
        let Pull { pipeline, source, batch, outcome, end } = pull;
        // Its memory is returned to the budget first.
        drop(pipeline);
        let pipeline = builder.build(RecordQueue::default())?;
        Ok(RecordIter { builder, pull: Pull { pipeline, source, batch, outcome, end }, options })
    }

    /// Returns the reason for which the source ended, which tells a complete input from a stopped one; `None` before the
    /// end, and if an error ended it.
    #[must_use]
    pub const fn end(&self) -> Option<RunEnd> {
        self.pull.end
    }

    /// Returns the current counters of all layers.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        self.pull.pipeline.stats()
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
        self.pull.next(&self.options)
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
        let pull = Pull::new(self, RecordQueue::default(), source)?;
        Ok(RecordIter { builder: self.clone(), pull, options: RunOptions::default() })
    }

    /// Iterates over what a function copies of the messages of a source.
    ///
    /// ```
    /// # #[cfg(feature = "protocols")] {
    /// use flowgauge::{FileSource, Message, Pipeline, Standard, protocols::ssh};
    ///
    /// let source = FileSource::open("examples/data/ssh.pcap")?;
    /// let names = Pipeline::builder().messages::<Standard, _, _, _>(source, |flow, _, message| match message {
    ///     Message::Ssh(ssh::Message::Identification(name)) => Some((*flow.key(), name.software_version.to_string())),
    ///     _ => None,
    /// })?;
    /// for name in names {
    ///     let (key, software) = name?;
    ///     println!("{key} {software}");
    /// }
    /// # }
    /// # Ok::<(), flowgauge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`build`](Self::build). An error of the source is the last item.
    pub fn messages<P, T, S, F>(
        &self,
        source: S,
        select: F,
    ) -> Result<impl FusedIterator<Item = Result<T, Error>> + use<P, T, S, F>, ConfigError>
    where
        P: Protocols,
        S: Source,
        F: for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>) -> Option<T>,
    {
        let queue = MessageQueue { select, messages: VecDeque::new(), protocols: PhantomData::<fn() -> P> };
        let (mut pull, options) = (Pull::new(self, queue, source)?, RunOptions::default());
        Ok(std::iter::from_fn(move || pull.next(&options)).fuse())
    }
}

/// Sink that stores what a function copies of messages.
struct MessageQueue<P, T, F> {
    select: F,
    messages: VecDeque<T>,
    protocols: PhantomData<fn() -> P>,
}

impl<P, T, F> Sink for MessageQueue<P, T, F>
where
    P: Protocols,
    F: for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>) -> Option<T>,
{
    type State = ();
    type Stage = Sessions<P>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, message: &P::Message<'_>) {
        self.messages.extend((self.select)(&flow.view, meta, message));
    }
}

impl<P, T, F> Queue for MessageQueue<P, T, F>
where
    P: Protocols,
    F: for<'m> FnMut(&FlowView<'_>, &MessageMeta, &P::Message<'m>) -> Option<T>,
{
    type Item = T;

    fn items(&mut self) -> &mut VecDeque<T> {
        &mut self.messages
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
