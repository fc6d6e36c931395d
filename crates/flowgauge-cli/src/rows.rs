//! Rows of flow records in an output format.

use std::io;
use std::ops::ControlFlow;

use flowgauge::FlowRecord;

use crate::console::Failure;
use crate::formats::Writer;

/// Writes flow records as rows, until a write fails.
pub(crate) struct Rows {
    writer: Writer,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    record_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
}

impl Rows {
    pub(crate) const fn new(writer: Writer, is_stream: bool) -> Self {
        Self { writer, is_stream, record_count: 0, flushed_count: 0, outcome: Ok(()) }
    }

    /// Writes the row of a flow record; does nothing after a failed write.
    #[inline]
    pub(crate) fn write(&mut self, record: &FlowRecord) {
        if self.outcome.is_ok() {
            self.record_count += 1;
            self.outcome = self.writer.write(record);
        }
    }

    /// Writes the row of a flow record if the caller permits its length in octets.
    pub(crate) fn write_if(&mut self, record: &FlowRecord, permits: impl FnOnce(usize) -> bool) {
        if self.outcome.is_ok() {
            let mut permits = Some(permits);
            let mut is_permitted = |len| permits.take().is_some_and(|permits| permits(len));
            let outcome = self.writer.write_if(record, &mut is_permitted);
            self.record_count += u64::from(outcome.as_ref().is_ok_and(|is_written| *is_written));
            self.outcome = outcome.map(drop);
        }
    }

    /// Returns the length in octets of the row of a flow record, without writing it.
    pub(crate) fn len_of(&mut self, record: &FlowRecord) -> usize {
        let mut known = 0;
        self.write_if(record, |len| {
            known = len;
            false
        });
        known
    }

    /// Flushes the rows written so far if frames arrive in real time. Returns [`ControlFlow::Break`] after a failed
    /// write.
    pub(crate) fn flush_stream(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.record_count > self.flushed_count {
            self.flushed_count = self.record_count;
            self.outcome = self.writer.flush();
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Writes a row for each record of an iterator.
    pub(crate) fn write_all(&mut self, records: impl Iterator<Item = FlowRecord>) {
        for record in records {
            self.write(&record);
            if self.outcome.is_err() {
                break;
            }
        }
    }

    /// Completes the output. Returns the number of rows written.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        self.outcome.map_err(|error| self.writer.failure(&error))?;
        self.writer.finish()?;
        Ok(self.record_count)
    }
}
