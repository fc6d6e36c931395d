//! A sink of flow records whose receiver is not a type parameter.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use super::sink::{Sink, Stage};
use super::stage::Flows;
use crate::base::EndReason;
use crate::filter::Filter;
use crate::tracker::{Flow, FlowView, Interest};

/// Where a [`RecordSink`] passes flow records.
pub trait RecordReceiver: Send {
    /// Takes a flow that ended, or whose active timeout expired. [`FlowView::record`] creates its record.
    fn record(&mut self, flow: &FlowView<'_>, reason: EndReason);

    /// Called when a flow has ended, after its last record.
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason) {
        let _ = (flow, reason);
    }

    /// Returns the memory in bytes that the receiver has allocated, as [`Sink::held_bytes`].
    fn held_bytes(&mut self) -> u64 {
        0
    }

    /// Writes what is held back. Returns [`ControlFlow::Break`] if a write failed.
    fn flush(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called after a batch of frames, as [`Sink::batch_ended`].
    fn batch_ended(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<R: RecordReceiver + ?Sized> RecordReceiver for &mut R {
    fn record(&mut self, flow: &FlowView<'_>, reason: EndReason) {
        (**self).record(flow, reason);
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason) {
        (**self).ended(flow, reason);
    }

    fn held_bytes(&mut self) -> u64 {
        (**self).held_bytes()
    }

    fn flush(&mut self) -> ControlFlow<()> {
        (**self).flush()
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        (**self).batch_ended()
    }
}

/// Passes flow records to a receiver, through one call through a pointer for each record.
///
/// A pipeline is compiled for each type of sink ([`boxed`](super::boxed)). All receivers of records in a program share one for
/// each stage, and their flows have no state. The stage `G` determines whether a record contains the application protocol.
/// [`Builder::run_records`](super::Builder::run_records) and [`Builder::run_parts`](super::Builder::run_parts) use it too.
///
/// ```
/// use flowgauge::pipeline::{RecordReceiver, RecordSink};
/// use flowgauge::{EndReason, FileSource, FlowView, Flows, Pipeline, RunOptions};
///
/// #[derive(Default)]
/// struct Octets { count: u64 }
///
/// impl RecordReceiver for Octets {
///     fn record(&mut self, flow: &FlowView<'_>, reason: EndReason) {
///         self.count += flow.record(reason).octet_count();
///     }
/// }
///
/// let mut octets = Octets::default();
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// let sink = RecordSink::<Flows>::new(&mut octets);
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// assert!(octets.count > 1_000_000);
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub struct RecordSink<'a, G = Flows> {
    receiver: Box<dyn RecordReceiver + 'a>,
    filter: Option<&'a Filter>,
    stage: PhantomData<fn() -> G>,
}

impl<'a, G: Stage> RecordSink<'a, G> {
    /// Creates a sink that passes records to a receiver, which may be borrowed. Allocates once.
    #[must_use]
    pub fn new(receiver: impl RecordReceiver + 'a) -> Self {
        Self { receiver: Box::new(receiver), filter: None, stage: PhantomData }
    }

    /// Sets a filter on complete flows, besides that of the pipeline: the receiver does not get the records of others.
    #[must_use]
    pub fn with_filter(self, filter: Option<&'a Filter>) -> Self {
        Self { filter, ..self }
    }

    /// Writes what the receiver holds back. Returns [`ControlFlow::Break`] if a write failed.
    pub fn flush(&mut self) -> ControlFlow<()> {
        self.receiver.flush()
    }
}

impl<G: Stage> Sink for RecordSink<'_, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    #[inline]
    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        if self.filter.is_none_or(|filter| filter.matches_flow(&flow.view)) {
            self.receiver.record(&flow.view, reason);
        }
    }

    #[inline]
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.receiver.ended(flow, reason);
    }

    fn held_bytes(&mut self, _: u64) -> u64 {
        self.receiver.held_bytes()
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.receiver.batch_ended()
    }
}

impl<G> fmt::Debug for RecordSink<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordSink").finish_non_exhaustive()
    }
}
