//! The interface of formats that write rows to a destination.

use std::io;

use crate::base::Timestamp;
use crate::row::Row;

/// Writes rows in a format. Only whole rows are written.
///
/// A format with columns, which has a header or a schema, has those of one type of rows. A writer that accepts rows of any
/// type, such as [`Lines`](super::Lines), compares each with the first, or with the type for which it was created, and returns
/// an error of kind `InvalidInput` if the columns differ.
pub trait RecordWriter<R: Row> {
    /// Writes a row.
    ///
    /// # Errors
    ///
    /// Any error of the destination. No further row should be written then.
    fn write(&mut self, row: &R) -> io::Result<()> {
        self.write_if(row, &mut |_| true).map(drop)
    }

    /// Writes a row if `permits` returns true for the number of octets that it adds to the output; zero for a format
    /// that does not know it before. Returns whether it was written.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    fn write_if(&mut self, row: &R, permits: &mut dyn FnMut(usize) -> bool) -> io::Result<bool>;

    /// Writes what the writer holds back, so that all rows up to here can be read.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    fn flush(&mut self) -> io::Result<()>;

    /// Completes the output.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    fn finish(self: Box<Self>) -> io::Result<Summary>;
}

/// Opens and closes the destinations of logs, such as files of a folder.
pub trait LogFiles {
    /// The destination of a log.
    type Out: io::Write;

    /// Opens the destination of a log whose first row has this time. `log` is the name of the log, such as `conn`.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    fn open(&mut self, log: &'static str, time: Timestamp) -> io::Result<Self::Out>;

    /// Closes the destination of a log.
    ///
    /// # Errors
    ///
    /// Any error of the destination.
    fn close(&mut self, log: &'static str, out: Self::Out) -> io::Result<()>;

    /// Returns whether another destination is opened for rows at this time or later.
    fn is_over(&self, out: &Self::Out, time: Timestamp) -> bool {
        let _ = (out, time);
        false
    }
}

/// What a writer has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Number of rows.
    pub row_count: u64,
}

impl Summary {
    /// Returns the summary of a writer that wrote this number of rows.
    #[must_use]
    pub const fn of_rows(row_count: u64) -> Self {
        Self { row_count }
    }
}
