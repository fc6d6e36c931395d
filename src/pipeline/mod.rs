//! Where the layers meet: frames from a source go through extractor and tracker to a sink.
//!
//! ```no_run
//! use flowgauge::pipeline::{Pipeline, Records};
//! use flowgauge::source::FileSource;
//!
//! let mut source = FileSource::open("capture.pcap")?;
//! let mut pipeline = Pipeline::default();
//! pipeline.run(&mut source, &mut Records::new(|record| {
//!     println!("{} {} octets", record.key, record.octet_count());
//! }))?;
//! # Ok::<(), flowgauge::source::Error>(())
//! ```

mod checksums;
mod config_error;
mod first_octets;
mod fragments;
mod jumps;
mod reassembled;
mod records;
mod run;
mod sessions;
mod shards;
mod streams;
mod tunnels;

pub use checksums::{ChecksumCounts, ChecksumHandling, ChecksumStats};
pub use config_error::ConfigError;
pub use first_octets::FirstOctets;
pub use fragments::FragmentHandling;
pub use jumps::TIME_JUMP_MAX;
pub use records::{NamedRecords, Records};
pub use run::{Pipeline, PipelineStats};
pub use sessions::{SessionPipeline, SessionSink, SessionSlot};
pub use shards::{QueueStats, Shard, Shards};
pub use streams::{Slot, StreamPipeline, StreamSink};
