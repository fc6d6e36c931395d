//! Export of flow records with IPFIX (RFC 7011, RFC 7012).
//!
//! An [`Exporter`] converts records to IPFIX messages and sends them over a [`Transport`]: UDP, TCP, or a file (RFC
//! 5655). A record is a biflow (RFC 5103), or on request two uniflows. Templates are derived from the
//! [schema](crate::record::FlowRecord::SCHEMA): a template contains exactly the fields that a record has, so that a
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
mod layout;
mod message_reader;
mod transport;

pub use element::TimePrecision;
pub use exporter::{Exporter, ExporterConfig, ExporterStats};
pub use message_reader::MessageReader;
pub use transport::{StreamTransport, Transport};

use element::own_name;

/// Version number in the header of an IPFIX message (RFC 7011 section 3.1).
const VERSION: u16 = 10;

/// Length of the header of an IPFIX message in octets (RFC 7011 section 3.1).
const HEADER_LEN: usize = 16;

/// Length of a set header in octets (RFC 7011 section 3.3.2).
const SET_HEADER_LEN: usize = 4;

/// Set identifier of a set of templates (RFC 7011 section 3.3.2).
const TEMPLATE_SET_ID: u16 = 2;

/// Set identifier of a set of options templates (RFC 7011 section 3.3.2).
const OPTIONS_TEMPLATE_SET_ID: u16 = 3;

/// The smallest identifier of a template (RFC 7011 section 3.4.1).
const TEMPLATE_ID_MIN: u16 = 256;

/// Length of a field of variable length in a template (RFC 7011 section 7).
const VARIABLE_LEN: u16 = 65_535;

/// Bit of an element identifier that indicates that an enterprise number follows (RFC 7011 section 3.2).
const ENTERPRISE_BIT: u16 = 1 << 15;

/// Enterprise number of reverse elements (RFC 5103 section 6.1).
const REVERSE_ENTERPRISE_NUMBER: u32 = 29_305;

/// Value of applicationName if the application is not known. Some collectors discard records with an empty text.
const UNKNOWN_APPLICATION: &str = "unknown";

/// Seconds from 1900-01-01, the epoch of the NTP timestamp format, to 1970-01-01 (RFC 5905 appendix A.4).
const NTP_TO_UNIX_SECONDS: u64 = 2_208_988_800;

/// Identifiers of elements in the IANA registry that are not in the schema, or that describe other elements.
mod iana {
    pub(super) const INGRESS_INTERFACE: u16 = 10;
    pub(super) const SOURCE_IPV6_ADDRESS: u16 = 27;
    pub(super) const DESTINATION_IPV6_ADDRESS: u16 = 28;
    pub(super) const FLOW_DIRECTION: u16 = 61;
    pub(super) const APPLICATION_NAME: u16 = 96;
    pub(super) const FLOW_END_REASON: u16 = 136;
    pub(super) const FLOW_START_MILLISECONDS: u16 = 152;
    pub(super) const FLOW_END_MILLISECONDS: u16 = 153;
    pub(super) const FLOW_START_NANOSECONDS: u16 = 156;
    pub(super) const FLOW_END_NANOSECONDS: u16 = 157;
    pub(super) const DOT1Q_CUSTOMER_VLAN_ID: u16 = 245;
    pub(super) const SYSTEM_INIT_TIME_MILLISECONDS: u16 = 160;
    pub(super) const INFORMATION_ELEMENT_ID: u16 = 303;
    pub(super) const INFORMATION_ELEMENT_DATA_TYPE: u16 = 339;
    pub(super) const INFORMATION_ELEMENT_NAME: u16 = 341;
    pub(super) const INFORMATION_ELEMENT_SEMANTICS: u16 = 344;
    pub(super) const INFORMATION_ELEMENT_UNITS: u16 = 345;
    pub(super) const PRIVATE_ENTERPRISE_NUMBER: u16 = 346;
}
