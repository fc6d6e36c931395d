//! Captures of a scan: files, and objects in object storage.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use flowgauge::source::Storage;
use futures::future::BoxFuture;

use crate::location::Location;

/// A capture, and its length in octets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capture {
    /// Path of the file, or URL of the object.
    pub path: PathBuf,
    /// Length in octets, by which work is distributed.
    pub len: u64,
    /// Version of the object in object storage; `None` for a file.
    pub object: Option<ObjectVersion>,
}

/// Version of an object in object storage when it was listed. An object that has another one when it is read is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectVersion {
    /// ETag of the object, if the store has one.
    pub e_tag: Option<String>,
    /// Identifier of the version, if the store keeps versions.
    pub version: Option<String>,
}

impl ObjectVersion {
    /// Creates a version, with the ETag and the identifier that the store has reported.
    #[must_use]
    pub const fn new(e_tag: Option<String>, version: Option<String>) -> Self {
        Self { e_tag, version }
    }
}

impl Capture {
    /// Creates a capture in a file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, len: u64) -> Self {
        Self { path: path.into(), len, object: None }
    }

    /// Creates a capture in object storage.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not that of an object, or contains credentials, which the message does not repeat.
    pub fn in_storage(url: impl Into<String>, len: u64, version: ObjectVersion) -> Result<Self> {
        let url = url.into();
        match Location::of(&url)? {
            Location::Object(_) => Ok(Self { path: url.into(), len, object: Some(version) }),
            Location::File(_) => {
                Err(DataFusionError::Execution(format!("{url}: is not the URL of an object")))
            }
        }
    }
}

/// The objects among the captures of a scan, and the future that requests their octets until their readers are dropped.
pub(crate) struct OpenedObjects {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) requests: BoxFuture<'static, ()>,
}

/// The captures that one thread reads, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Captures {
    pub(crate) files: Vec<Capture>,
    pub(crate) len: u64,
}

impl From<Vec<Capture>> for Captures {
    fn from(files: Vec<Capture>) -> Self {
        let len = files.iter().fold(0, |len: u64, capture| len.saturating_add(capture.len));
        Self { files, len }
    }
}
