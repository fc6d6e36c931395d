//! Files of flow records.

use std::io;
use std::ops::ControlFlow;

use flowgauge::export::RecordWriter;
use flowgauge::{EndReason, FlowRecord, FlowView, Timestamp};

use super::part::{Lines, Part, Series};
use crate::console::Failure;
use crate::rows::Rows;
use crate::sinks::Destination;

type Writer = Box<dyn RecordWriter<FlowRecord> + Send>;

/// Creates the writer of a format.
pub(super) type Create = Box<dyn Fn(Lines) -> Result<Writer, Failure> + Send>;

/// A series of files of flow records.
pub(crate) struct RecordFiles {
    series: Series,
    create: Create,
    /// True for formats of which every line can be read alone, so that a file is kept if the rest cannot be written.
    is_text: bool,
    current: Option<(Part, Writer)>,
    record_count: u64,
    now: Timestamp,
}

impl RecordFiles {
    pub(super) const fn new(series: Series, create: Create, is_text: bool) -> Self {
        Self { series, create, is_text, current: None, record_count: 0, now: Timestamp::ZERO }
    }

    fn write(&mut self, record: &FlowRecord) -> Result<(), Failure> {
        self.advance(record.end)?;
        if self.current.is_none() {
            let (part, lines) = self.series.create(self.now)?;
            self.current = Some((part, (self.create)(lines)?));
        }
        let Some((part, writer)) = &mut self.current else { return Ok(()) };
        writer.write(record).map_err(|error| part.failure(&error))?;
        self.record_count += 1;
        Ok(())
    }

    /// Sets the time, and completes the current file if it is over.
    fn advance(&mut self, time: Timestamp) -> Result<(), Failure> {
        self.now = self.now.max(time);
        match &self.current {
            Some((part, _)) if part.is_over(self.now) => self.complete(),
            _ => Ok(()),
        }
    }

    fn complete(&mut self) -> Result<(), Failure> {
        let Some((part, writer)) = self.current.take() else { return Ok(()) };
        let written = writer.finish().map_err(|error| part.failure(&error));
        match written {
            Err(failure) if !self.is_text => Err(failure),
            written => part.complete(written.map(drop)),
        }
    }

    /// Completes the last file, which is empty but for a header if there were no records.
    fn finish(mut self) -> Result<u64, Failure> {
        if self.current.is_none() && self.record_count == 0 {
            let (part, lines) = self.series.create(self.now)?;
            self.current = Some((part, (self.create)(lines)?));
        }
        self.complete()?;
        Ok(self.record_count)
    }
}

/// Several destinations of flow records.
pub(crate) struct Several {
    rows: Option<Rows>,
    files: Vec<RecordFiles>,
    is_stream: bool,
    outcome: Result<(), Failure>,
}

impl Several {
    pub(super) const fn new(rows: Option<Rows>, files: Vec<RecordFiles>, is_stream: bool) -> Self {
        Self { rows, files, is_stream, outcome: Ok(()) }
    }

    /// Completes all destinations, even after a failed write. Returns the number of records.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        let Self { rows, files, mut outcome, .. } = self;
        let mut record_count = 0;
        let finished = rows.into_iter().map(Rows::finish).collect::<Vec<_>>();
        for result in finished.into_iter().chain(files.into_iter().map(RecordFiles::finish)) {
            match result {
                Ok(count) => record_count = record_count.max(count),
                Err(failure) => outcome = outcome.and(Err(failure)),
            }
        }
        outcome.map(|()| record_count)
    }
}

impl Destination for Several {
    fn record(&mut self, view: &FlowView<'_>, reason: EndReason) {
        if self.outcome.is_err() || self.rows.is_none() && self.files.is_empty() {
            return;
        }
        let record = view.record(reason);
        if let Some(rows) = &mut self.rows {
            rows.write(&record);
        }
        self.outcome = self.files.iter_mut().try_for_each(|files| files.write(&record));
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.is_stream && self.outcome.is_ok() {
            self.outcome = self.files.iter_mut().try_for_each(RecordFiles::flush);
        }
        if self.outcome.is_err() {
            return ControlFlow::Break(());
        }
        self.rows.as_mut().map_or(ControlFlow::Continue(()), Rows::flush_stream)
    }
}

impl RecordFiles {
    fn flush(&mut self) -> Result<(), Failure> {
        let Some((part, writer)) = &mut self.current else { return Ok(()) };
        let flushed: io::Result<()> = writer.flush();
        flushed.map_err(|error| part.failure(&error))
    }
}
