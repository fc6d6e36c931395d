//! Parquet files.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::{DataType, Schema};
use arrow_select::take::take_record_batch;
use flowgauge::export::{RecordWriter, Summary};
use flowgauge::row::{Column, Row, RowType};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::batch::BatchBuilder;
use crate::options::{Durations, Options};

/// Writes rows as a Parquet file: zstd, a row group per batch, and statistics of each column of a row group.
///
/// The rows of a row group are sorted by their first column that is a time, such as `start`. The key-value metadata of the
/// file are those of the schema, `flowgauge.version` and `flowgauge.table`. Parquet has no durations; these are integers with
/// the unit `ns` in the metadata of the field.
///
/// A row group is written when a batch is full. The file can be read only after [`RecordWriter::finish`], which writes its
/// footer; [`RecordWriter::flush`] writes complete row groups only, because each has a cost.
///
/// ```
/// use flowgauge::export::RecordWriter;
/// use flowgauge::{FileSource, FlowRecord, records};
/// use flowgauge_arrow::{Options, ParquetWriter};
///
/// let mut writer = Box::new(ParquetWriter::new::<FlowRecord>(std::io::sink(), Options::default())?);
/// for record in records(FileSource::open("../../examples/data/web.pcap")?) {
///     writer.write(&record?)?;
/// }
/// let writer: Box<dyn RecordWriter<FlowRecord>> = writer;
/// assert_eq!(writer.finish()?.row_count, 27);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ParquetWriter<W: Write + Send> {
    batch: BatchBuilder,
    file: ArrowWriter<W>,
    /// Index of the column by which the rows of a row group are sorted.
    sort_index: Option<usize>,
    row_count: u64,
}

impl<W: Write + Send> fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetWriter").field("batch", &self.batch).finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Creates a writer of rows of type `R`.
    ///
    /// # Errors
    ///
    /// Returns an error of kind `InvalidInput` for a selection without columns, and any error of the destination.
    pub fn new<R: RowType>(out: W, options: Options) -> io::Result<Self> {
        Self::of_columns(R::columns(), out, options)
    }

    /// Creates a writer of rows with these columns.
    ///
    /// # Errors
    ///
    /// Same as for [`new`](Self::new).
    pub fn of_columns(columns: Vec<&'static Column>, out: W, options: Options) -> io::Result<Self> {
        let batch = BatchBuilder::for_columns(columns, &options.durations(Durations::Integers));
        let schema = batch.schema();
        if schema.fields().is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "Parquet requires at least one column"));
        }
        let sort_index =
            schema.fields().iter().position(|field| matches!(field.data_type(), DataType::Timestamp(..)));
        let file = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties(&schema, sort_index)?));
        Ok(Self { batch, file: file.map_err(into_io)?, sort_index, row_count: 0 })
    }

    /// Writes the rows since the last row group as a row group.
    fn write_group(&mut self) -> io::Result<()> {
        if self.batch.row_count() == 0 {
            return Ok(());
        }
        let batch = self.batch.finish().map_err(io::Error::other)?;
        let batch = match self.sort_index {
            Some(index) => sorted(batch, index)?,
            None => batch,
        };
        self.file.write(&batch).map_err(into_io)?;
        self.file.flush().map_err(into_io)
    }

    /// Completes the file, and returns the destination.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.write_group()?;
        self.file.into_inner().map_err(into_io)
    }
}

impl<R: Row, W: Write + Send> RecordWriter<R> for ParquetWriter<W> {
    #[inline]
    fn write_if(&mut self, row: &R, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool> {
        if !permits(0) {
            return Ok(false);
        }
        let checked = self.batch.check(row);
        checked.map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        self.batch.push(row);
        self.row_count += 1;
        if self.batch.is_full() {
            self.write_group()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.inner_mut().flush()
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        self.write_group()?;
        self.file.finish().map_err(into_io)?;
        self.file.inner_mut().flush()?;
        Ok(Summary::of_rows(self.row_count))
    }
}

/// Returns how columns are encoded.
fn properties(schema: &Schema, sort_index: Option<usize>) -> io::Result<WriterProperties> {
    let metadata = schema.metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let mut metadata: Vec<_> = metadata.collect();
    metadata.sort_by(|a, b| a.key.cmp(&b.key));
    let mut sorting = None;
    if let Some(index) = sort_index {
        // Leaf columns precede it, as many as its predecessors have.
        let before =
            schema.fields().iter().take(index).map(|field| leaf_count(field.data_type())).sum::<usize>();
        sorting =
            Some(vec![SortingColumn { column_idx: before as i32, descending: false, nulls_first: true }]);
    }
    // A dictionary of numbers takes three times as long as their octets, and saves one twentieth of the file.
    let mut builder = WriterProperties::builder();
    for field in schema.fields() {
        if is_number(field.data_type()) {
            builder = builder.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), false);
        }
    }
    Ok(builder
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(into_io)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(metadata))
        .set_sorting_columns(sorting)
        .set_created_by(concat!("flowgauge ", env!("CARGO_PKG_VERSION")).to_owned())
        .build())
}

/// Returns whether values of a type are integers in Parquet.
fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || matches!(data_type, DataType::Timestamp(..))
}

/// Returns the number of Parquet columns of an Arrow type.
fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item) => leaf_count(item.data_type()),
        DataType::Struct(members) => members.iter().map(|member| leaf_count(member.data_type())).sum(),
        _ => 1,
    }
}

/// Returns the rows in the order of a column of times.
fn sorted(batch: RecordBatch, index: usize) -> io::Result<RecordBatch> {
    let Some(times) = batch.column(index).as_primitive_opt::<TimestampNanosecondType>() else {
        return Ok(batch);
    };
    let times = times.values();
    if times.is_sorted() {
        return Ok(batch);
    }
    let mut rows: Vec<(i64, u32)> = times.iter().copied().zip(0..).collect();
    rows.sort_unstable();
    let rows: UInt32Array = rows.into_iter().map(|(_, row)| row).collect();
    take_record_batch(&batch, &rows).map_err(io::Error::other)
}

/// Returns the error of the destination in an error of the encoder.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
