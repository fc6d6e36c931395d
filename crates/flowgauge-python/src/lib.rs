//! The extension module of the Python package `flowgauge`. The package checks the types of arguments; this module opens
//! the scan, and passes its batches to Python through the Arrow PyCapsule interface.

#![warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)]

mod arguments;
mod attachment;
mod batch;
mod capsule;
mod exception;
mod failure;
mod interface;
mod live;
mod object;
mod rows;
mod sql;
mod stream;
mod table;
mod value;
mod worker;

use pyo3::pymodule;

/// Scans of captures as Arrow streams.
#[pymodule]
mod _flowgauge {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::live::{Live, capture};
    #[pymodule_export]
    use crate::stream::{Stream, open, query};
    #[pymodule_export]
    use crate::table::{Table, table};
}
