//! Parsing of ordered bytes and datagrams into typed messages.
//!
//! A [`Driver`] passes the octets of each flow to the [`Parser`] of its protocol. The first octets identify the
//! protocol: the bounded probes of all [`Protocol`]s of the set are called, and if none matches, the port decides. The
//! set is an enum that [`protocols!`](crate::protocols!) generates from the parsers of this crate and from your own.
//!
//! A program uses this module to define a parser of its own. This one reports the first line of each direction on port
//! 80:
//!
//! ```
//! use flowgauge::session::{Fault, Input, Out, Parser, Progress, Protocol, Role};
//! use flowgauge::{FileSource, Pipeline, RunOptions, on_message};
//!
//! #[derive(Debug, Default)]
//! pub struct FirstLine;
//!
//! impl Parser for FirstLine {
//!     type Message<'m> = (Role, &'m [u8]);
//!
//!     fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
//!         let Some(len) = input.bytes.iter().position(|octet| *octet == b'\n') else { return Ok(Progress::Took(0)) };
//!         out((input.from, &input.bytes[..len]));
//!         Ok(Progress::Done)
//!     }
//! }
//!
//! static WEB: Protocol = Protocol::new("web").over_streams(&[80], None);
//!
//! flowgauge::protocols! {
//!     /// The parsers of this program.
//!     #[derive(Debug)]
//!     pub enum Mine;
//!     /// The messages of these parsers.
//!     #[derive(Debug)]
//!     pub enum Received;
//!     parsers { Web: FirstLine = &WEB }
//! }
//!
//! let mut statuses = Vec::new();
//! let sink = on_message::<Mine>(|_, _, Received::Web((from, line))| {
//!     if *from == Role::Server {
//!         statuses.push(line.starts_with(b"HTTP/1.1 "));
//!     }
//! });
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(statuses, [true; 8]);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! On the port of a protocol with a parser, its messages are also found after octets or datagrams of another protocol,
//! within [`RESUME_LEN_MAX`], [`RESUME_CHUNK_COUNT_MAX`] and [`RESUME_DATAGRAM_COUNT_MAX`].
//!
//! Memory per flow: 32 octets in the caller's state. While probes are undecided, at most [`PROBE_LEN_MAX`] octets per
//! direction, and a chunk. With a parser, its state and the octets of incomplete messages, at most
//! `session_side_bytes_max` per direction. A flow that is not recognized, or is done, only costs a test per call.
//!
//! After a fault, the parser is dropped, its memory is released, and [`SessionEvent::Stopped`] is reported once; the
//! flow stays tracked.

mod awaited;
mod awaiting;
mod charged;
mod content;
mod context;
mod conversations;
pub(crate) mod credit;
mod datagram_probing;
mod datagrams;
mod driver;
mod eviction;
mod expectation;
mod expected;
mod first_packet;
pub mod framing;
mod index;
#[cfg(feature = "protocols")]
pub mod kit;
#[cfg(feature = "protocols")]
mod lack;
#[cfg(feature = "protocols")]
pub mod lines;
mod message_row;
mod octet_set;
mod octets;
mod parser;
mod parsing;
mod paused;
mod preamble;
mod probing;
mod protocol;
mod protocols;
mod quota;
mod receiver;
#[cfg(feature = "protocols")]
pub mod replies;
mod resuming;
mod saved;
mod searching;
#[allow(clippy::module_inception, reason = "the state of one flow is what the layer is named after")]
mod session;
mod stats;
mod text;
mod transition;
#[cfg(test)]
mod transition_tests;
mod window;

pub use crate::base::{Application, Evidence};
#[doc(hidden)]
pub use awaited::{AWAITED_COUNT_MAX, AWAITED_LEN_MAX, AWAITED_TIME};
pub use content::{Piece, PieceContent};
pub use context::FlowContext;
pub use datagram_probing::{PROBE_DATAGRAM_COUNT_MAX, RESUME_DATAGRAM_COUNT_MAX};
#[doc(hidden)]
pub use driver::Driver;
pub use driver::HANDOVER_COUNT_MAX;
pub use expectation::Expectation;
#[cfg(feature = "protocols")]
pub(crate) use expected::AnnouncedEnds;
pub use expected::{EXPECTED_MAX, EXPECTED_TIME};
#[cfg(feature = "protocols")]
pub(crate) use first_packet::is_answer;
pub(crate) use first_packet::may_answer;
#[cfg(feature = "protocols")]
pub use lack::Lack;
#[doc(hidden)]
pub use message_row::MessageHead;
#[cfg(any(test, feature = "protocols"))]
pub(crate) use octet_set::OctetSet;
pub use octets::Payload;
#[cfg(feature = "protocols")]
pub(crate) use parser::saved;
pub use parser::{AfterGap, Datagram, End, EndKind, Fault, Input, Missing, Out, Parser, Progress, Remains};
pub use probing::PROBE_CHUNK_COUNT_MAX;
pub use protocol::{
    DatagramOpening, DatagramProbe, MESSAGE_OCTET_COUNT, PROBE_LEN_MAX, Protocol, Repetition, Role, Search,
    StreamOpening, StreamProbe, StreamSearch, Verdict,
};
pub use protocols::{Entry, Parts, Protocols};
pub use quota::{MESSAGE_CREDIT, MESSAGES_PER_PACKET};
#[doc(hidden)]
pub use receiver::Receiver;
pub use receiver::{HEADERS_LEN, MessageMeta, SessionEvent};
pub use resuming::{RESUME_CHUNK_COUNT_MAX, RESUME_LEN_MAX};
#[doc(hidden)]
pub use session::Session;
pub use stats::{DriverConfig, DriverStats, FaultCounts};
pub use text::Text;
