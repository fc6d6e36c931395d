//! Arrow IPC: streams and files.

use std::fmt;
use std::io::{self, Write};

use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;
use flowgauge::export::{RecordWriter, Summary};
use flowgauge::row::{Column, Row, RowType};

use crate::batch::BatchBuilder;
use crate::options::Options;

/// Writes rows as an Arrow IPC stream, or as a file of the same batches with an index.
///
/// Each batch of a stream can be read once it is written, whether the rest follows or not. [`RecordWriter::flush`] ends a
/// batch, so that a program that receives the stream has all rows up to here.
///
/// ```
/// use flowgauge::export::RecordWriter;
/// use flowgauge::{FileSource, FlowRecord, records};
/// use flowgauge_arrow::{IpcWriter, Options};
///
/// let mut writer = IpcWriter::stream::<FlowRecord>(Vec::new(), &Options::default())?;
/// for record in records(FileSource::open("../../examples/data/web.pcap")?) {
///     writer.write(&record?)?;
/// }
/// let octets = writer.into_inner()?;
/// assert!(octets.starts_with(&[0xff, 0xff, 0xff, 0xff]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IpcWriter<W: Write> {
    batch: BatchBuilder,
    target: Target<W>,
    row_count: u64,
}

enum Target<W: Write> {
    Stream(StreamWriter<W>),
    File(FileWriter<W>),
}

impl<W: Write> fmt::Debug for IpcWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpcWriter").field("batch", &self.batch).finish_non_exhaustive()
    }
}

impl<W: Write> IpcWriter<W> {
    /// Creates a writer of a stream for rows of type `R`.
    ///
    /// # Errors
    ///
    /// Any error of the destination, to which the schema is written.
    pub fn stream<R: RowType>(out: W, options: &Options) -> io::Result<Self> {
        Self::stream_of_columns(R::columns(), out, options)
    }

    /// Creates a writer of a stream for rows with these columns.
    ///
    /// # Errors
    ///
    /// Same as for [`stream`](Self::stream).
    pub fn stream_of_columns(columns: Vec<&'static Column>, out: W, options: &Options) -> io::Result<Self> {
        let batch = BatchBuilder::for_columns(columns, options);
        // Polars does not read deltas.
        let dictionaries = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Resend);
        let writer = StreamWriter::try_new_with_options(out, &batch.schema(), dictionaries);
        Ok(Self { batch, target: Target::Stream(writer.map_err(into_io)?), row_count: 0 })
    }

    /// Creates a writer of a file for rows of type `R`.
    ///
    /// # Errors
    ///
    /// Same as [`stream`](Self::stream).
    pub fn file<R: RowType>(out: W, options: &Options) -> io::Result<Self> {
        let batch = BatchBuilder::new::<R>(options);
        // A dictionary of a later batch begins with that of an earlier one, and a file cannot replace it.
        let dictionaries = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let writer = FileWriter::try_new_with_options(out, &batch.schema(), dictionaries);
        Ok(Self { batch, target: Target::File(writer.map_err(into_io)?), row_count: 0 })
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.batch.row_count() == 0 {
            return Ok(());
        }
        let batch = self.batch.finish().map_err(io::Error::other)?;
        match &mut self.target {
            Target::Stream(stream) => stream.write(&batch),
            Target::File(file) => file.write(&batch),
        }
        .map_err(into_io)
    }

    fn complete(&mut self) -> io::Result<()> {
        self.write_batch()?;
        match &mut self.target {
            Target::Stream(stream) => stream.finish().and_then(|()| stream.flush()),
            Target::File(file) => file.finish().and_then(|()| file.flush()),
        }
        .map_err(into_io)
    }

    /// Completes the output, and returns the destination.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.complete()?;
        match self.target {
            Target::Stream(stream) => stream.into_inner(),
            Target::File(file) => file.into_inner(),
        }
        .map_err(into_io)
    }
}

impl<R: Row, W: Write> RecordWriter<R> for IpcWriter<W> {
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
            self.write_batch()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_batch()?;
        match &mut self.target {
            Target::Stream(stream) => stream.flush(),
            Target::File(file) => file.flush(),
        }
        .map_err(into_io)
    }

    fn finish(mut self: Box<Self>) -> io::Result<Summary> {
        self.complete()?;
        Ok(Summary::of_rows(self.row_count))
    }
}

/// Returns the error of the destination in an error of the encoder.
fn into_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
