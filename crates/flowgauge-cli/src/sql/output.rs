//! Results of queries in one of the formats, batch by batch.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::mem;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::json::writer::{EncoderOptions, make_encoder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use super::args::{SqlArgs, SqlFormat};
use crate::console::{Failure, Out, stdout};
use crate::escape;
use crate::output::{OutputFile, Outputs};

/// Number of spaces between columns of a table.
const GAP: usize = 2;

/// Maximum number of octets of a row group of Parquet, which is in memory until it is complete.
const ROW_GROUP_BYTES_MAX: usize = 64 << 20;

/// Where results are written.
pub(super) struct Output {
    format: SqlFormat,
    out: Out,
    /// `None` for standard output.
    file: Option<OutputFile>,
    /// The result that is being written.
    rows: Option<Rows>,
    result_count: u64,
}

impl Output {
    /// Creates the output of the options; fails if its file exists already.
    pub(super) fn open(args: &SqlArgs) -> Result<Self, Failure> {
        let (out, file): (Out, _) = match &args.out {
            None => (stdout(), None),
            Some(path) => {
                let (output, file) =
                    OutputFile::create(Outputs::new(args.file.as_slice(), args.force).location(path)?)?;
                (Box::new(BufWriter::<File>::new(file)), Some(output))
            }
        };
        Ok(Self { format: args.format(), out, file, rows: None, result_count: 0 })
    }

    /// Begins a result; `is_plan` for one of EXPLAIN.
    pub(super) fn begin(&mut self, schema: &SchemaRef, is_plan: bool) -> Result<(), Failure> {
        // Statements such as COPY have a result too.
        if self.result_count > 0 && self.format.is_binary() {
            return Err(several(self.format));
        }
        if self.result_count > 0 && self.format == SqlFormat::Table {
            self.write(b"\n")?;
        }
        self.result_count += 1;
        let rows = Rows::new(self.format, schema, is_plan);
        self.rows = Some(rows.map_err(|error| self.encoding(&error))?);
        Ok(())
    }

    /// Writes rows of the result.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let encoded = rows.encode(batch);
        let octets = encoded.map_err(|error| self.encoding(&error))?;
        self.write(&octets)?;
        self.flush()
    }

    /// Completes the result, if one was begun.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        let Some(rows) = self.rows.take() else { return Ok(()) };
        let octets = rows.finish().map_err(|error| self.encoding(&error))?;
        self.write(&octets)?;
        self.flush()
    }

    /// Omits the rest of a result whose query failed.
    pub(super) fn abort(&mut self) -> Result<(), Failure> {
        self.rows = None;
        self.flush()
    }

    /// Renames the complete output file to its final name.
    pub(super) fn commit(mut self) -> Result<(), Failure> {
        self.flush()?;
        self.file.map_or(Ok(()), OutputFile::commit)
    }

    /// Returns whether results are written to standard output.
    pub(super) const fn is_standard(&self) -> bool {
        self.file.is_none()
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), Failure> {
        self.out.write_all(octets).map_err(|error| self.failure(&error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match &self.file {
            Some(file) => file.failure(error),
            None => Failure::writing("standard output", error),
        }
    }

    /// Returns the failure for values that the format does not have.
    fn encoding(&self, error: &ArrowError) -> Failure {
        Failure::Other(format!("--format {}: {error}", self.format.name()))
    }
}

/// Returns the failure for several results in a format that holds one.
pub(super) fn several(format: SqlFormat) -> Failure {
    let name = format.name();
    Failure::Usage(format!("--format {name} holds the result of one query; run the others one by one"))
}

/// Encodes the rows of a result.
enum Rows {
    Table(Table),
    /// Lines of the column `plan`.
    Plan,
    Ndjson,
    Csv(Option<Vec<String>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl Rows {
    fn new(format: SqlFormat, schema: &SchemaRef, is_plan: bool) -> Result<Self, ArrowError> {
        Ok(match format {
            SqlFormat::Table if is_plan => Self::Plan,
            SqlFormat::Table => Self::Table(Table::new(schema)),
            SqlFormat::Ndjson => Self::Ndjson,
            SqlFormat::Csv => Self::Csv(Some(names(schema))),
            SqlFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_created_by(concat!("flowgauge ", env!("CARGO_PKG_VERSION")).to_owned())
                    .build();
                let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties));
                Self::Parquet(Box::new(writer.map_err(arrow_error)?))
            }
            SqlFormat::Arrow => Self::Arrow(Box::new(StreamWriter::try_new(Vec::new(), schema)?)),
        })
    }

    /// Returns the octets that rows add to the output.
    fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Table(table) => table.encode(batch),
            Self::Plan => plan(batch),
            Self::Ndjson => ndjson(batch),
            Self::Csv(header) => csv(header.take(), Some(batch)),
            Self::Parquet(writer) => {
                writer.write(batch).map_err(arrow_error)?;
                if writer.memory_size() > ROW_GROUP_BYTES_MAX {
                    writer.flush().map_err(arrow_error)?;
                }
                writer.sync()?;
                // The writer counts the octets itself.
                Ok(mem::take(writer.inner_mut()))
            }
            Self::Arrow(writer) => {
                writer.write(batch)?;
                Ok(mem::take(writer.get_mut()))
            }
        }
    }

    /// Returns the octets after the last row.
    fn finish(self) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Table(table) => Ok(table.end()),
            Self::Plan | Self::Ndjson | Self::Csv(None) => Ok(Vec::new()),
            Self::Csv(header) => csv(header, None),
            Self::Parquet(writer) => writer.into_inner().map_err(arrow_error),
            Self::Arrow(mut writer) => {
                writer.finish()?;
                Ok(mem::take(writer.get_mut()))
            }
        }
    }
}

fn arrow_error(error: ParquetError) -> ArrowError {
    ArrowError::ParquetError(error.to_string())
}

/// Returns the names of the columns.
fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| escape::text(field.name()).into_owned()).collect()
}

/// Returns the lines of a plan.
fn plan(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let Some(column) = batch.columns().last() else { return Ok(Vec::new()) };
    let options = FormatOptions::default();
    let values = ArrayFormatter::try_new(column, &options)?;
    let mut out = Vec::new();
    for row in 0..batch.num_rows() {
        for line in values.value(row).try_to_string()?.lines() {
            out.extend(escape::text(line).as_bytes());
            out.push(b'\n');
        }
    }
    Ok(out)
}

/// Returns a JSON object for each row, with the controls escaped that JSON permits in strings.
fn ndjson(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write(batch)?;
    writer.finish()?;
    let octets = writer.into_inner();
    if octets.is_ascii() && !octets.contains(&0x7f) {
        return Ok(octets);
    }
    let text = String::from_utf8(octets).map_err(|error| ArrowError::JsonError(error.to_string()))?;
    let mut out = Vec::with_capacity(text.len());
    for line in text.lines() {
        out.extend(escape::text(line).as_bytes());
        out.push(b'\n');
    }
    Ok(out)
}

/// Returns the rows of a batch as lines of values separated by commas, below the header if there is one.
fn csv(header: Option<Vec<String>>, batch: Option<&RecordBatch>) -> Result<Vec<u8>, ArrowError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failure = |error: csv::Error| ArrowError::CsvError(error.to_string());
    if let Some(header) = header {
        writer.write_record(&header).map_err(failure)?;
    }
    if let Some(batch) = batch {
        let cells = batch.columns().iter().map(|column| cells_of(column, ""));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for cell in &cells {
                writer.write_field(cell.get(row).map_or("", String::as_str)).map_err(failure)?;
            }
            writer.write_record(None::<&[u8]>).map_err(failure)?;
        }
    }
    writer.into_inner().map_err(|error| ArrowError::CsvError(error.to_string()))
}

/// Returns the values of a column as text that cannot control a terminal. Lists and groups are JSON.
fn cells_of(column: &dyn Array, null: &str) -> Result<Vec<String>, ArrowError> {
    let mut cells = Vec::with_capacity(column.len());
    if column.data_type().is_nested() {
        let field: FieldRef = Arc::new(Field::new("", column.data_type().clone(), true));
        let options = EncoderOptions::default();
        let mut encoder = make_encoder(&field, column, &options)?;
        let mut octets = Vec::new();
        for row in 0..column.len() {
            octets.clear();
            if encoder.is_null(row) {
                octets.extend(null.as_bytes());
            } else {
                encoder.encode(row, &mut octets);
            }
            cells.push(escape::text(&String::from_utf8_lossy(&octets)).into_owned());
        }
        return Ok(cells);
    }
    let options = FormatOptions::default().with_null(null);
    let values = ArrayFormatter::try_new(column, &options)?;
    for row in 0..column.len() {
        cells.push(escape::text(&values.value(row).try_to_string()?).into_owned());
    }
    Ok(cells)
}

/// A table whose columns become wider if later rows need it, so that only a batch of rows is in memory.
struct Table {
    names: Vec<String>,
    widths: Vec<usize>,
    are_numbers: Vec<bool>,
    has_header: bool,
}

impl Table {
    fn new(schema: &Schema) -> Self {
        // Upper case first: that of an escape sequence would be another one.
        let name = |field: &FieldRef| escape::text(&field.name().to_uppercase()).into_owned();
        let names: Vec<String> = schema.fields().iter().map(name).collect();
        let widths = names.iter().map(|name| name.chars().count()).collect();
        let are_numbers = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
        Self { names, widths, are_numbers, has_header: false }
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let cells =
            batch.columns().iter().map(|column| cells_of(column, "-")).collect::<Result<Vec<_>, _>>()?;
        for (width, column) in self.widths.iter_mut().zip(&cells) {
            *width = column.iter().map(|cell| cell.chars().count()).fold(*width, usize::max);
        }
        let mut out = String::new();
        if !mem::replace(&mut self.has_header, true) {
            self.line(self.names.iter(), &mut out);
        }
        for row in 0..batch.num_rows() {
            self.line(cells.iter().filter_map(|column| column.get(row)), &mut out);
        }
        Ok(out.into_bytes())
    }

    /// Appends the line of a row.
    fn line<'c>(&self, cells: impl Iterator<Item = &'c String>, out: &mut String) {
        let mut line = String::new();
        for ((cell, width), is_number) in cells.zip(&self.widths).zip(&self.are_numbers) {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if *is_number { (&*padding, "") } else { ("", &*padding) };
            line.extend([before, cell, after, &" ".repeat(GAP)]);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }

    /// Returns the header of a table without rows.
    fn end(&self) -> Vec<u8> {
        let mut out = String::new();
        if !self.has_header {
            self.line(self.names.iter(), &mut out);
        }
        out.into_bytes()
    }
}
