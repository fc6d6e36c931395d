//! Errors of queries.

use std::fmt;

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use flowgauge_arrow::scan::ScanError;
use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, Python};

use crate::exception;

/// The reason that a query failed.
#[derive(Debug)]
pub(crate) struct Problem(DataFusionError);

impl From<DataFusionError> for Problem {
    fn from(error: DataFusionError) -> Self {
        Self(error)
    }
}

impl Problem {
    /// Returns the exception: that of a capture as another stream has it, and `ValueError` for what the query states.
    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        let message = self.to_string();
        match self.0.find_root() {
            DataFusionError::External(error) => match error.downcast_ref::<ScanError>() {
                Some(error) => exception::of_scan(py, message, error),
                None => exception::of_text(message),
            },
            DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Configuration(_)
            | DataFusionError::Execution(_) => PyValueError::new_err(message),
            DataFusionError::ArrowError(error, _)
                if !matches!(**error, ArrowError::IoError(..) | ArrowError::MemoryError(_)) =>
            {
                PyValueError::new_err(message)
            }
            _ => exception::of_text(message),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.find_root() {
            DataFusionError::SQL(error, _) => {
                let text = error.to_string();
                f.write_str(text.trim_start_matches("sql parser error: "))
            }
            DataFusionError::External(error) => error.fmt(f),
            root => f.write_str(&root.message()),
        }
    }
}
