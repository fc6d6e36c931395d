//! Sinks for flow records: rows as flows end, or the first rows of an order.

use std::io;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use flowgauge::{EndReason, Filter, Flow, FlowRecord, Interest, Sink, Stage};

use crate::choice::matches;
use crate::formats::Writer;
use crate::order::Sorted;

/// Writes flow records as rows, until a write fails.
pub(super) struct Rows {
    writer: Writer,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    record_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
}

impl Rows {
    pub(super) const fn new(writer: Writer, is_stream: bool) -> Self {
        Self { writer, is_stream, record_count: 0, flushed_count: 0, outcome: Ok(()) }
    }

    /// Writes the row of a flow record; does nothing after a failed write.
    #[inline]
    pub(super) fn write(&mut self, record: &FlowRecord) {
        if self.outcome.is_ok() {
            self.record_count += 1;
            self.outcome = self.writer.write(record);
        }
    }

    /// Flushes the rows written so far if frames arrive in real time. Returns [`ControlFlow::Break`] after a failed
    /// write.
    pub(super) fn flush_stream(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.record_count > self.flushed_count {
            self.flushed_count = self.record_count;
            self.outcome = self.writer.flush();
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Writes a row for each record of an iterator.
    pub(super) fn with_all(mut self, records: impl Iterator<Item = FlowRecord>) -> Self {
        for record in records {
            self.write(&record);
            if self.outcome.is_err() {
                break;
            }
        }
        self
    }

    /// Flushes all output. Returns the number of rows written.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.outcome?;
        self.writer.flush()?;
        Ok(self.record_count)
    }
}

/// Sink that writes a row for each flow record. The stage `G` determines whether the record contains the application
/// protocol.
pub(super) struct RowSink<'a, G> {
    rows: Rows,
    filter: Option<&'a Filter>,
    stage: PhantomData<fn() -> G>,
}

impl<'a, G> RowSink<'a, G> {
    pub(super) const fn new(rows: Rows, filter: Option<&'a Filter>) -> Self {
        Self { rows, filter, stage: PhantomData }
    }

    pub(super) fn into_rows(self) -> Rows {
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
pub(super) struct SortedSink<'a, G> {
    sorted: Sorted,
    filter: Option<&'a Filter>,
    stage: PhantomData<fn() -> G>,
}

impl<'a, G> SortedSink<'a, G> {
    pub(super) const fn new(sorted: Sorted, filter: Option<&'a Filter>) -> Self {
        Self { sorted, filter, stage: PhantomData }
    }

    pub(super) fn into_sorted(self) -> Sorted {
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
