//! Streams, as Python sees them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use flowgauge::source;
use flowgauge_arrow::scan::Scan;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyCapsule;

use crate::arguments::Arguments;
use crate::capsule;
use crate::failure::Failure;
use crate::object::{Object, Octets};
use crate::rows::{Rows, names};
use crate::worker::{Captures, Run, Worker};

/// The captures of a stream.
#[derive(Debug, FromPyObject)]
pub(crate) enum Input {
    /// Octets of one capture.
    #[pyo3(transparent)]
    Octets(PyBackedBytes),
    /// Paths of files.
    #[pyo3(transparent)]
    Paths(Vec<PathBuf>),
    /// A file object.
    #[pyo3(transparent)]
    Object(Py<PyAny>),
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
    Ok(Stream { scan, source: input, state: Mutex::default() })
}

/// Returns an error if the metadata of a file cannot be read.
fn exists(path: PathBuf) -> Result<(), Failure> {
    match std::fs::metadata(&path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Scan(source::Error::Io { path, error: error.into() }.into())),
    }
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

/// The rows of captures. Each consumer reads the captures from their beginning, except a file object, which can be read
/// only once.
#[pyclass(frozen, module = "flowgauge")]
#[derive(Debug)]
pub(crate) struct Stream {
    scan: Scan,
    source: Source,
    state: Mutex<State>,
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> Vec<String> {
        names(&self.scan.schema())
    }

    /// Starts a run.
    fn start(&self, py: Python<'_>) -> Result<Worker, Failure> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Failure::Closed);
        }
        let captures = match &self.source {
            Source::Octets(octets) => Captures::Octets(octets.clone()),
            Source::Paths(paths) => Captures::Paths(paths.clone()),
            Source::Object(..) if state.latest.is_some() => return Err(Failure::Consumed),
            Source::Object(object, name) => Captures::Object(Object(object.clone_ref(py)), name.clone()),
        };
        let run = Arc::new(Run::default());
        state.runs.retain(|run| run.strong_count() > 0);
        state.runs.push(Arc::downgrade(&run));
        state.latest = Some(Arc::clone(&run));
        Worker::start(self.scan.clone(), captures, run)
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
        let worker = self.start(py).map_err(|failure| failure.exception(py))?;
        capsule::of_worker(py, self.scan.schema(), worker)
    }

    /// Returns a capsule with the Arrow C schema. Reads nothing.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_schema(py, &self.scan.schema())
    }

    /// Returns an iterator over the rows as dictionaries.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        let worker = self.start(py).map_err(|failure| failure.exception(py))?;
        Ok(Rows::new(py, worker, &self.names()))
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
        let table = self.scan.table();
        let kind = table.kind().map_or_else(String::new, |kind| format!(" of {kind}"));
        format!("<flowgauge.Stream: {}{kind}, {} columns>", table.function(), self.names().len())
    }
}
