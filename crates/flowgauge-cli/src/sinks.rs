//! The sink of commands that write flow records.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use flowgauge::pipeline::TransactionSink;
use flowgauge::transaction::Transaction;
use flowgauge::{EndReason, Filter, Flow, FlowView, Interest, Sessions, Sink, Stage, Standard};

use crate::checkpoint::Flush;
use crate::order::Sorted;
use crate::rows::Rows;

/// Where flow records go.
pub(crate) trait Destination {
    /// Takes the record of a flow.
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason);

    /// Returns the memory in bytes that the destination has allocated.
    fn held_len(&self) -> usize {
        0
    }

    /// Writes what is held back. Returns whether all records could be written.
    fn flush(&mut self) -> bool {
        true
    }

    /// Returns [`ControlFlow::Break`] if the run cannot continue. Called after each batch of frames.
    fn batch_ended(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Writes a row for each record.
impl Destination for Rows {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        if !self.is_empty() {
            self.write(&view.record(reason));
        }
    }

    fn flush(&mut self) -> bool {
        self.flush_all()
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.flush_stream()
    }
}

/// Keeps the first records of an order.
impl Destination for Sorted {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        self.add(view, || view.record(reason));
    }

    fn held_len(&self) -> usize {
        Self::held_len(self)
    }
}

/// Passes flow records to a destination, which is not a type parameter: each type of sink is a pipeline of its own in the
/// program. The stage `G` determines whether a record contains the application protocol.
pub(crate) struct RecordSink<'a, G> {
    destination: &'a mut (dyn Destination + Send),
    filter: Option<&'a Filter>,
    stage: PhantomData<fn() -> G>,
}

impl<'a, G> RecordSink<'a, G> {
    pub(crate) fn new(destination: &'a mut (dyn Destination + Send), filter: Option<&'a Filter>) -> Self {
        Self { destination, filter, stage: PhantomData }
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
            self.destination.record(&flow.view, reason);
        }
    }

    fn held_bytes(&mut self, _: u64) -> u64 {
        self.destination.held_len() as u64
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.destination.batch_ended()
    }
}

impl<G> Flush for RecordSink<'_, G> {
    fn flush(&mut self) -> bool {
        self.destination.flush()
    }
}

/// Records do not depend on transactions.
impl TransactionSink for RecordSink<'_, Sessions<Standard>> {
    fn transaction(&mut self, _: &FlowView<'_>, (): &mut (), _: &Transaction) {}
}
