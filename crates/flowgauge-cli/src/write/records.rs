//! Files of flow records.

use flowgauge::export::RecordWriter;
use flowgauge::{FlowRecord, Timestamp};

use super::part::{Lines, Part, Series};
use crate::console::Failure;
use crate::rows::RowWriter;

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
    has_records: bool,
    now: Timestamp,
}

impl RecordFiles {
    pub(super) const fn new(series: Series, create: Create, is_text: bool) -> Self {
        Self { series, create, is_text, current: None, has_records: false, now: Timestamp::ZERO }
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

    /// Returns the current file, which is created if there is none.
    fn open(&mut self) -> Result<&mut (Part, Writer), Failure> {
        let Self { series, create, current, now, .. } = self;
        match current {
            Some(current) => Ok(current),
            none => {
                let (part, lines) = series.create(*now)?;
                Ok(none.insert((part, create(lines)?)))
            }
        }
    }
}

impl RowWriter for RecordFiles {
    fn write_if(
        &mut self,
        record: &FlowRecord,
        permits: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool, Failure> {
        self.advance(record.end)?;
        let (part, writer) = self.open()?;
        let written = writer.write_if(record, permits);
        let is_written = written.map_err(|error| part.failure(&error))?;
        self.has_records |= is_written;
        Ok(is_written)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Some((part, writer)) = &mut self.current else { return Ok(()) };
        writer.flush().map_err(|error| part.failure(&error))
    }

    /// Completes the last file, which is empty but for a header if there were no records.
    fn finish(mut self: Box<Self>, _: bool) -> Result<(), Failure> {
        if !self.has_records {
            self.open()?;
        }
        self.complete()
    }
}
