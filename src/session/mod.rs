//! Ordered bytes and datagrams to typed messages.
//!
//! A [`Driver`] leads what the directions of a flow say to the [`Parser`] of its protocol. Which one that is, the first octets
//! tell: every [`Protocol`] of the set is asked, by a bounded probe, and where none matches, the port decides. The set is an
//! enum that [`protocols!`](crate::protocols) writes, of the parsers here and of one's own.
//!
//! On the port of a protocol with a parser, its messages are also found behind octets or datagrams of something else, within
//! [`RESUME_LEN_MAX`], [`RESUME_CHUNK_COUNT_MAX`] and [`RESUME_DATAGRAM_COUNT_MAX`].
//!
//! What a flow costs: 32 octets in the caller's state. While probes are undecided, at most [`PROBE_LEN_MAX`] octets a
//! direction, and a chunk; with a parser, its state and what it left of an incomplete message, at most
//! `session_side_bytes_max` a direction. A flow that is not recognised, or is done, costs a test.
//!
//! A parser that errs is dropped, its memory is freed, and [`SessionEvent::Stopped`] says so once; the flow goes on.

mod credit;
mod datagrams;
#[cfg(feature = "protocols")]
pub mod dns;
mod driver;
#[cfg(feature = "protocols")]
pub mod ftp;
#[cfg(feature = "protocols")]
pub mod http1;
#[cfg(feature = "protocols")]
pub mod http2;
#[cfg(feature = "protocols")]
mod lines;
mod parser;
mod parsing;
mod preamble;
mod probing;
mod protocol;
mod protocols;
#[cfg(feature = "protocols")]
pub mod quic;
mod quota;
#[cfg(feature = "protocols")]
pub mod recognised;
#[cfg(feature = "protocols")]
mod replies;
mod resuming;
#[allow(clippy::module_inception, reason = "the state of one flow is what the layer is named after")]
mod session;
#[cfg(feature = "protocols")]
pub mod smtp;
#[cfg(feature = "protocols")]
pub mod ssh;
#[cfg(feature = "protocols")]
mod standard;
#[cfg(feature = "protocols")]
mod starttls;
mod stats;
mod text;
#[cfg(feature = "protocols")]
pub mod tls;
#[cfg(feature = "protocols")]
mod turns;
mod window;

pub use crate::base::{Application, Evidence};
pub use datagrams::{PROBE_DATAGRAM_COUNT_MAX, RESUME_DATAGRAM_COUNT_MAX};
pub use driver::{Driver, HANDOVER_COUNT_MAX};
pub use parser::{AfterGap, Datagram, End, EndKind, Fault, Input, Missing, Out, Parser, Progress};
pub use probing::{PROBE_CHUNK_COUNT_MAX, PROBE_LEN_MAX};
pub use protocol::{
    DatagramOpening, DatagramProbe, Protocol, Role, Search, StreamOpening, StreamProbe, StreamSearch, Verdict,
};
pub use protocols::{Entry, Protocols, count, table};
pub use quota::{MESSAGE_CREDIT, MESSAGE_OCTET_COUNT, MESSAGES_PER_PACKET};
pub use resuming::{RESUME_CHUNK_COUNT_MAX, RESUME_LEN_MAX};
pub use session::{About, Receiver, Session, SessionEvent, Whose};
#[cfg(feature = "protocols")]
pub use standard::{Message, Standard};
pub use stats::{DriverConfig, DriverStats};
pub use text::Text;
