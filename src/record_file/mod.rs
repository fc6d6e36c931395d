//! Files of flow records that the library or another exporter wrote: ndjson, IPFIX (RFC 5655), records of a fixed length,
//! and rows that the caller decodes, such as those of Parquet.
//!
//! A [`RecordFile`] is an iterator over the records and the [problems](RecordProblem) of a file. Its format is
//! [recognized](RecordFormat::of) by the first octets. The library has no parser of JSON, so that the caller passes one:
//!
//! ```
//! # #[cfg(feature = "serde")] {
//! use flowgauge::record_file::RecordFile;
//! use flowgauge::source::{Contents, SourceConfig};
//!
//! let line = br#"{"source_address":"192.0.2.1","destination_address":"192.0.2.2","protocol":17,"packet_count":3}"#;
//! let contents = Contents::from_reader(&line[..], SourceConfig::default())?;
//! let file = RecordFile::new(contents, |line: &[u8]| serde_json::from_slice(line))?;
//! let packet_count = file.map(|record| Ok(record?.packet_count())).sum::<Result<u64, Box<dyn std::error::Error>>>()?;
//! assert_eq!(packet_count, 3);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod format;
mod messages;
mod problem;

pub use file::RecordFile;
pub use format::RecordFormat;
pub use problem::{RecordProblem, RecordProblemKind};
