//! Output formats of flow records for programs: ndjson, csv and IPFIX. The table has its own file, and so has IPFIX.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use flowgauge::export;
use flowgauge::record::FlowRecord;

use crate::args::{Fields, Format};
use crate::console::Failure;
use crate::ipfix::{ExportArgs, IpfixWriter};
use crate::table::Table;

/// Destination of output lines.
pub(crate) type Out = Box<dyn Write + Send>;

/// Writes flow records one after another in one of the output formats.
pub(crate) enum Writer {
    Table(Box<Table<Out>>),
    /// A text format. The first line is written together with the header, so that a run that fails to start writes
    /// nothing.
    Text(Text),
    Ipfix(Box<IpfixWriter>),
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

    fn append(&mut self, record: &FlowRecord) {
        match &self.fields {
            Some(fields) => export::write_fields(&mut self.line, self.format, record, fields),
            None => export::write_record(&mut self.line, self.format, record),
        }
    }

    fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        self.append(record);
        self.write_line()
    }

    /// Writes a record if the caller permits the length of its line.
    fn write_if(&mut self, record: &FlowRecord, permits: impl FnOnce(usize) -> bool) -> io::Result<()> {
        let start = self.line.len();
        self.append(record);
        if permits(self.line.len() - start) {
            return self.write_line();
        }
        self.line.truncate(start);
        Ok(())
    }

    /// Returns the length of the line of a record.
    fn len_of(&mut self, record: &FlowRecord) -> usize {
        let start = self.line.len();
        self.append(record);
        let len = self.line.len() - start;
        self.line.truncate(start);
        len
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

impl Writer {
    /// Creates a writer of flow records in a format to standard output or, for IPFIX, to the destination of `export`.
    /// Formats with a header write it with the first record, or on flush. `inputs` are files that the output must not
    /// replace.
    pub(crate) fn open(
        format: Format,
        fields: Option<&Fields>,
        export: &ExportArgs,
        inputs: &[PathBuf],
    ) -> Result<Self, Failure> {
        let out = || -> Out { Box::new(BufWriter::with_capacity(1 << 16, io::stdout())) };
        let fields = fields.map(|fields| fields.0.clone());
        Ok(match format {
            Format::Table => Self::Table(Box::new(match fields {
                Some(fields) => Table::with_fields(out(), &fields),
                None => Table::new(out()),
            })),
            Format::Ndjson => Self::Text(Text::new(export::Format::Ndjson, fields, out())),
            Format::Csv => Self::Text(Text::new(export::Format::Csv, fields, out())),
            Format::Ipfix => Self::Ipfix(Box::new(IpfixWriter::open(export, inputs)?)),
        })
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        match self {
            Self::Table(table) => table.write(record),
            Self::Text(text) => text.write(record),
            Self::Ipfix(ipfix) => ipfix.write(record),
        }
    }

    /// Writes a record if the caller permits its length in octets.
    pub(crate) fn write_if(
        &mut self,
        record: &FlowRecord,
        permits: impl FnOnce(usize) -> bool,
    ) -> io::Result<()> {
        if let Self::Text(text) = self {
            return text.write_if(record, permits);
        }
        if permits(self.len_of(record)) { self.write(record) } else { Ok(()) }
    }

    /// Returns the length in octets of a record as text. A record of IPFIX is not longer than the record or packet that
    /// it describes, and therefore has no length here.
    pub(crate) fn len_of(&mut self, record: &FlowRecord) -> usize {
        match self {
            Self::Table(table) => table.len_of(record),
            Self::Text(text) => text.len_of(record),
            Self::Ipfix(_) => 0,
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
            Self::Ipfix(ipfix) => ipfix.flush(),
        }
    }

    /// Flushes buffered output, and completes it.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        if let Self::Ipfix(ipfix) = self {
            return ipfix.finish();
        }
        self.flush().map_err(Failure::from)
    }

    /// Returns the failure for an error of a write.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        match self {
            Self::Ipfix(ipfix) => ipfix.failure(error),
            Self::Table(_) | Self::Text(_) => Failure::writing("standard output", error),
        }
    }
}
