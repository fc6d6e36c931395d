//! Output formats of flow records for programs: ndjson and csv. The table has its own file.

use std::io::{self, Write};

use flowgauge::export;
use flowgauge::record::FlowRecord;

use crate::args::Format;
use crate::table::Table;

/// Destination of output lines.
pub(crate) type Out = Box<dyn Write + Send>;

/// Writes flow records one after another in one of the output formats.
pub(crate) enum Writer {
    Table(Box<Table<Out>>),
    /// A text format. The first line is written together with the header, so that a run that fails to start writes
    /// nothing.
    Text(Text),
}

/// A text format for flow records, the fields that it writes, and the current line.
pub(crate) struct Text {
    format: export::Format,
    /// Indices in the schema of the fields to write; `None` for all fields.
    fields: Option<Vec<usize>>,
    out: Out,
    line: Vec<u8>,
}

impl Text {
    fn new(format: export::Format, fields: Option<Vec<usize>>, out: Out) -> Self {
        let mut line = Vec::new();
        match &fields {
            Some(fields) => export::write_fields_header(&mut line, format, fields),
            None => export::write_header(&mut line, format),
        }
        Self { format, fields, out, line }
    }

    fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        match &self.fields {
            Some(fields) => export::write_fields(&mut self.line, self.format, record, fields),
            None => export::write_record(&mut self.line, self.format, record),
        }
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

impl Writer {
    /// Creates a writer of flow records in a format, with the given fields or the default ones. Formats with a header
    /// write it with the first record, or on flush.
    pub(crate) fn new(format: Format, fields: Option<Vec<usize>>, out: Out) -> Self {
        let text = |format, fields, out| Self::Text(Text::new(format, fields, out));
        match format {
            Format::Table => Self::Table(Box::new(match fields {
                Some(fields) => Table::with_fields(out, &fields),
                None => Table::new(out),
            })),
            Format::Ndjson => text(export::Format::Ndjson, fields, out),
            Format::Csv => text(export::Format::Csv, fields, out),
        }
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        match self {
            Self::Table(table) => table.write(record),
            Self::Text(text) => text.write(record),
        }
    }

    /// Flushes buffered output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Table(table) => table.flush(),
            Self::Text(text) => {
                text.write_line()?;
                text.out.flush()
            }
        }
    }
}
