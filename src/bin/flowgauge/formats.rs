//! How records are written: the formats for programs. The table is a file of its own.

use std::io::{self, Write};

use flowgauge::record::FlowRecord;

use crate::args::Format;
use crate::escape;
use crate::table::Table;

/// Where lines go.
pub(crate) type Out = Box<dyn Write + Send>;

/// Writes records, one after the other.
pub(crate) enum Writer {
    Table(Box<Table<Out>>),
    /// With room for a line, so that its parts are put together without a call for each.
    Ndjson(Out, Vec<u8>),
    Csv(Out, Vec<u8>),
}

impl Writer {
    /// A writer of a format; formats with a header write it.
    pub(crate) fn new(format: Format, mut out: Out) -> io::Result<Self> {
        Ok(match format {
            Format::Table => Self::Table(Box::new(Table::new(out))),
            Format::Ndjson => Self::Ndjson(out, Vec::new()),
            Format::Csv => {
                writeln!(out, "{}", FlowRecord::FIELD_NAMES.join(","))?;
                Self::Csv(out, Vec::new())
            }
        })
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        match self {
            Self::Table(table) => table.write(record),
            Self::Ndjson(out, line) => {
                line.clear();
                escape::write_json(line, record)?;
                line.push(b'\n');
                out.write_all(line)
            }
            Self::Csv(out, line) => {
                line.clear();
                // No value holds a comma, a quote, a line end or another control: numbers, names of ours, addresses, base64.
                for (place, field) in record.fields().iter().enumerate() {
                    if place > 0 {
                        line.push(b',');
                    }
                    write!(line, "{field}")?;
                }
                line.push(b'\n');
                out.write_all(line)
            }
        }
    }

    /// Writes out what is held back.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Table(table) => table.flush(),
            Self::Ndjson(out, _) | Self::Csv(out, _) => out.flush(),
        }
    }
}
