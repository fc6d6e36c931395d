//! Formats of rows: ndjson, csv, tables for people, IPFIX, [records of a fixed length](FixedRecord), and with the feature
//! `protocols` the [logs of Zeek](zeek) and the [events of Suricata's EVE](eve).
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
#[cfg(feature = "protocols")]
pub mod eve;
mod fixed_record;
#[cfg(feature = "protocols")]
mod flow_log;
mod format;
pub mod human;
mod ipfix;
mod json;
mod lines;
#[cfg(feature = "protocols")]
mod presentation;
mod selection;
mod style;
mod table;
mod text;
#[cfg(feature = "protocols")]
mod uid;
mod writer;
#[cfg(feature = "protocols")]
pub mod zeek;

pub use fixed_record::{FixedRecord, FixedRecordError};
#[cfg(feature = "protocols")]
pub use flow_log::{FlowLog, LoggedFlow, Permits};
pub use format::{Format, FormatOptions};
pub use json::{write_json, write_message};
pub use lines::Lines;
pub use selection::Selection;
pub use style::{Nulls, Style, TimeFormat, UnknownName};
pub use table::FlowTable;
#[cfg(feature = "protocols")]
pub use uid::Uid;
pub use writer::{LogFiles, RecordWriter, Summary};
