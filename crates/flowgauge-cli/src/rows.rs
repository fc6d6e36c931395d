//! Rows of flow records in one or several outputs.

use std::ops::ControlFlow;

use flowgauge::pipeline::RecordReceiver;
use flowgauge::{EndReason, FlowRecord, FlowView};

use crate::console::Failure;
use flowgauge_condition::RowFilter;

/// Writes flow records one after another to a destination.
pub(crate) trait RowWriter {
    /// Writes a record if the caller permits the length of its row in octets. Returns whether it was written.
    fn write_if(
        &mut self,
        record: &FlowRecord,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, Failure>;

    /// Writes a record.
    fn write(&mut self, record: &FlowRecord) -> Result<(), Failure> {
        self.write_if(record, &mut |_| true).map(drop)
    }

    /// Writes what is held back.
    fn flush(&mut self) -> Result<(), Failure>;

    /// Completes the destination, or releases it after a failed write.
    fn finish(self: Box<Self>, has_failed: bool) -> Result<(), Failure>;
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Number of rows in each output.
    pub(crate) row_count: u64,
    /// Why no row met the conditions.
    pub(crate) unmatched: Option<String>,
}

impl Written {
    /// Returns what the summary states: nothing, or why no row met the conditions.
    pub(crate) fn note(&self) -> String {
        self.unmatched.iter().map(|reason| format!(" ({reason})")).collect()
    }
}

/// Writes flow records as rows to all outputs, until a write fails.
pub(crate) struct Rows {
    writers: Vec<Box<dyn RowWriter + Send>>,
    filter: RowFilter,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    /// True if there are outputs beside these, which continue if standard output is closed.
    has_others: bool,
    record_count: u64,
    flushed_count: u64,
    /// The first failure, and the index of its output.
    failure: Option<(usize, Failure)>,
    /// Why no row met conditions that were evaluated before.
    unmatched: Option<String>,
}

impl Rows {
    pub(crate) fn new(writer: impl RowWriter + Send + 'static, is_stream: bool) -> Self {
        Self::several(vec![Box::new(writer)], is_stream)
    }

    /// Creates rows that are written to several outputs.
    pub(crate) fn several(writers: Vec<Box<dyn RowWriter + Send>>, is_stream: bool) -> Self {
        Self {
            writers,
            filter: RowFilter::default(),
            has_others: false,
            is_stream,
            record_count: 0,
            flushed_count: 0,
            failure: None,
            unmatched: None,
        }
    }

    /// Restricts the rows to the records that meet conditions.
    pub(crate) fn selected(self, filter: RowFilter) -> Self {
        Self { filter, ..self }
    }

    /// States whether there are outputs beside these.
    pub(crate) fn beside(self, has_others: bool) -> Self {
        Self { has_others, ..self }
    }

    /// Writes the row of a flow record; does nothing after a failed write.
    #[inline]
    pub(crate) fn write(&mut self, record: &FlowRecord) {
        if self.failure.is_none() && self.filter.matches(record) {
            self.record_count += 1;
            self.each(|writer| writer.write(record));
        }
    }

    /// Writes the row of a flow record to all outputs if the caller permits the length in octets of the longest one.
    pub(crate) fn write_if(&mut self, record: &FlowRecord, permits: impl FnOnce(usize) -> bool) {
        if self.failure.is_some() || !self.filter.matches(record) {
            return;
        }
        if let [only] = self.writers.as_mut_slice() {
            let mut permits = Some(permits);
            let written =
                only.write_if(record, &mut |len| permits.take().is_some_and(|permits| permits(len)));
            match written {
                Ok(is_written) => self.record_count += u64::from(is_written),
                Err(failure) => self.failure = Some((0, failure)),
            }
            return;
        }
        let len = self.len_of_selected(record);
        if self.failure.is_none() && permits(len) {
            self.record_count += 1;
            self.each(|writer| writer.write(record));
        }
    }

    /// Returns the length in octets of the longest row of a flow record, without writing it; 0 if it is not selected.
    pub(crate) fn len_of(&mut self, record: &FlowRecord) -> usize {
        if self.failure.is_none() && self.filter.matches(record) { self.len_of_selected(record) } else { 0 }
    }

    fn len_of_selected(&mut self, record: &FlowRecord) -> usize {
        let mut longest = 0;
        self.each(|writer| {
            let is_permitted = &mut |len: usize| {
                longest = longest.max(len);
                false
            };
            writer.write_if(record, is_permitted).map(drop)
        });
        longest
    }

    /// Flushes the rows written so far if frames arrive in real time. Returns [`ControlFlow::Break`] after a failed
    /// write.
    pub(crate) fn flush_stream(&mut self) -> ControlFlow<()> {
        if self.failure.is_none() && self.is_stream && self.record_count > self.flushed_count {
            self.flushed_count = self.record_count;
            self.each(|writer| writer.flush());
        }
        if self.failure.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// States why no row met the conditions, which were evaluated before.
    pub(crate) fn unmatched_before(&mut self, reason: Option<String>) {
        self.unmatched = reason;
    }

    /// Writes a row for each record of an iterator.
    pub(crate) fn write_all(&mut self, records: impl Iterator<Item = FlowRecord>) {
        for record in records {
            self.write(&record);
            if self.failure.is_some() {
                break;
            }
        }
    }

    /// Calls a function with each output until one fails. If standard output is closed, other outputs continue without it.
    fn each(&mut self, mut call: impl FnMut(&mut (dyn RowWriter + Send)) -> Result<(), Failure>) {
        let mut index = 0;
        while let Some(writer) = self.writers.get_mut(index) {
            match call(&mut **writer) {
                Ok(()) => index += 1,
                Err(Failure::ClosedPipe) if self.has_others || self.writers.len() > 1 => {
                    drop(self.writers.remove(index));
                }
                Err(failure) => {
                    self.failure = Some((index, failure));
                    return;
                }
            }
        }
    }

    /// Completes all outputs, even if one failed.
    pub(crate) fn finish(self) -> Result<Written, Failure> {
        let unmatched = self.unmatched.or_else(|| self.filter.unmatched());
        let written = Written { row_count: self.record_count, unmatched };
        let failed = self.failure.as_ref().map(|(index, _)| *index);
        let mut outcome = self.failure.map_or(Ok(()), |(_, failure)| Err(failure));
        for (index, writer) in self.writers.into_iter().enumerate() {
            outcome = outcome.and(writer.finish(failed == Some(index)));
        }
        outcome.map(|()| written)
    }
}

impl RecordReceiver for Rows {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        if !self.writers.is_empty() {
            self.write(&view.record(reason));
        }
    }

    fn flush(&mut self) -> ControlFlow<()> {
        if self.failure.is_none() {
            self.each(|writer| writer.flush());
        }
        if self.failure.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.flush_stream()
    }
}
