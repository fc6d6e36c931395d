//! Rows as dictionaries.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::value::value;
use crate::worker::Worker;

/// An iterator over the rows of a stream.
#[pyclass(module = "flowgauge")]
pub(crate) struct Rows {
    worker: Mutex<Worker>,
    names: Vec<Py<PyString>>,
    batch: Option<RecordBatch>,
    /// Number of rows of the batch that were returned.
    row_count: usize,
}

impl Rows {
    pub(crate) fn new(py: Python<'_>, worker: Worker, names: &[String]) -> Self {
        let names = names.iter().map(|name| PyString::intern(py, name).unbind()).collect();
        Self { worker: Mutex::new(worker), names, batch: None, row_count: 0 }
    }
}

#[pymethods]
impl Rows {
    const fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        while self.batch.as_ref().is_none_or(|batch| batch.num_rows() == self.row_count) {
            let worker = self.worker.get_mut().unwrap_or_else(PoisonError::into_inner);
            self.batch = None;
            match worker.wait_with_signals(py)? {
                Some(Ok(batch)) => self.batch = Some(batch),
                Some(Err(failure)) => return Err(failure.exception(py)),
                None => return Ok(None),
            }
            self.row_count = 0;
        }
        let Some(batch) = &self.batch else { return Ok(None) };
        let row = PyDict::new(py);
        for (name, column) in self.names.iter().zip(batch.columns()) {
            row.set_item(name, value(py, column, self.row_count)?)?;
        }
        self.row_count += 1;
        Ok(Some(row))
    }
}
