//! Checkpoints: the open flows of a pipeline in a file, so that another process continues them.
//!
//! [`Pipeline::checkpoint`] writes a checkpoint, and [`Builder::restore`] builds a pipeline that continues where the
//! first one stopped: with the next rotated file, after an update of the program, on another machine. What is saved, and
//! what is not, is documented there. The caller's state of each flow must implement [`State`]; attachments
//! ([`Writer::attach`]) keep what the caller needs besides, such as its position in the input.
//!
//! ```
//! use flowgauge::checkpoint::{Reader, Writer};
//! use flowgauge::{FileSource, Pipeline, Records, RunOptions};
//!
//! let mut record_count = 0;
//! let mut pipeline = Pipeline::builder().build(Records::new(|_| record_count += 1))?;
//! pipeline.feed(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
//! let mut writer = Writer::new(Vec::new())?;
//! pipeline.checkpoint(&mut writer)?;
//! let file = writer.finish()?;
//! drop(pipeline);
//!
//! // Another process continues the open flows.
//! let mut reader = Reader::new(&file[..])?;
//! let mut pipeline = Pipeline::builder().restore(&mut reader, Records::new(|_| record_count += 1))?;
//! pipeline.run(&mut FileSource::open("examples/data/dns.pcap")?, &RunOptions::default())?;
//! # drop(pipeline);
//! # assert!(record_count > 27);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Format
//!
//! All numbers are in network order, or of variable length ([`codec`](crate::codec)). A checkpoint begins with a magic
//! number and the version of the format. Blocks follow, each with its kind, its length, and a CRC-32 of its position in
//! the file, kind, length and content; the last one states that the checkpoint is complete. Damage, a missing or swapped
//! block, and a file that ends early are therefore found, and a reader never allocates more than the file has octets. A
//! flow takes some 130 octets, or 150 with IPv6 addresses, and what its stage and its caller save.
//!
//! A reader accepts all versions up to its own, and refuses a newer one by its number.
//!
//! [`Pipeline::checkpoint`]: crate::pipeline::Pipeline::checkpoint
//! [`Builder::restore`]: crate::pipeline::Builder::restore

mod block;
mod error;
mod reader;
mod saved;
mod state;
mod value;
mod writer;

pub(crate) use block::{BLOCK_LEN, Kind};
pub use error::{Error, Invalid};
pub use reader::Reader;
#[cfg(feature = "protocols")]
pub(crate) use saved::COUNT_MAX;
pub(crate) use saved::{Saved, state};
#[cfg(feature = "serde")]
pub use state::Serialized;
pub use state::{State, StateWriter};
pub(crate) use value::{checksum, number, read_key, read_side, write_key, write_side};
pub use writer::Writer;
