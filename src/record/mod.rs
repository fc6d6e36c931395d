//! Flow records: the properties of a flow at its end, or when an active timeout passes.
//!
//! A [`FlowRecord`] is a row of a [table](crate::row::Table), from which formats and documentation derive.
//!
//! A program uses this module to process records, or to write them in a format that [`export`](crate::export) does not
//! support:
//!
//! ```
//! use flowgauge::base::IpProtocol;
//! use flowgauge::record::FlowRecord;
//! use flowgauge::row::{InformationElement, Table};
//! use flowgauge::{FileSource, records};
//!
//! let is_tcp = |record: &FlowRecord| record.protocol() == IpProtocol::TCP;
//! let mut records = records(FileSource::open("examples/data/lossy.pcap")?);
//! let download = records.find(|record| record.as_ref().map_or(true, is_tcp)).expect("a connection")?;
//! assert_eq!(download.destination_port(), Some(80));
//! assert_eq!(download.forward.counters.packet_count, 277);
//! assert_eq!(download.reverse.counters.packet_count, 284);
//! let protocol = FlowRecord::COLUMNS.iter().find(|column| column.name == "protocol").expect("a column");
//! assert_eq!(protocol.ipfix, Some(InformationElement::Iana(4)));
//! # Ok::<(), flowgauge::Error>(())
//! ```

mod community_id;
mod counts;
mod draft;
mod encapsulation;
mod exported;
mod flow_record;
mod merge;
#[cfg(feature = "serde")]
mod record_serde;
mod scale;
mod schema;
mod sort_key;

pub use crate::base::OuterFlow;
pub use community_id::CommunityId;
pub(crate) use counts::has_summed_counts;
pub(crate) use draft::{Draft, FieldSource, Setter};
pub use encapsulation::EncapsulationRecord;
pub use exported::{ExportedRecord, FlowDirection};
pub use flow_record::{FieldSet, FlowRecord, SideRecord};
pub use merge::DifferentFlows;
pub(crate) use schema::{EXPORTED, SETTERS, field_index, field_set, fill};
pub use sort_key::SortKey;
