//! Builds without SQL.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use flowgauge_arrow::scan::{ScanConfig, Table};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::Settings;
use crate::failure::Failure;
use crate::worker::{Run, Task};

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

    pub(crate) fn task(self: &Arc<Self>) -> (Arc<Run>, Task) {
        match **self {}
    }
}

/// The execution of a query.
#[derive(Debug)]
pub(crate) enum Execution {}

impl Execution {
    pub(crate) const fn query(&self) -> Arc<Query> {
        match *self {}
    }

    pub(crate) const fn run(
        self,
        _: &Arc<Run>,
        _: impl Fn(RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        match self {}
    }
}

/// The reason that a query failed.
#[derive(Debug)]
pub(crate) enum Problem {}

impl Problem {
    pub(crate) const fn exception(&self, _: Python<'_>) -> PyErr {
        match *self {}
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
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
