//! SQL over captures: tables of flows, packets, messages, transactions, findings and hosts for
//! [DataFusion](https://docs.rs/datafusion).
//!
//! ```
//! use datafusion::prelude::SessionContext;
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
//! # runtime.block_on(async {
//! let context = SessionContext::new();
//! flowgauge_sql::register(&context)?;
//! let query = "SELECT application, count(*) AS flows, sum(octet_count) AS octets
//!              FROM flows('../../examples/data/web.pcap') GROUP BY application ORDER BY octets DESC";
//! let batches = context.sql(query).await?.collect().await?;
//! assert!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>() > 1);
//! # Ok::<(), datafusion::error::DataFusionError>(())
//! # }).unwrap();
//! ```
//!
//! | table | rows |
//! |---|---|
//! | `flows(CAPTURES, ...)` | flow records |
//! | `packets(CAPTURES, ...)` | packets of flows |
//! | `messages(PROTOCOL, CAPTURES, ...)` | messages of a protocol, such as `'dns'`, or of a kind, such as `'dns.response'` |
//! | `transactions(KIND, CAPTURES, ...)` | transactions, such as `'http'` |
//! | `findings(CAPTURES, ...)` | findings of `flowgauge summary` in all captures together |
//! | `hosts(CAPTURES, ...)` | hosts of `flowgauge hosts` in all captures together |
//!
//! `flows` also reads files of flow records: ndjson, Parquet, IPFIX, fixed records. `filter` applies to their fields; other
//! options, which concern packets, are an error then.
//!
//! Captures are paths, patterns with `*`, `?` and `[ ]`, or an array of them. These options are named arguments, such as
//! `flows('*.pcap', active_timeout => '60s')`:
//!
//! | option | value |
//! |---|---|
//! | `features` | features of flows, as a text: `'cic,splt=20'` |
//! | `filter` | packets that are tracked: an expression of [`Filter`](flowgauge::Filter) |
//! | `idle_timeout`, `active_timeout` | durations, such as `'30s'` |
//! | `tunnels` | `'innermost'` (default), `'outermost'`, `'both'` |
//! | `joined` | `true` reads all captures as one, in time order; otherwise, the flows of each capture are its own |
//!
//! With the feature `object-store`, captures are also URLs: `s3://BUCKET/day/*.pcap`, `https://HOST/a.pcap`. Stores are those
//! that the session has registered, or are created from the environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT` and
//! others).
//!
//! Columns are those of the command, and `file`, the path or URL of the capture. Addresses and names are text, durations are
//! numbers of nanoseconds. A column that a query does not need is not computed, and a protocol without such a column is
//! not parsed.
//!
//! The scalar functions are `community_id(source_address, source_port, destination_address, destination_port, protocol)`,
//! `cidr_contains(network, address)` and `application_of_port(port, protocol)`.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)
)]

mod arguments;
mod capture;
mod files;
mod functions;
mod inputs;
mod location;
#[cfg(feature = "object-store")]
mod objects;
mod plan;
mod planner;
mod predicate;
mod progress;
mod source;
mod table;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use flowgauge_arrow::scan::{Notify, Warning};

pub use capture::{Capture, ObjectVersion};
pub use files::with_files;
pub use plan::CaptureScan;
pub use progress::ScanProgress;
pub use table::CaptureTable;

use planner::CapturePlanner;

/// Returns the scalar functions, for a process that executes plans but does not parse SQL.
#[must_use]
pub fn functions() -> Vec<ScalarUDF> {
    functions::all().into()
}

/// Adds the tables and functions to a session.
///
/// # Errors
///
/// Returns an error if the session does not permit other table functions.
pub fn register(context: &SessionContext) -> Result<()> {
    register_with(context, None)
}

/// Adds the tables and functions to a session. `warning` is called, on the thread that reads, with the damage at which
/// reading of a capture ended; the rows before it are part of the result.
///
/// # Errors
///
/// Same as for [`register`].
pub fn register_with(context: &SessionContext, warning: Option<Notify<Warning>>) -> Result<()> {
    for function in functions() {
        context.register_udf(function);
    }
    context.register_relation_planner(Arc::new(CapturePlanner::new(warning)))
}
