//! The formats of flow records by name.

use std::fmt;
use std::io::Write;
use std::str::FromStr;

use super::fixed_record::FixedRecords;
use super::lines::Lines;
use super::selection::Selection;
use super::style::{Style, UnknownName, by_name};
use super::table::FlowTable;
use super::writer::RecordWriter;
use crate::base::ConfigError;
use crate::ipfix::{Exporter, ExporterConfig, StreamTransport};
use crate::record::FlowRecord;

/// A format of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A table for people.
    Table,
    /// One JSON object per line (RFC 8259).
    Ndjson,
    /// Comma-separated values (RFC 4180), after a line with the names of the columns.
    Csv,
    /// IPFIX messages (RFC 7011).
    Ipfix,
    /// [Records of a fixed length](super::FixedRecord).
    Fixed,
}

/// Options of the formats. Each format uses those that it has a meaning for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FormatOptions {
    /// The columns to write; all if `None`. IPFIX and records of a fixed length always have their own.
    pub selection: Option<Selection>,
    /// How times and absent values look in ndjson and csv.
    pub style: Style,
    /// Width of a line of a table in characters; `None` for no limit.
    pub line_width: Option<usize>,
    /// Options of IPFIX.
    pub exporter: ExporterConfig,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Table, Self::Ndjson, Self::Csv, Self::Ipfix, Self::Fixed];

    const NAMES: &'static [&'static str; 5] = &["table", "ndjson", "csv", "ipfix", "fixed"];

    /// Returns the name of the format, such as `ndjson`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Creates a writer of flow records in the format.
    ///
    /// ```
    /// use flowgauge::export::{Format, FormatOptions};
    /// use flowgauge::{FileSource, records};
    ///
    /// let format: Format = "ipfix".parse()?;
    /// let mut writer = format.writer(std::io::sink(), FormatOptions::default())?;
    /// for record in records(FileSource::open("examples/data/web.pcap")?) {
    ///     writer.write(&record?)?;
    /// }
    /// assert_eq!(writer.finish()?.row_count, 27);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error for options that the IPFIX exporter does not support.
    pub fn writer<'o, W: Write + Send + 'o>(
        self,
        out: W,
        options: FormatOptions,
    ) -> Result<Box<dyn RecordWriter<FlowRecord> + Send + 'o>, ConfigError> {
        let FormatOptions { selection, style, line_width, exporter } = options;
        Ok(match (self, selection) {
            (Self::Table, None) => Box::new(FlowTable::new(out, line_width)),
            (Self::Table, Some(selection)) => Box::new(FlowTable::with_selection(out, &selection)),
            (Self::Ndjson, selection) => Box::new(Lines::ndjson(out, selection, style)),
            (Self::Csv, selection) => Box::new(Lines::csv(out, selection, style)),
            (Self::Ipfix, _) => Box::new(Exporter::new(exporter, StreamTransport::new(out))?),
            (Self::Fixed, _) => Box::new(FixedRecords::new(out)),
        })
    }
}

impl FromStr for Format {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        by_name(name, Self::NAMES, &Self::ALL)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
