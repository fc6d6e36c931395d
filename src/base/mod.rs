//! Types that all layers share. This module imports nothing from the other layers.
//!
//! A program uses these types directly if it builds keys or frames itself, for example to search for a flow:
//!
//! ```
//! use flowgauge::base::{FlowKey, Side};
//! use std::net::SocketAddr;
//!
//! let client = SocketAddr::from(([192, 0, 2, 7], 40_000));
//! let server = SocketAddr::from(([198, 51, 100, 1], 443));
//! let (key, sender) = FlowKey::tcp(client, server);
//! let (same, other_sender) = FlowKey::tcp(server, client);
//! assert_eq!(key, same);
//! assert_eq!(sender, other_sender.other());
//! assert_eq!((key.port(Side::A), key.port(Side::B)), (Some(40_000), Some(443)));
//! ```

mod allowance;
mod application;
mod budget;
mod code_point;
mod config_error;
mod configuration;
mod counters;
mod date;
mod encapsulation;
mod error;
mod frame;
mod hash;
mod history;
mod key;
#[cfg(feature = "serde")]
mod key_serde;
mod lifecycle;
mod limits;
mod mac_addresses;
mod neighbor_protocol;
mod outer_flow;
mod packet;
mod resources;
// For the crates of this workspace.
#[doc(hidden)]
pub mod ring;
mod seq;
mod stop;
mod tcp_flags;
mod time;
mod vlan;

pub(crate) use allowance::{Allowance, Refusal};
pub use application::{Application, ApplicationName, Evidence};
pub use budget::{Account, Budget};
pub use code_point::{EtherType, IpProtocol, LinkType};
pub use config_error::{ConfigError, ConfigProblem};
pub(crate) use configuration::configuration;
pub use counters::{Counters, TcpCounters};
pub use date::DateError;
pub use encapsulation::{Encapsulation, EncapsulationHeader, HeaderKind};
pub use error::{Layer, ParseError, ParseErrorKind};
pub(crate) use frame::{Descriptors, Span};
pub use frame::{Frame, FrameBatch};
#[cfg(feature = "protocols")]
pub(crate) use hash::fnv1a;
pub(crate) use hash::{hash_state, random_seeds};
pub use history::History;
pub(crate) use key::address_bits;
pub use key::{FlowKey, Ports, Side};
pub use lifecycle::{ConnState, DirectionEvidence, EndReason, TcpState};
pub use limits::Limits;
pub use mac_addresses::MacAddresses;
pub(crate) use neighbor_protocol::NeighborProtocol;
pub use outer_flow::OuterFlow;
pub use packet::{Packet, PacketMarks, TcpSegment, Transport};
pub use resources::Resources;
pub use seq::SeqNum;
pub use stop::StopHandle;
pub use tcp_flags::TcpFlags;
pub(crate) use time::duration_nanos;
pub use time::{NANOS_PER_SECOND, Timestamp};
pub use vlan::VlanIds;
