//! Formats of flow records: ndjson, csv, and [records of a fixed length](FixedRecord); with the feature `serde`, the
//! fields of messages for custom formats.
//!
//! A writer appends the line of a record to a buffer owned by the caller, and allocates nothing once the
//! buffer has grown. The fields are those of the [schema](crate::record::FlowRecord::SCHEMA), in the order of
//! the schema.
//!
//! A program that writes records to a file calls a function for each record:
//!
//! ```
//! use flowgauge::export::{Format, write_header, write_record};
//! use flowgauge::{FileSource, records};
//!
//! let mut lines = Vec::new();
//! write_header(&mut lines, Format::Csv);
//! for record in records(FileSource::open("examples/data/web.pcap")?) {
//!     write_record(&mut lines, Format::Csv, &record?);
//! }
//! assert_eq!(lines.iter().filter(|octet| **octet == b'\n').count(), 1 + 27);
//! # Ok::<(), flowgauge::Error>(())
//! ```

mod csv;
mod fixed_record;
#[cfg(feature = "serde")]
mod message;
mod ndjson;
mod text;

#[cfg(feature = "serde")]
pub use message::{MessageVisitor, visit_message};

pub use fixed_record::{FixedRecord, FixedRecordError};

use crate::record::FlowRecord;

/// Text format of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// One JSON object per line (RFC 8259). Absent values are omitted.
    Ndjson,
    /// Comma-separated values (RFC 4180), after a line with the names of the fields. Absent values are empty.
    Csv,
}

/// Appends the header of a format to `out`: a line with the names of all fields for csv, nothing for ndjson.
pub fn write_header(out: &mut Vec<u8>, format: Format) {
    if format == Format::Csv {
        csv::write_header(out);
    }
}

/// Appends the header of a format to `out`, for lines that contain only the fields at `indices`; see
/// [`write_fields`].
pub fn write_fields_header(out: &mut Vec<u8>, format: Format, indices: &[usize]) {
    if format == Format::Csv {
        csv::write_names(out, indices.iter().filter_map(|index| FlowRecord::SCHEMA.get(*index)));
    }
}

/// Appends a record to `out` as a line that contains only some fields. `indices` are the indices of the
/// fields in [`FlowRecord::SCHEMA`], in the order in which they are written.
///
/// ```
/// use flowgauge::export::{Format, write_fields};
/// use flowgauge::{FileSource, FlowRecord, records};
///
/// let field = |name| FlowRecord::SCHEMA.iter().position(|field| field.name == name).expect("a field");
/// let fields = [field("packet_count"), field("protocol")];
/// let mut lines = Vec::new();
/// for record in records(FileSource::open("examples/data/web.pcap")?) {
///     write_fields(&mut lines, Format::Ndjson, &record?, &fields);
/// }
/// assert!(lines.starts_with(br#"{"packet_count":"#));
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub fn write_fields(out: &mut Vec<u8>, format: Format, record: &FlowRecord, indices: &[usize]) {
    match format {
        Format::Ndjson => ndjson::write_fields(out, record, indices),
        Format::Csv => csv::write_fields(out, record, indices),
    }
}

/// Appends a record with all its fields to `out` as a line, including the line end.
pub fn write_record(out: &mut Vec<u8>, format: Format, record: &FlowRecord) {
    match format {
        Format::Ndjson => ndjson::write_record(out, record),
        Format::Csv => csv::write_record(out, record),
    }
}
