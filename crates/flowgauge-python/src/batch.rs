//! Batches, as Python sees them.

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule;
use crate::rows::{Rows, names};

/// Rows that were delivered together.
#[pyclass(frozen, module = "flowgauge")]
#[derive(Debug)]
pub(crate) struct Batch(pub(crate) RecordBatch);

#[pymethods]
impl Batch {
    /// Names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        names(self.0.schema_ref())
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns an iterator over the rows as dictionaries.
    fn __iter__(&self, py: Python<'_>) -> Rows {
        Rows::of_batch(py, self.0.clone())
    }

    /// Returns the capsules of the Arrow C schema and array. `requested_schema` is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        Ok((capsule::of_schema(py, self.0.schema_ref())?, capsule::of_batch(py, &self.0)?))
    }

    /// Returns a capsule with the Arrow C stream of this batch. `requested_schema` is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsule::of_one(py, &self.0)
    }

    /// Returns a capsule with the Arrow C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_schema(py, self.0.schema_ref())
    }

    fn __repr__(&self) -> String {
        format!("<flowgauge.Batch: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }
}
