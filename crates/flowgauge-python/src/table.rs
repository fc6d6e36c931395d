//! Tables of captures for query engines, as Python sees them.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arguments::{Arguments, exists};
use crate::rows::names;
use crate::sql::Provider;

/// Creates a table. The Python package documents the arguments.
#[pyfunction]
#[pyo3(signature = (captures, arguments))]
pub(crate) fn table(py: Python<'_>, captures: Vec<PathBuf>, arguments: Arguments) -> PyResult<Table> {
    let kind = arguments.table().map_err(PyValueError::new_err)?;
    let config = arguments.config(kind).map_err(PyValueError::new_err)?;
    for path in &captures {
        exists(path.clone()).map_err(|failure| failure.exception(py))?;
    }
    Ok(Table(Provider::new(kind, captures, config)?))
}

/// The rows of captures, which a query engine reads with the columns, conditions and limit of its query.
#[pyclass(frozen, module = "flowgauge")]
#[derive(Debug)]
pub(crate) struct Table(Provider);

impl Table {
    /// Returns the table.
    #[cfg(feature = "sql")]
    pub(crate) const fn provider(&self) -> &Provider {
        &self.0
    }
}

#[pymethods]
impl Table {
    /// Names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        names(&self.0.schema())
    }

    /// Damage at which reading of a capture ended, one text for each, of the queries of other packages so far.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }

    /// Returns a capsule with the table, for a session of the package datafusion. Reads nothing.
    #[pyo3(signature = (session))]
    fn __datafusion_table_provider__<'py>(
        &self,
        session: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.0.capsule(session)
    }

    fn __repr__(&self) -> String {
        let table = self.0.table();
        let kind = table.kind().map_or_else(String::new, |kind| format!(" of {kind}"));
        format!("<flowgauge.Table: {}{kind}, {} columns>", table.function(), self.columns().len())
    }
}
