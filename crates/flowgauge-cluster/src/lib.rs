//! SQL over captures on many machines, with [Ballista](https://docs.rs/ballista-core).
//!
//! A client plans a query and sends its logical plan to the scheduler. The scheduler expands the patterns of captures,
//! distributes the captures to tasks, and sends the physical plan of each task to an executor, which reads its captures.
//! Rows that other tasks need are files of the executor that wrote them.
//!
//! Ballista knows the plans of DataFusion. [`LogicalCodec`] and [`PhysicalCodec`] add the tables of captures of
//! [`flowgauge_sql`], so that the scheduler and the executors are programs of their own: `flowgauge-scheduler` and
//! `flowgauge-executor`, which are [`scheduler::run`] and [`executor::run`].
//!
//! ```no_run
//! use datafusion::prelude::SessionContext;
//! use flowgauge_cluster::Cluster;
//!
//! # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let cluster: Cluster = "df://127.0.0.1:50050".parse()?;
//! let context: SessionContext = cluster.connect(Cluster::config()).await?;
//! let frame = context.sql("SELECT count(*) FROM flows('/captures/*.pcap')").await?;
//! frame.show().await?;
//! # Ok::<(), datafusion::error::DataFusionError>(())
//! # }).unwrap();
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)
)]

mod client;
#[cfg(feature = "server")]
pub mod executor;
mod functions;
mod logical;
mod messages;
mod physical;
#[cfg(feature = "server")]
pub mod process;
#[cfg(feature = "server")]
pub mod scheduler;

pub use client::{Cluster, InvalidAddress, failure};
pub use logical::LogicalCodec;
pub use physical::PhysicalCodec;

/// Maximum length in octets of a message between processes, such as the plan of a task with the paths of its captures.
pub const MESSAGE_LEN_MAX: u32 = 64 << 20;

/// Port of a scheduler that is not specified.
pub const SCHEDULER_PORT: u16 = 50050;
