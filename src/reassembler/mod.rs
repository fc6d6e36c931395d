//! Reassembly of TCP segments into ordered bytes and gaps, in bounded memory.
//!
//! A [`Stream`] is the state of one direction of a connection; the [`Reassembler`] owns the held octets. In order, a
//! chunk is a slice of the segment itself. A hole ends when it is filled; when the receiver acknowledged it and a short
//! grace period expired; at a deadline if no acknowledgments are seen; or when a memory limit is reached. Then a
//! [`Gap`] reports the number of missing octets, and the stream continues.
//!
//! A program that tracks connections itself can use the reassembler alone:
//!
//! ```
//! use flowgauge::base::{SeqNum, TcpFlags, Timestamp};
//! use flowgauge::reassembler::{Reassembler, Segment, Stream, StreamEvent};
//!
//! let mut reassembler = Reassembler::default();
//! let mut stream = Stream::default();
//! let mut text = Vec::new();
//! // The second segment comes first.
//! for (seq, flags, payload) in [(1, TcpFlags::SYN, "") , (7, TcpFlags::ACK, "world"), (2, TcpFlags::ACK, "hello")] {
//!     let segment = Segment::new(SeqNum(seq), flags, payload.as_bytes(), Timestamp::ZERO);
//!     reassembler.segment(&mut stream, "a name", &segment, |event| {
//!         if let StreamEvent::Chunk(chunk) = event {
//!             text.extend_from_slice(chunk.bytes);
//!         }
//!     });
//! }
//! assert_eq!(text, b"helloworld");
//! ```

mod buffered;
mod config;
mod event;
mod held_states;
mod holes;
mod order;
mod padding;
mod pieces;
mod policy;
#[expect(clippy::module_inception, reason = "the type that the layer is named after")]
mod reassembler;
mod recent;
mod saved;
mod segment;
mod skew;
mod slow_path;
mod start;
mod stats;
mod store;
mod stream;

pub use buffered::{Buffered, BufferedOverflow};
pub use config::ReassemblerConfig;
pub use event::{Chunk, Conflict, Extent, Gap, GapReason, StreamEvent};
pub(crate) use order::{BothOut, Connection};
pub use policy::{OverflowPolicy, OverlapPolicy, UnknownPolicy};
pub use reassembler::Reassembler;
pub use segment::Segment;
pub use skew::{CaptureSide, LateSide, SkewStats};
pub use stats::ReassemblerStats;
pub use stream::Stream;
