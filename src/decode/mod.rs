//! Decoding: from a frame to the packets in it.
//!
//! | module | input | output |
//! |---|---|---|
//! | [`link`] | a frame | its IP packets, the outermost first, and the headers around each |
//! | [`fragment`] | IP fragments | whole datagrams |
//! | [`extractor`] | a frame | a packet: key, side, lengths, TCP fields |
//!
//! Each module can be used alone. A pipeline combines them: the packet of a common frame is written in place,
//! and every other frame is walked once. That walk yields all IP packets of the frame; a fragment that
//! completes its datagram continues it.
//!
//! A program that uses a pipeline selects the handling of fragments and checksums with [`FragmentHandling`] and
//! [`ChecksumHandling`]. In this capture, the network card computes the checksums, so that those of all TCP and UDP
//! packets are incomplete:
//!
//! ```
//! use flowgauge::{ChecksumHandling, FileSource, Pipeline, Records, RunOptions};
//!
//! let mut source = FileSource::open("examples/data/any.pcap")?;
//! let mut pipeline = Pipeline::builder().checksums(ChecksumHandling::Count).build(Records::new(|_| ()))?;
//! let checksums = pipeline.run(&mut source, &RunOptions::default())?.stats.checksums;
//! assert_eq!((checksums.tcp.partial_count, checksums.udp.partial_count), (51, 6));
//! assert_eq!((checksums.tcp.wrong_count, checksums.udp.wrong_count), (0, 0));
//! # Ok::<(), flowgauge::Error>(())
//! ```

mod decoder;
mod defragmenter;
mod emit;
mod encapsulation;
pub mod extractor;
pub mod fragment;
pub mod link;
mod neighbor;
mod reassembled;
mod tag;
mod verifier;

pub(crate) use decoder::{Decoded, Decoder, DecoderConfig};
pub use defragmenter::FragmentHandling;
pub(crate) use emit::{Counted, Emit};
pub use verifier::{ChecksumCounts, ChecksumHandling, ChecksumStats};
