//! Rows of flowgauge as Arrow batches, Parquet files and Arrow IPC.
//!
//! Everything that leaves flowgauge is a [`Row`](flowgauge::row::Row) of a declared table. A [`BatchBuilder`] collects
//! rows of any table in columns and returns a `RecordBatch`; [`ParquetWriter`] and [`IpcWriter`] are the formats of the
//! library's [`RecordWriter`](flowgauge::export::RecordWriter). [`record_file`] reads flow records.
//!
//! ```
//! use flowgauge::{FileSource, FlowRecord, records};
//! use flowgauge_arrow::{BatchBuilder, Options};
//!
//! let mut batch = BatchBuilder::new::<FlowRecord>(&Options::default());
//! for record in records(FileSource::open("../../examples/data/web.pcap")?) {
//!     batch.push(&record?);
//! }
//! let batch = batch.finish()?;
//! assert_eq!(batch.num_rows(), 27);
//! assert!(batch.column_by_name("handshake_rtt").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type of a column | Arrow type |
//! |---|---|
//! | bool, integers, float | the same, with the width of the column |
//! | timestamp | `Timestamp(ns, "UTC")`; a time after 2262-04-11 is that of the limit |
//! | duration | `Duration(ns)`, or `Int64` with [`Durations::Integers`] |
//! | address | `FixedSizeBinary(16)`, IPv4 as `::ffff:a.b.c.d`, or text with [`Addresses::Text`] |
//! | MAC address | `FixedSizeBinary(6)`, or text |
//! | name of a closed set | `Dictionary(Int32, Utf8)`, or text with [`Names::Text`] |
//! | text, octets | `Utf8`, `Binary` |
//! | list, group | `List`, `Struct` |
//!
//! Fields have the metadata `description`, `unit` and `side`, and a schema the version of this crate
//! (`flowgauge.version`) and the name of the table (`flowgauge.table`).

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)
)]

mod batch;
mod blocks;
mod columns;
mod ipc;
mod options;
mod parquet;
mod records;
pub mod scan;
mod schema;

pub use batch::BatchBuilder;
pub use ipc::IpcWriter;
pub use options::{Addresses, Durations, Names, Options};
pub use parquet::ParquetWriter;
pub use records::{ParquetRecords, record_file};
