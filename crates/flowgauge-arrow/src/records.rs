//! Flow records of files.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::Ipv6Addr;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use flowgauge::FlowRecord;
use flowgauge::record_file::{RecordFile, RecordFormat, RecordProblem, RecordProblemKind};
use flowgauge::source::{self, Contents, Storage};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::reader::ChunkReader;
use serde_json::{Map, Value};

use crate::blocks::Blocks;

/// Number of rows that are decoded at a time.
const ROW_COUNT: usize = 1024;

/// Opens a file of flow records in any format: ndjson, IPFIX, fixed records, or Parquet, which must be an uncompressed regular
/// file because its index is at its end.
///
/// # Errors
///
/// Returns an error if the file has other content, or the index of a Parquet file cannot be read. An empty file has no
/// records.
///
/// ```
/// use flowgauge::source::{Contents, SourceConfig};
///
/// let line = br#"{"source_address":"192.0.2.1","destination_address":"192.0.2.2"}"#;
/// let contents = Contents::from_reader(&line[..], SourceConfig::default())?;
/// assert_eq!(flowgauge_arrow::record_file(contents)?.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn record_file(contents: Contents) -> Result<RecordFile, RecordProblem> {
    record_file_in(contents, None)
}

/// Opens a file of flow records in any format, in a storage if that finds it.
pub(crate) fn record_file_in(
    contents: Contents,
    storage: Option<&Arc<dyn Storage>>,
) -> Result<RecordFile, RecordProblem> {
    if RecordFormat::of(contents.head()) != Some(RecordFormat::Parquet) {
        return RecordFile::new(contents, |line: &[u8]| serde_json::from_slice(line));
    }
    let path = contents.path().to_owned();
    let problem = |kind| RecordProblem::new(path.clone(), kind);
    if !contents.is_plain() {
        let content = "is a Parquet file, which cannot be read from a pipe or compressed";
        return Err(problem(RecordProblemKind::NotRecords(content)));
    }
    let found = storage.and_then(|storage| Some((storage, storage.find(&path)?)));
    let rows = match found {
        Some((storage, len)) => {
            ParquetRecords::of_blocks(Blocks::new(Arc::clone(storage), path.clone(), len))
        }
        None => {
            let file = File::open(&path).map_err(|error| {
                let error = source::Error::Io { path: path.clone(), error: error.into() };
                problem(RecordProblemKind::Source(error))
            })?;
            ParquetRecords::new(file)
        }
    };
    let rows = rows.map_err(|error| {
        problem(match error.downcast::<source::Error>() {
            Ok(error) => RecordProblemKind::Source(error),
            Err(error) => {
                RecordProblemKind::Damaged(format!("is a Parquet file whose index is damaged: {error}"))
            }
        })
    })?;
    Ok(RecordFile::of_rows(path, rows))
}

/// Iterator over the flow records of a Parquet file, as [`ParquetWriter`](crate::ParquetWriter) writes them.
///
/// The columns are those of [`FlowRecord`], in any order; unknown ones are ignored. All columns except the addresses may
/// be missing: missing fields are not [known](FlowRecord::known). A row that is no record is an error of kind
/// `InvalidData`, after which the iteration continues; after any other error, it ends.
///
/// Decodes 1024 rows at a time.
///
/// ```
/// use flowgauge::export::RecordWriter;
/// use flowgauge::{FileSource, FlowRecord, records};
/// use flowgauge_arrow::{Options, ParquetRecords, ParquetWriter};
///
/// let path = std::env::temp_dir().join(format!("flowgauge-{}.parquet", std::process::id()));
/// let file = std::fs::File::create(&path)?;
/// let mut writer = Box::new(ParquetWriter::new::<FlowRecord>(file, Options::default())?);
/// for record in records(FileSource::open("../../examples/data/web.pcap")?) {
///     writer.write(&record?)?;
/// }
/// let writer: Box<dyn RecordWriter<FlowRecord>> = writer;
/// writer.finish()?;
/// let packet_counts = ParquetRecords::new(std::fs::File::open(&path)?)?
///     .map(|record| record.map(|record| record.packet_count()))
///     .collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(packet_counts.len(), 27);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ParquetRecords {
    batches: ParquetRecordBatchReader,
    /// The file, if it is in a storage.
    blocks: Option<Blocks>,
    batch: Option<RecordBatch>,
    /// Index of the next row in the batch.
    row: usize,
    has_ended: bool,
}

impl fmt::Debug for ParquetRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetRecords").field("row", &self.row).finish_non_exhaustive()
    }
}

impl ParquetRecords {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the footer of the file cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        Self::of(file, None)
    }

    /// Opens a file in a storage.
    pub(crate) fn of_blocks(blocks: Blocks) -> io::Result<Self> {
        Self::of(blocks.clone(), Some(blocks))
    }

    fn of(file: impl ChunkReader + 'static, blocks: Option<Blocks>) -> io::Result<Self> {
        let opened = ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(ROW_COUNT).build());
        let batches = opened.map_err(|error| failure(blocks.as_ref(), error))?;
        Ok(Self { batches, blocks, batch: None, row: 0, has_ended: false })
    }
}

impl Iterator for ParquetRecords {
    type Item = io::Result<FlowRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.has_ended {
            if let Some(batch) = self.batch.as_ref().filter(|batch| self.row < batch.num_rows()) {
                self.row += 1;
                return Some(record(batch, self.row - 1));
            }
            self.row = 0;
            match self.batches.next() {
                Some(Ok(batch)) => self.batch = Some(batch),
                Some(Err(error)) => {
                    self.has_ended = true;
                    return Some(Err(failure(self.blocks.as_ref(), error)));
                }
                None => self.has_ended = true,
            }
        }
        None
    }
}

/// Returns the error of a file; that of a failed read in a storage, which is no damage of the file, is of the source.
fn failure(blocks: Option<&Blocks>, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    match blocks.and_then(Blocks::failure) {
        Some(failed) => io::Error::other(failed),
        None => io::Error::other(error),
    }
}

/// Returns the record in a row of a batch.
fn record(batch: &RecordBatch, row: usize) -> io::Result<FlowRecord> {
    let schema = batch.schema_ref();
    let columns = schema.fields().iter().zip(batch.columns());
    let object: Map<_, _> = columns
        .filter_map(|(field, array)| Some((field.name().clone(), value(array.as_ref(), row)?)))
        .filter(|(_, value)| !value.is_null())
        .collect();
    // Headers of an encapsulation are read from text only.
    let text = Value::Object(object).to_string();
    serde_json::from_str(&text).map_err(|error| {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default().to_owned();
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// Returns the value in a row of an array, as a flow record is serialized; `None` for a type that no column has.
fn value(array: &dyn Array, row: usize) -> Option<Value> {
    if array.is_null(row) {
        return Some(Value::Null);
    }
    Some(match array.data_type() {
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<TimestampNanosecondType>().value(row).into()
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            array.as_primitive::<DurationNanosecondType>().value(row).into()
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Dictionary(..) => {
            let names = array.as_dictionary_opt::<Int32Type>()?;
            let key = usize::try_from(names.keys().value(row)).ok()?;
            value(names.values().as_ref(), key)?
        }
        DataType::FixedSizeBinary(_) => octets(array.as_fixed_size_binary().value(row))?.into(),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| value(items.as_ref(), item)).collect::<Option<Vec<_>>>()?.into()
        }
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let members =
                members.map(|(field, member)| Some((field.name().clone(), value(member.as_ref(), row)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Returns an address or MAC address as text; `None` for other octets.
fn octets(octets: &[u8]) -> Option<String> {
    if let Ok(octets) = <[u8; 16]>::try_from(octets) {
        return Some(Ipv6Addr::from(octets).to_canonical().to_string());
    }
    let [a, b, c, d, e, f] = <[u8; 6]>::try_from(octets).ok()?;
    Some(format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"))
}
