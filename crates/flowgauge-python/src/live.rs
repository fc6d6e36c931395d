//! Captures on interfaces, as Python sees them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arguments::Arguments;
use crate::batch::Batch;
use crate::capsule;
use crate::failure::Failure;
use crate::interface::{Ring, Settings, Shared};
use crate::rows::names;
use crate::worker::{Captures, Reading, Run, Worker};

/// Starts a capture on an interface. `duration` is in nanoseconds. The Python package documents the arguments.
#[pyfunction]
#[pyo3(signature = (interface, duration, promiscuous, arguments))]
pub(crate) fn capture(
    py: Python<'_>,
    interface: &str,
    duration: Option<u64>,
    promiscuous: bool,
    arguments: Arguments,
) -> PyResult<Live> {
    let scan = arguments.scan().map_err(PyValueError::new_err)?;
    let shared = Shared::default();
    let settings = Settings { duration: duration.map(Duration::from_nanos), is_promiscuous: promiscuous };
    let run = Arc::new(Run::default());
    let started = Ring::open(interface, &settings, shared.clone())
        .map_err(|error| Failure::Scan(error.into()))
        .map(|ring| Reading::work(scan.clone(), Captures::Interface(Box::new(ring))))
        .and_then(|work| Worker::start(work, Arc::clone(&run)));
    let worker = started.map_err(|failure| failure.exception(py))?;
    let interface = interface.to_owned();
    Ok(Live { interface, schema: scan.schema(), worker: Mutex::new(Some(worker)), run, shared })
}

/// An iterator over batches of flows of an interface, while it is captured.
#[pyclass(frozen, module = "flowgauge")]
#[derive(Debug)]
pub(crate) struct Live {
    interface: String,
    schema: SchemaRef,
    /// `None` after the end, or if a consumer in C has it.
    worker: Mutex<Option<Worker>>,
    run: Arc<Run>,
    shared: Shared,
}

impl Live {
    /// Returns the worker, or an exception if another thread waits for the next batch: a wait for that thread would be one
    /// with Python.
    fn slot(&self) -> PyResult<MutexGuard<'_, Option<Worker>>> {
        match self.worker.try_lock() {
            Ok(slot) => Ok(slot),
            Err(TryLockError::Poisoned(slot)) => Ok(slot.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyValueError::new_err("another thread waits for the next batch"))
            }
        }
    }
}

#[pymethods]
impl Live {
    const fn __iter__(live: PyRef<'_, Self>) -> PyRef<'_, Self> {
        live
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut slot = self.slot()?;
        let Some(worker) = slot.as_mut() else { return Ok(None) };
        let failure = match worker.wait_with_signals(py)? {
            Some(Ok(batch)) => return Ok(Some(Batch(batch))),
            Some(Err(failure)) => Some(failure),
            None => None,
        };
        *slot = None;
        match failure {
            // The capture was closed, which ends it.
            None | Some(Failure::Closed) => Ok(None),
            Some(failure) => Err(failure.exception(py)),
        }
    }

    /// Returns a capsule with the Arrow C stream of the batches that follow, after the first of them arrived. The iterator
    /// then has no more. `requested_schema` is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let mut slot = self.slot()?;
        let closed = || Failure::Closed.exception(py);
        // A signal during the wait leaves the capture as it is.
        let first = capsule::first(py, slot.as_mut().ok_or_else(closed)?)?;
        let worker = slot.take().ok_or_else(closed)?;
        capsule::of_worker(py, Arc::clone(&self.schema), first, worker)
    }

    /// Returns a capsule with the Arrow C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::of_schema(py, &self.schema)
    }

    /// Names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        names(&self.schema)
    }

    /// Number of frames that the kernel dropped so far because its buffer was full.
    #[getter]
    fn drop_count(&self) -> u64 {
        self.shared.drop_count.load(Ordering::Relaxed)
    }

    /// Ends the capture. The flows that are open follow, then the iteration ends.
    fn stop(&self) {
        self.shared.is_ended.store(true, Ordering::Relaxed);
    }

    /// Ends the capture and the iteration. Flows that were not delivered are dropped.
    fn close(&self, py: Python<'_>) {
        self.run.stop();
        let slot = self.worker.try_lock();
        // Otherwise, a thread waits for the next batch, and drops the worker at the end.
        if let Some(worker) = slot.ok().and_then(|mut slot| slot.take()) {
            py.detach(|| drop(worker));
        }
    }

    const fn __enter__(live: PyRef<'_, Self>) -> PyRef<'_, Self> {
        live
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<flowgauge.Live: {}, {} columns>", self.interface, self.schema.fields().len())
    }
}
