//! Capsules of the Arrow PyCapsule interface.

use std::fmt;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array as _, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::attachment::is_attached;
use crate::failure::Failure;
use crate::worker::Worker;

type Capsule<'py> = PyResult<Bound<'py, PyCapsule>>;

/// Returns the capsule of a schema.
pub(crate) fn of_schema<'py>(py: Python<'py>, schema: &Schema) -> Capsule<'py> {
    let schema = FFI_ArrowSchema::try_from(schema);
    let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Returns the capsule of an array of groups, which are the rows of a batch.
pub(crate) fn of_batch<'py>(py: Python<'py>, batch: &RecordBatch) -> Capsule<'py> {
    let array = FFI_ArrowArray::new(&StructArray::from(batch.clone()).into_data());
    PyCapsule::new_with_value(py, array, c"arrow_array")
}

/// Returns the capsule of a stream of one batch.
pub(crate) fn of_one<'py>(py: Python<'py>, batch: &RecordBatch) -> Capsule<'py> {
    let batches = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    stream(py, Box::new(batches))
}

/// Waits for the first batch of a run; returns `None` if there is none.
pub(crate) fn first(py: Python<'_>, worker: &mut Worker) -> PyResult<Option<RecordBatch>> {
    match worker.wait_with_signals(py)? {
        Some(Err(failure)) => Err(failure.exception(py)),
        Some(Ok(batch)) => Ok(Some(batch)),
        None => Ok(None),
    }
}

/// Returns the capsule of the batches of a run, of which the first was computed.
pub(crate) fn of_worker<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    first: Option<RecordBatch>,
    worker: Worker,
) -> Capsule<'py> {
    stream(py, Box::new(Batches { schema, first, worker }))
}

fn stream<'py>(py: Python<'py>, batches: Box<dyn RecordBatchReader + Send>) -> Capsule<'py> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}

/// The batches of a run, for consumers in C.
struct Batches {
    schema: SchemaRef,
    first: Option<RecordBatch>,
    worker: Worker,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl Batches {
    fn wait(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let worker = &mut self.worker;
        // A consumer that waits while it is attached would block all other threads of Python, one of which may write to
        // the pipe that is read. A consumer that is not attached must not attach, because another thread may wait for it
        // with Python. If that is unknown, the read of a file object must at least not be blocked.
        let waited = if is_attached().unwrap_or(worker.needs_python()) {
            Python::try_attach(|py| worker.wait_with_signals(py).map_err(|raised| raised.to_string()))
        } else {
            Some(Ok(worker.wait()))
        };
        match waited {
            Some(Ok(item)) => item.map(|item| item.map_err(ArrowError::from)),
            Some(Err(raised)) => {
                // An exception without a text ends with a colon.
                let raised = raised.trim_end_matches(": ").to_owned();
                Some(Err(Failure::Interrupted(raised).into()))
            }
            None => Some(Err(Failure::Closed.into())),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.first.take() {
            Some(batch) => Some(Ok(batch)),
            None => self.wait(),
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
