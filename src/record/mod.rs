//! Flow records: the properties of a flow at its end, or when an active timeout passes.
//!
//! [`FlowRecord::SCHEMA`] lists the fields of a record with their types, units and the corresponding fields
//! of IPFIX, Zeek and EVE; [`FlowRecord::visit`] passes their values to a [`Visitor`]. Formats, tables and
//! documentation derive from these two.
//!
//! A program uses this module to process records, or to write them in a format that [`export`](crate::export) does not
//! support:
//!
//! ```
//! use flowgauge::base::IpProtocol;
//! use flowgauge::record::{FlowRecord, InformationElement};
//! use flowgauge::{FileSource, records};
//!
//! let is_tcp = |record: &FlowRecord| record.protocol() == IpProtocol::TCP;
//! let mut records = records(FileSource::open("examples/data/lossy.pcap")?);
//! let download = records.find(|record| record.as_ref().map_or(true, is_tcp)).expect("a connection")?;
//! assert_eq!(download.destination_port(), Some(80));
//! assert_eq!(download.forward.counters.packet_count, 277);
//! assert_eq!(download.reverse.counters.packet_count, 284);
//! let protocol = FlowRecord::SCHEMA.iter().find(|field| field.name == "protocol").expect("a field");
//! assert_eq!(protocol.ipfix, Some(InformationElement::Iana(4)));
//! # Ok::<(), flowgauge::Error>(())
//! ```

mod community_id;
#[cfg(feature = "serde")]
mod deserialize;
mod draft;
mod encapsulation;
mod field;
mod flow_record;
mod scale;
mod schema;
#[cfg(feature = "serde")]
mod serialize;

pub use crate::base::OuterFlow;
pub use community_id::{CommunityId, community_id};
pub(crate) use draft::{Draft, FieldSource, Setter};
pub use encapsulation::EncapsulationRecord;
pub use field::{Field, FieldSide, FieldType, InformationElement, SortKey, Unit, Value, Visitor};
pub use flow_record::{FieldSet, FlowRecord, SideRecord};
pub(crate) use schema::{SETTERS, field_index, field_set, fill};
