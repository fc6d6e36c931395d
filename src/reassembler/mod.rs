//! TCP segments to ordered bytes and gaps, in bounded memory.
//!
//! A [`Stream`] says where one direction of a connection stands; the [`Reassembler`] owns what waits. In order, a chunk is the
//! segment's own bytes. A hole ends when it is filled; when the receiver acknowledged it and a short grace passed; where no
//! acknowledgments are seen, by a deadline; or when there is no room for more behind it. Then a [`Gap`] tells how many octets
//! are missing, and the stream goes on.
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

mod arrive;
mod buffered;
mod config;
mod event;
mod holds;
mod holes;
mod pieces;
mod policy;
#[expect(clippy::module_inception, reason = "the type that the layer is named after")]
mod reassembler;
mod recent;
mod segment;
mod start;
mod stats;
mod store;
mod stream;

pub use buffered::{Buffered, BufferedOverflow};
pub use config::{ConfigError, ReassemblerConfig};
pub use event::{Chunk, Conflict, Gap, GapReason, Place, StreamEvent};
pub use policy::{OverflowPolicy, OverlapPolicy, UnknownPolicy};
pub use reassembler::Reassembler;
pub use segment::Segment;
pub use stats::ReassemblerStats;
pub use stream::Stream;
