//! Sinks for flow records: rows as flows end, or the first rows of an order.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use flowgauge::{EndReason, Filter, Flow, Interest, Sink, Stage};

use crate::choice::matches;
use crate::order::Sorted;
use crate::rows::Rows;

/// Sink that writes a row for each flow record. The stage `G` determines whether the record contains the application
/// protocol.
pub(crate) struct RowSink<'a, G> {
    rows: Rows,
    filter: Option<&'a Filter>,
    stage: PhantomData<fn() -> G>,
}

impl<'a, G> RowSink<'a, G> {
    pub(crate) const fn new(rows: Rows, filter: Option<&'a Filter>) -> Self {
        Self { rows, filter, stage: PhantomData }
    }

    pub(crate) fn into_rows(self) -> Rows {
        self.rows
    }
}

impl<G: Stage> Sink for RowSink<'_, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    #[inline]
    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        if self.filter.is_none_or(|filter| matches(filter, &flow.view)) {
            self.rows.write(&flow.view.record(reason));
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.rows.flush_stream()
    }
}

/// Sink that keeps the first flow records of an order.
pub(crate) struct SortedSink<'a, G> {
    sorted: Sorted,
    filter: Option<&'a Filter>,
    stage: PhantomData<fn() -> G>,
}

impl<'a, G> SortedSink<'a, G> {
    pub(crate) const fn new(sorted: Sorted, filter: Option<&'a Filter>) -> Self {
        Self { sorted, filter, stage: PhantomData }
    }

    pub(crate) fn into_sorted(self) -> Sorted {
        self.sorted
    }
}

impl<G: Stage> Sink for SortedSink<'_, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    #[inline]
    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        // For most flows that are not among the first, nothing else is read, so it need not be in cache.
        let Some(rank) = self.sorted.candidate(&flow.view) else { return };
        if self.filter.is_none_or(|filter| matches(filter, &flow.view)) {
            self.sorted.take(rank, flow.view.record(reason));
        }
    }
}
