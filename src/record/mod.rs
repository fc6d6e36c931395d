//! Flow records: the properties of a flow at its end, or when an active timeout passes.
//!
//! [`FlowRecord::SCHEMA`] lists the fields of a record with their types, units and the corresponding fields
//! of IPFIX, Zeek and EVE; [`FlowRecord::visit`] passes their values to a [`Visitor`]. Formats, tables and
//! documentation derive from these two.

mod community_id;
#[cfg(feature = "serde")]
mod deserialize;
#[cfg(feature = "serde")]
mod draft;
mod encapsulation;
mod field;
mod flow_record;
mod schema;
#[cfg(feature = "serde")]
mod serialize;

pub use community_id::{CommunityId, community_id};
pub use encapsulation::{EncapsulationRecord, OuterFlow};
pub use field::{Field, FieldSide, FieldType, SortKey, Unit, Value, Visitor};
pub use flow_record::{FieldSet, FlowRecord, SideRecord};
