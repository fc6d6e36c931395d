//! Objects of Python as tables of a query.

#![allow(unsafe_code, reason = "rows of other libraries, through the Arrow C stream interface")]

use std::sync::Arc;

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchReader as _};
use arrow_schema::SchemaRef;
use datafusion::catalog::{MemTable, TableProvider};
use flowgauge_arrow::scan::{Notify, Warning};
use flowgauge_sql::CaptureTable;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::exception;
use crate::live::Live;
use crate::stream::Stream;
use crate::table::Table;

/// A table of a query.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Captures, which each query reads.
    Captures(Box<CaptureTable>),
    /// Rows that another library holds.
    Rows(Arc<MemTable>),
}

impl Input {
    /// Reads the rows of an object of Python, unless it is a table of captures.
    pub(super) fn read(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(table) = object.cast::<Table>() {
            return Ok(Self::Captures(Box::new(table.get().provider().captures().clone())));
        }
        if object.is_instance_of::<Live>() {
            let text =
                format!("table {name:?}: a capture on an interface has no end; use one of its batches");
            return Err(PyTypeError::new_err(text));
        }
        let (py, method) = (object.py(), "__arrow_c_stream__");
        if let Ok(stream) = object.cast::<Stream>() {
            let (schema, batches) = stream.get().collect(py)?;
            return Self::of_rows(name, schema, batches);
        }
        if !object.hasattr(method)? {
            let kind = object.get_type().name()?;
            let text = format!("table {name:?}: {kind} has no {method}, so that it is no Arrow data");
            return Err(PyTypeError::new_err(text));
        }
        let capsule = object.call_method0(method)?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
        let failed = |error: &dyn std::fmt::Display| exception::of_text(format!("table {name:?}: {error}"));
        // SAFETY: the Arrow PyCapsule interface states that a capsule of this name points to an initialized
        // `ArrowArrayStream`, which it owns. The capsule lives until the end of this function, and the current thread is
        // attached to Python, so that nobody else uses the structure. `from_raw` moves its contents and leaves a released
        // structure, which the destructor of the capsule does not release again.
        let reader = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
        let mut reader = reader.map_err(|error| failed(&error))?;
        let schema = reader.schema();
        let mut batches = Vec::new();
        loop {
            py.check_signals()?;
            match py.detach(|| reader.next()) {
                Some(batch) => batches.push(batch.map_err(|error| failed(&error))?),
                None => break,
            }
        }
        Self::of_rows(name, schema, batches)
    }

    fn of_rows(name: &str, schema: SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Self> {
        let rows = MemTable::try_new(schema, vec![batches]);
        let rows = rows.map_err(|error| PyValueError::new_err(format!("table {name:?}: {error}")))?;
        Ok(Self::Rows(Arc::new(rows)))
    }

    /// Returns the table of a query that reports damage of captures to `warning`.
    pub(super) fn provider(&self, warning: &Notify<Warning>) -> Arc<dyn TableProvider> {
        match self {
            Self::Captures(table) => Arc::new(CaptureTable::clone(table).with_warning(Arc::clone(warning))),
            Self::Rows(rows) => Arc::clone(rows) as Arc<dyn TableProvider>,
        }
    }
}
