//! The vocabulary that all layers share. Imports nothing of the other layers.

mod allowance;
mod application;
mod budget;
mod code_point;
mod counters;
mod encapsulation;
mod error;
mod frame;
mod history;
mod key;
mod lifecycle;
mod limits;
mod reader;
mod seq;
mod tcp_flags;
mod time;
mod vlan;

pub(crate) use allowance::{Allowance, Refusal};
pub use application::{Application, Evidence};
pub use budget::{Account, Budget};
pub use code_point::{EtherType, IpProtocol, LinkType};
pub use counters::{Counters, TcpCounters};
pub use encapsulation::{EncapsulationStack, EnclosingHeader, HeaderKind};
pub use error::{Layer, ParseError, ParseErrorKind};
pub(crate) use frame::{Descriptors, Span};
pub use frame::{Frame, FrameBatch};
pub use history::History;
pub use key::{FlowKey, Ports, Side};
pub use lifecycle::{ConnState, DirectionEvidence, EndReason, TcpState};
pub use limits::Limits;
pub use reader::Reader;
pub use seq::SeqNum;
pub use tcp_flags::TcpFlags;
pub(crate) use time::duration_nanos;
pub use time::{NANOS_PER_SECOND, Timestamp};
pub use vlan::VlanIds;
