//! Errors of a stream, as exceptions.

use std::fmt;
use std::io;

use arrow_schema::ArrowError;
use flowgauge_arrow::scan::ScanError;
use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, Python};

use crate::exception;
#[cfg(feature = "sql")]
use crate::sql::Problem;

/// Reason that a stream ended before the end of its captures.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A capture could not be read.
    Scan(ScanError),
    /// A query failed.
    #[cfg(feature = "sql")]
    Query(Problem),
    /// The thread that reads could not be created.
    Thread(io::Error),
    /// The thread that reads ended without a result.
    Aborted,
    /// The stream was closed.
    Closed,
    /// A handler of a signal raised an exception, which has this text.
    Interrupted(String),
    /// The process is a copy (fork) of the one that began to read.
    Forked,
    /// The file object was read before.
    Consumed,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scan(error) => error.fmt(f),
            #[cfg(feature = "sql")]
            Self::Query(problem) => problem.fmt(f),
            Self::Thread(error) => write!(f, "the thread that reads cannot be created: {error}"),
            Self::Aborted => f.write_str("the thread that reads ended because of a defect of flowgauge"),
            Self::Closed => f.write_str("the stream is closed"),
            Self::Interrupted(raised) => write!(f, "interrupted: {raised}"),
            Self::Forked => {
                f.write_str("another process reads this stream; after a fork, read it from the beginning")
            }
            Self::Consumed => f.write_str("a stream of a file object can be read only once"),
        }
    }
}

impl Failure {
    /// Returns the exception.
    pub(crate) fn exception(self, py: Python<'_>) -> PyErr {
        let message = self.to_string();
        match &self {
            Self::Closed | Self::Consumed | Self::Forked => PyValueError::new_err(message),
            Self::Scan(error) => exception::of_scan(py, message, error),
            #[cfg(feature = "sql")]
            Self::Query(problem) => problem.exception(py),
            Self::Thread(_) | Self::Aborted | Self::Interrupted(_) => exception::of_text(message),
        }
    }
}

impl From<Failure> for ArrowError {
    /// Returns an error of input and output, whose message C can represent.
    fn from(failure: Failure) -> Self {
        let text = failure.to_string().replace('\0', "\u{fffd}");
        Self::IoError(text.clone(), io::Error::other(text))
    }
}
