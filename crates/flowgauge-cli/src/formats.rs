//! Output formats of records for programs. The table has its own file.

use std::io::{self, Write};

use flowgauge::export;
use flowgauge::record::FlowRecord;

use crate::args::Format;
use crate::table::Table;

/// Destination of lines.
pub(crate) type Out = Box<dyn Write + Send>;

/// Writes records one after another.
pub(crate) enum Writer {
    Table(Box<Table<Out>>),
    /// A text format, and the current line. It starts with the header, so that a run that fails to start writes
    /// nothing.
    Text(export::Format, Out, Vec<u8>),
}

impl Writer {
    /// Creates a writer for a format; formats with a header write it with the first record, or on flush.
    pub(crate) fn new(format: Format, out: Out) -> Self {
        let text = |format, out| {
            let mut line = Vec::new();
            export::write_header(&mut line, format);
            Self::Text(format, out, line)
        };
        match format {
            Format::Table => Self::Table(Box::new(Table::new(out))),
            Format::Ndjson => text(export::Format::Ndjson, out),
            Format::Csv => text(export::Format::Csv, out),
        }
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        match self {
            Self::Table(table) => table.write(record),
            Self::Text(format, out, line) => {
                export::write_record(line, *format, record);
                out.write_all(line)?;
                line.clear();
                Ok(())
            }
        }
    }

    /// Flushes buffered output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Table(table) => table.flush(),
            Self::Text(_, out, line) => {
                out.write_all(line)?;
                line.clear();
                out.flush()
            }
        }
    }
}
