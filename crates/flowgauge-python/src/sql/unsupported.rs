//! Builds without SQL.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use flowgauge_arrow::scan::{ScanConfig, Table};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::Settings;
use crate::worker::{Run, Work};

fn unsupported() -> PyErr {
    PyNotImplementedError::new_err(
        "this build of the package does not support SQL; build it with `maturin build --features sql`",
    )
}

/// A query, which cannot be opened.
#[derive(Debug)]
pub(crate) enum Query {}

impl Query {
    pub(crate) fn open(
        _: Python<'_>,
        _: String,
        _: Vec<(String, Bound<'_, PyAny>)>,
        _: Settings,
    ) -> PyResult<Self> {
        Err(unsupported())
    }

    pub(crate) const fn schema(&self) -> SchemaRef {
        match *self {}
    }

    pub(crate) fn work(self: &Arc<Self>) -> (Arc<Run>, Box<dyn Work>) {
        match **self {}
    }
}

/// A table for query engines, which cannot be created.
#[derive(Debug)]
pub(crate) enum Provider {}

impl Provider {
    pub(crate) fn new(_: Table, _: Vec<PathBuf>, _: ScanConfig) -> PyResult<Self> {
        Err(unsupported())
    }

    pub(crate) const fn schema(&self) -> SchemaRef {
        match *self {}
    }

    pub(crate) const fn table(&self) -> Table {
        match *self {}
    }

    pub(crate) const fn warnings(&self) -> Vec<String> {
        match *self {}
    }

    pub(crate) const fn capsule<'py>(&self, _: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        match *self {}
    }
}
