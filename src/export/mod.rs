//! Formats of rows: ndjson, csv, tables for people, IPFIX, and [records of a fixed length](FixedRecord).
//!
//! A [`RecordWriter`] writes rows to a destination; [`write_json`] appends one to a buffer. Nothing is allocated per
//! row once the buffers have grown.
//!
//! A program that writes records to a file:
//!
//! ```
//! use flowgauge::export::{Lines, RecordWriter, Style};
//! use flowgauge::{FileSource, FlowRecord, records};
//!
//! let mut writer: Box<dyn RecordWriter<FlowRecord>> = Box::new(Lines::csv(std::io::sink(), None, Style::default()));
//! for record in records(FileSource::open("examples/data/web.pcap")?) {
//!     writer.write(&record?)?;
//! }
//! assert_eq!(writer.finish()?.row_count, 27);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod csv;
mod fixed_record;
mod format;
pub mod human;
mod ipfix;
mod json;
mod lines;
mod selection;
mod style;
mod table;
mod text;
mod writer;

pub use fixed_record::{FixedRecord, FixedRecordError};
pub use format::{Format, FormatOptions};
pub use json::{write_json, write_message};
pub use lines::Lines;
pub use selection::Selection;
pub use style::{Nulls, Style, TimeFormat, UnknownName};
pub use table::FlowTable;
pub use writer::{RecordWriter, Summary};
