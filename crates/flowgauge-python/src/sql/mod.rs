//! SQL over captures with DataFusion, in builds with the feature `sql`.

#[cfg(feature = "sql")]
mod context;
#[cfg(feature = "sql")]
mod input;
#[cfg(feature = "sql")]
mod problem;
#[cfg(feature = "sql")]
mod provider;
#[cfg(feature = "sql")]
mod query;
#[cfg(not(feature = "sql"))]
mod unsupported;

#[cfg(feature = "sql")]
pub(crate) use {problem::Problem, provider::Provider, query::Query};

#[cfg(not(feature = "sql"))]
pub(crate) use unsupported::{Provider, Query};

use std::num::NonZeroUsize;

use pyo3::FromPyObject;

/// Settings of a query, from a mapping that the Python package has checked for types and ranges.
#[derive(Clone, Copy, Debug, FromPyObject)]
#[pyo3(from_item_all)]
#[cfg_attr(not(feature = "sql"), allow(dead_code, reason = "queries are refused"))]
pub(crate) struct Settings {
    /// Memory limit of sorting, grouping, joins and captures in octets.
    memory: Option<u64>,
    /// Number of threads; that of the processors by default.
    threads: Option<NonZeroUsize>,
    /// Maximum number of rows of a batch.
    batch_size: NonZeroUsize,
}
