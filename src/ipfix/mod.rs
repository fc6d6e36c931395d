//! Export of flow records with IPFIX (RFC 7011, RFC 7012).
//!
//! An [`Exporter`] converts records to IPFIX messages and sends them over a [`Transport`]: UDP, TCP, or a file (RFC
//! 5655). A record is a biflow (RFC 5103), or on request two uniflows. Templates are derived from the
//! [columns of flow records](crate::record::FlowRecord): a template contains exactly the fields that a record has, so that a
//! value that does not apply is not sent as zero.
//!
//! Fields without an element in the IANA registry are exported if [`ExporterConfig::enterprise_number`] is set. Type
//! records (RFC 5610) describe these elements, so that a collector needs no configuration for them.
//!
//! A program that exports the flows of a capture to a file:
//!
//! ```
//! use flowgauge::ipfix::{Exporter, ExporterConfig, StreamTransport};
//! use flowgauge::{FileSource, Timestamp, records};
//!
//! let mut file = Vec::new();
//! let mut exporter = Exporter::new(ExporterConfig::default(), StreamTransport::new(&mut file))?;
//! for record in records(FileSource::open("examples/data/web.pcap")?) {
//!     let record = record?;
//!     exporter.export(&record, record.end)?;
//! }
//! exporter.flush()?;
//! assert_eq!(exporter.stats().record_count, 27);
//! assert!(file.starts_with(&[0, 10]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod collector;
mod element;
mod exporter;
mod format;
mod layout;
mod message_reader;
mod transport;

pub use element::TimePrecision;
pub use exporter::{Exporter, ExporterConfig, ExporterStats};
pub use message_reader::MessageReader;
pub use transport::{StreamTransport, Transport};

use element::own_name;
use format::{
    ENTERPRISE_BIT, HEADER_LEN, NTP_TO_UNIX_SECONDS, OPTIONS_TEMPLATE_SET_ID, REVERSE_ENTERPRISE_NUMBER,
    SET_HEADER_LEN, TEMPLATE_ID_MIN, TEMPLATE_SET_ID, UNKNOWN_APPLICATION, VARIABLE_LEN, VERSION, iana,
};
