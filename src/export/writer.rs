//! The interface of formats that write rows to a destination.

use std::io;

use crate::row::Row;

/// Writes rows in a format. Only whole rows are written.
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
