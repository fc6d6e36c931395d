//! Captures in Python objects.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// Octets of a `bytes` object, which are not copied.
#[derive(Clone, Debug)]
pub(crate) struct Octets(pub(crate) Arc<PyBackedBytes>);

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// An exception that a file object raised, with its text, so that threads without Python can display it.
#[derive(Debug)]
pub(crate) struct Raised {
    text: String,
    exception: Mutex<Option<PyErr>>,
}

impl Raised {
    fn new(py: Python<'_>, exception: PyErr) -> Self {
        let kind = exception.get_type(py).name().map_or_else(|_| String::new(), |name| format!("{name}: "));
        Self { text: format!("{kind}{}", exception.value(py)), exception: Mutex::new(Some(exception)) }
    }

    /// Returns the exception, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.exception.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

/// A binary file object. Each read attaches the thread to Python.
#[derive(Debug)]
pub(crate) struct Object {
    file: Py<PyAny>,
    /// `read1`, which returns what a pipe has, or `read` if the object has no such method.
    method: &'static str,
}

impl Object {
    pub(crate) fn new(py: Python<'_>, file: &Py<PyAny>) -> Self {
        let has_single_reads = file.bind(py).hasattr("read1").unwrap_or(false);
        Self { file: file.clone_ref(py), method: if has_single_reads { "read1" } else { "read" } }
    }

    fn read(&self, py: Python<'_>, target: &mut [u8]) -> PyResult<usize> {
        let octets = self.file.bind(py).call_method1(self.method, (target.len(),))?;
        let octets: PyBackedBytes = octets.extract()?;
        let source: &[u8] = &octets;
        let Some(target) = target.get_mut(..source.len()) else {
            let text = format!(
                "{}({}) of the file object returned {} octets",
                self.method,
                target.len(),
                source.len()
            );
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        };
        target.copy_from_slice(source);
        Ok(source.len())
    }
}

impl io::Read for Object {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = Python::try_attach(|py| {
            Self::read(self, py, target).map_err(|exception| io::Error::other(Raised::new(py, exception)))
        });
        read.unwrap_or_else(|| Err(io::Error::other("the interpreter is shutting down")))
    }
}
