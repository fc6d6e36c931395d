//! Rows as dictionaries.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::value::value;
use crate::worker::Worker;

/// Returns the names of the columns of a schema.
pub(crate) fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn interned(py: Python<'_>, names: &[String]) -> Vec<Py<PyString>> {
    names.iter().map(|name| PyString::intern(py, name).unbind()).collect()
}

/// An iterator over the rows of a stream.
#[pyclass(module = "flowgauge")]
pub(crate) struct Rows {
    /// `None` if the batch is the only one.
    worker: Option<Mutex<Worker>>,
    names: Vec<Py<PyString>>,
    batch: Option<RecordBatch>,
    /// Number of rows of the batch that were returned.
    row_count: usize,
}

impl Rows {
    pub(crate) fn new(py: Python<'_>, worker: Worker, names: &[String]) -> Self {
        Self { worker: Some(Mutex::new(worker)), names: interned(py, names), batch: None, row_count: 0 }
    }

    /// Returns the rows of a batch.
    pub(crate) fn of_batch(py: Python<'_>, batch: RecordBatch) -> Self {
        let names = names(batch.schema_ref());
        Self { worker: None, names: interned(py, &names), batch: Some(batch), row_count: 0 }
    }
}

#[pymethods]
impl Rows {
    const fn __iter__(rows: PyRef<'_, Self>) -> PyRef<'_, Self> {
        rows
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        while self.batch.as_ref().is_none_or(|batch| batch.num_rows() == self.row_count) {
            self.batch = None;
            let Some(worker) = &mut self.worker else { return Ok(None) };
            let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
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
