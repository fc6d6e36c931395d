//! Errors of captures, as exceptions.

use std::io;
use std::path::{Path, PathBuf};

use flowgauge::record_file::RecordProblemKind;
use flowgauge::source;
use flowgauge_arrow::scan::ScanError;
use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, Python};

use crate::object::Raised;

mod exceptions {
    //! The exceptions that the Python package declares.
    #![allow(missing_docs, reason = "the macro documents the type, but not its function")]

    pyo3::import_exception!(flowgauge._errors, Error);
    pyo3::import_exception!(flowgauge._errors, MissingFileError);
    pyo3::import_exception!(flowgauge._errors, MissingPermissionError);
}

/// Number of the error that a file does not exist.
const ENOENT: i32 = 2;

/// Returns the exception without a file.
pub(crate) fn of_text(message: String) -> PyErr {
    exceptions::Error::new_err(message)
}

/// Returns the exception of an error of a scan.
pub(crate) fn of_scan(py: Python<'_>, message: String, error: &ScanError) -> PyErr {
    match error {
        ScanError::Filter => PyValueError::new_err(message),
        ScanError::Pipeline(flowgauge::Error::Config(_) | flowgauge::Error::Filter(_)) => {
            PyValueError::new_err(message)
        }
        ScanError::Pipeline(flowgauge::Error::Source(error)) => of_source(py, message, error),
        ScanError::Records(problem) => match &problem.kind {
            RecordProblemKind::Source(error) => of_source(py, message, error),
            _ => exceptions::Error::new_err((message, of_file(&problem.path))),
        },
        ScanError::RecordsOnly { path, .. } | ScanError::CapturesOnly { path, .. } => {
            exceptions::Error::new_err((message, of_file(path)))
        }
        _ => of_text(message),
    }
}

/// Returns the exception of an error of a source, with the exception of a file object as its cause.
pub(crate) fn of_source(py: Python<'_>, message: String, error: &source::Error) -> PyErr {
    if let source::Error::Permission { .. } = error {
        return exceptions::MissingPermissionError::new_err(message);
    }
    let path = path(error);
    let source::Error::Io { error, .. } = error else {
        return exceptions::Error::new_err((message, path));
    };
    if error.kind() == io::ErrorKind::NotFound {
        // A pattern without files has no error of the operating system.
        let number = error.raw_os_error().unwrap_or(ENOENT);
        return exceptions::MissingFileError::new_err((message, path, number));
    }
    let arguments = (message, path, error.raw_os_error());
    let exception = exceptions::Error::new_err(arguments);
    let raised = error.get_ref().and_then(|inner| inner.downcast_ref::<Raised>());
    if let Some(cause) = raised.and_then(Raised::take) {
        exception.set_cause(py, Some(cause));
    }
    exception
}

/// Returns a path, unless it is that of a reader.
fn of_file(path: &Path) -> Option<PathBuf> {
    (path != Path::new("(stream)")).then(|| path.to_owned())
}

/// Returns the path of an error, unless it is that of a reader.
fn path(error: &source::Error) -> Option<PathBuf> {
    use source::Error;
    match error {
        Error::Io { path, .. }
        | Error::Directory { path }
        | Error::Empty { path }
        | Error::NotACapture { path, .. }
        | Error::Compressed { path, .. }
        | Error::Indivisible { path }
        | Error::Version { path, .. }
        | Error::TooManyOpenFiles { path, .. }
        | Error::ZstdWindow { path, .. }
        | Error::Memory { path, .. } => of_file(path),
        _ => None,
    }
}
