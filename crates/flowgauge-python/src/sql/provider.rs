//! Tables for the Python package of DataFusion, which is another library: its functions and ours exchange structures of C.

#![allow(unsafe_code, reason = "structures of another library, in capsules of Python")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use datafusion::DATAFUSION_VERSION;
use datafusion::catalog::TableProvider as _;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use flowgauge_arrow::scan::{ScanConfig, Table};
use flowgauge_sql::CaptureTable;
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::failure::Failure;

/// Number of threads that poll the streams of all queries. Captures are read by threads of their own.
const THREAD_COUNT: usize = 1;

/// The threads of all tables.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Returns the threads of all tables, which are created for the first of them.
fn runtime() -> Result<Handle, Failure> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = &*slot {
        return Ok(runtime.handle().clone());
    }
    let mut threads = Builder::new_multi_thread();
    let threads = threads.worker_threads(THREAD_COUNT).thread_name("flowgauge").enable_time();
    let created = threads.build().map_err(Failure::Thread)?;
    let handle = created.handle().clone();
    *slot = Some(created);
    Ok(handle)
}

/// A table of captures.
#[derive(Debug)]
pub(crate) struct Provider {
    captures: CaptureTable,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    pub(crate) fn new(table: Table, paths: Vec<PathBuf>, config: ScanConfig) -> PyResult<Self> {
        let paths = paths.into_iter().map(|path| {
            let text = path.into_os_string().into_string();
            text.map_err(|path| PyValueError::new_err(format!("{path:?}: a path of a table must be UTF-8")))
        });
        let warnings = Arc::<Mutex<Vec<String>>>::default();
        let warned = Arc::clone(&warnings);
        let captures = CaptureTable::new(table, paths.collect::<PyResult<Vec<_>>>()?, config);
        let captures = captures.with_warning(Arc::new(move |warning| {
            let (text, mut all) =
                (warning.to_string(), warned.lock().unwrap_or_else(PoisonError::into_inner));
            // Each query finds the same damage.
            if !all.contains(&text) {
                all.push(text);
            }
        }));
        Ok(Self { captures, warnings })
    }

    /// Returns the table.
    pub(crate) const fn captures(&self) -> &CaptureTable {
        &self.captures
    }

    /// Returns the columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.captures.schema()
    }

    /// Returns the kind of rows.
    pub(crate) const fn table(&self) -> Table {
        self.captures.table()
    }

    /// Returns the damage that queries of other packages found so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a capsule with the table, for a session of DataFusion.
    pub(crate) fn capsule<'py>(&self, session: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        let py = session.py();
        let codec = codec(session)?;
        let runtime = runtime().map_err(|failure| failure.exception(py))?;
        let table = Arc::new(self.captures.clone());
        let provider = FFI_TableProvider::new_with_ffi_codec(table, true, Some(runtime), codec);
        PyCapsule::new_with_value(py, provider, c"datafusion_table_provider")
    }
}

/// Returns what encodes the conditions of queries, and finds the functions of the session.
fn codec(session: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    let py = session.py();
    let version: String = py.import("datafusion")?.getattr("__version__")?.extract()?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&version) != major(DATAFUSION_VERSION) {
        let text = format!(
            "the package datafusion has version {version}, and the tables of flowgauge are of {DATAFUSION_VERSION}"
        );
        return Err(PyImportError::new_err(text));
    }
    let method = "__datafusion_logical_extension_codec__";
    let capsule = if session.hasattr(method)? { session.call_method0(method)? } else { session.clone() };
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let codec = capsule.pointer_checked(Some(c"datafusion_logical_extension_codec"))?;
    // SAFETY: the package datafusion states that a capsule of this name points to an initialized
    // `FFI_LogicalExtensionCodec`, which it owns, and whose layout is the same in all versions with the same first number.
    // The capsule lives until the end of this function, and the structure is not changed: cloning reads it, and calls the
    // function that it has for that.
    let codec = unsafe { codec.cast::<FFI_LogicalExtensionCodec>().as_ref() };
    Ok(codec.clone())
}
