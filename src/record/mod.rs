//! What is known of a flow when it ends, or when an active timeout makes a record of it.

mod community_id;
mod enclosure;
mod fields;
mod flow_record;

pub use community_id::community_id;
pub use enclosure::{Carried, Enclosure, OuterFlow, SideEnclosure};
pub use fields::Field;
pub use flow_record::{FlowRecord, SideRecord};
