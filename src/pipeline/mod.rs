//! Pipelines: frames from a source pass through decoder and tracker to a stage and a sink.
//!
//! [`Pipeline::builder`] collects the settings, [`Builder::build`] takes the [`Sink`], and [`Pipeline::run`] reads a
//! [`Source`]. The sink's [`Stage`] selects the layers above the tracker. [`records`] iterates over flow records
//! without a sink, and [`Builder::run_shards`] uses several cores.
//!
//! Most programs use the library through this module. This one prints and counts flow records:
//!
//! ```
//! use flowgauge::{FileSource, Pipeline, Records, RunOptions};
//!
//! let mut record_count = 0;
//! let sink = Records::new(|record| {
//!     println!("{} {} octets", record.key, record.octet_count());
//!     record_count += 1;
//! });
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
//! assert_eq!(record_count, 27);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! [`Source`]: crate::source::Source

mod ahead;
mod boxed;
mod builder;
mod checkpoint;
mod config;
mod core;
mod dispatch;
mod error;
mod first_octets;
#[cfg(all(feature = "tun", target_os = "linux"))]
mod forwarder;
mod held;
mod iterators;
mod jumps;
#[cfg(feature = "protocols")]
mod log_sink;
mod matching;
mod observer;
#[cfg(feature = "protocols")]
mod one_call;
mod parts;
#[allow(clippy::module_inception, reason = "the type that the layer is named after")]
mod pipeline;
mod record_sink;
mod records;
mod runner;
mod shards;
mod sink;
mod stage;
mod stats;
#[cfg(feature = "protocols")]
mod transactions;

pub use crate::decode::{ChecksumCounts, ChecksumHandling, ChecksumStats, FragmentHandling};
pub use boxed::{AnyState, BoxedSink, boxed};
pub use builder::Builder;
pub use checkpoint::{CheckpointInfo, read_checkpoint};
pub use dispatch::QueueStats;
pub use error::Error;
pub use first_octets::FirstOctets;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub use forwarder::{DeviceSide, ForwardAction, ForwardHandler, ForwardStats, Forwarder};
pub use iterators::{RecordIter, records};
pub use jumps::TIME_JUMP_MAX;
#[cfg(feature = "protocols")]
pub use log_sink::LogSink;
#[cfg(feature = "protocols")]
pub use one_call::{Seen, client_hellos, dns_messages, http_heads};
pub use pipeline::Pipeline;
pub use record_sink::{RecordReceiver, RecordSink};
pub use records::{OnMessage, Records, on_message};
pub use runner::{ErrorPolicy, RunEnd, RunOptions, RunProgress, Summary};
pub use sink::{MessageOf, NotInStage, Sink, Stage};
pub use stage::{Flows, Sessions, Streams};
pub use stats::{PipelineStats, Unsaved};
#[cfg(feature = "protocols")]
pub use transactions::{OnTransaction, TransactionSink, TransactionState, Transactions, on_transaction};
