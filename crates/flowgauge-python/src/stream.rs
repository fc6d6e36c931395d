//! Streams, as Python sees them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[cfg(feature = "sql")]
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use flowgauge_arrow::scan::Scan;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyList};

use crate::arguments::{Arguments, exists};
use crate::capsule;
use crate::failure::Failure;
use crate::object::{Object, Octets};
use crate::rows::{Rows as RowIterator, names};
use crate::sql::{Query, Settings};
use crate::worker::{Captures, Reading, Run, Worker};

/// The captures of a stream.
#[derive(Debug, FromPyObject)]
pub(crate) enum Input {
    /// Octets of one capture.
    #[pyo3(transparent)]
    Octets(PyBackedBytes),
    /// Paths of files.
    #[pyo3(transparent)]
    Paths(#[pyo3(from_py_with = list)] Vec<PathBuf>),
    /// A file object.
    #[pyo3(transparent)]
    Object(Py<PyAny>),
}

/// Returns the paths of a list. Some file objects are sequences too, such as those of `mmap`.
fn list(object: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    object.cast::<PyList>()?.extract()
}

/// Opens a stream. The Python package documents the arguments.
#[pyfunction]
#[pyo3(signature = (captures, name, arguments))]
pub(crate) fn open(
    py: Python<'_>,
    captures: Input,
    name: Option<String>,
    arguments: Arguments,
) -> PyResult<Stream> {
    let scan = arguments.scan().map_err(PyValueError::new_err)?;
    let input = match captures {
        Input::Octets(octets) => Source::Octets(Octets(Arc::new(octets))),
        Input::Paths(paths) => {
            for path in &paths {
                exists(path.clone()).map_err(|failure| failure.exception(py))?;
            }
            Source::Paths(paths)
        }
        Input::Object(object) => Source::Object(object, name),
    };
    Ok(Stream { rows: Rows::Captures(Box::new(scan), input), state: Mutex::default() })
}

/// Opens the stream of the result of a query. The Python package documents the arguments.
#[pyfunction]
#[pyo3(signature = (text, tables, settings))]
pub(crate) fn query(
    py: Python<'_>,
    text: String,
    tables: Vec<(String, Bound<'_, PyAny>)>,
    settings: Settings,
) -> PyResult<Stream> {
    let query = Arc::new(Query::open(py, text, tables, settings)?);
    Ok(Stream { rows: Rows::Query(query), state: Mutex::default() })
}

/// Where the rows of a stream are from.
#[derive(Debug)]
enum Rows {
    Captures(Box<Scan>, Source),
    Query(Arc<Query>),
}

#[derive(Debug)]
enum Source {
    Octets(Octets),
    Paths(Vec<PathBuf>),
    Object(Py<PyAny>, Option<String>),
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// Runs that have not ended, and a few that have.
    runs: Vec<Weak<Run>>,
    /// The latest run.
    latest: Option<Arc<Run>>,
}

/// The rows of captures or of a query. Each consumer reads the captures from their beginning, except a file object, which
/// can be read only once.
#[pyclass(frozen, module = "flowgauge")]
#[derive(Debug)]
pub(crate) struct Stream {
    rows: Rows,
    state: Mutex<State>,
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schema(&self) -> SchemaRef {
        match &self.rows {
            Rows::Captures(scan, _) => scan.schema(),
            Rows::Query(query) => query.schema(),
        }
    }

    fn names(&self) -> Vec<String> {
        names(&self.schema())
    }

    /// Reads all batches, detached from Python, and processes signals.
    #[cfg(feature = "sql")]
    pub(crate) fn collect(&self, py: Python<'_>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
        let mut worker = self.start(py).map_err(|failure| failure.exception(py))?;
        let mut batches = Vec::new();
        while let Some(batch) = worker.wait_with_signals(py)? {
            batches.push(batch.map_err(|failure| failure.exception(py))?);
        }
        Ok((self.schema(), batches))
    }

    /// Starts a run.
    fn start(&self, py: Python<'_>) -> Result<Worker, Failure> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Failure::Closed);
        }
        let (run, work) = match &self.rows {
            Rows::Captures(scan, source) => {
                let captures = match source {
                    Source::Octets(octets) => Captures::Octets(octets.clone()),
                    Source::Paths(paths) => Captures::Paths(paths.clone()),
                    Source::Object(..) if state.latest.is_some() => return Err(Failure::Consumed),
                    Source::Object(object, name) => Captures::Object(Object::new(py, object), name.clone()),
                };
                (Arc::default(), Reading::work(Scan::clone(scan), captures))
            }
            Rows::Query(query) => query.work(),
        };
        state.runs.retain(|run| run.strong_count() > 0);
        state.runs.push(Arc::downgrade(&run));
        state.latest = Some(Arc::clone(&run));
        Worker::start(work, run)
    }
}

#[pymethods]
impl Stream {
    /// Returns a capsule with the Arrow C stream, after the first batch was computed. `requested_schema` is ignored, as
    /// the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let mut worker = self.start(py).map_err(|failure| failure.exception(py))?;
        let first = capsule::first(py, &mut worker)?;
        capsule::of_worker(py, self.schema(), first, worker)
    }

    /// Returns a capsule with the Arrow C schema. Reads nothing.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_schema(py, &self.schema())
    }

    /// Returns an iterator over the rows as dictionaries.
    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        let names = self.names();
        let mut known = HashSet::new();
        if let Some(name) = names.iter().find(|name| !known.insert(name.as_str())) {
            let text =
                format!("the result has several columns {name:?}, but a row can have only one; use AS");
            return Err(PyValueError::new_err(text));
        }
        let worker = self.start(py).map_err(|failure| failure.exception(py))?;
        Ok(RowIterator::new(py, worker, &names))
    }

    /// Names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    /// Damage at which reading of a capture ended, one text for each, of the latest consumer so far.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.state().latest.as_ref().map_or_else(Vec::new, |run| run.warnings())
    }

    /// Ends reading. Consumers that have not read the stream to its end receive an error.
    fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.runs.drain(..).filter_map(|run| run.upgrade()).for_each(|run| run.stop());
    }

    const fn __enter__(stream: PyRef<'_, Self>) -> PyRef<'_, Self> {
        stream
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        let Rows::Captures(scan, _) = &self.rows else {
            return format!("<flowgauge.Stream: query, {} columns>", self.names().len());
        };
        let table = scan.table();
        let kind = table.kind().map_or_else(String::new, |kind| format!(" of {kind}"));
        format!("<flowgauge.Stream: {}{kind}, {} columns>", table.function(), self.names().len())
    }
}
