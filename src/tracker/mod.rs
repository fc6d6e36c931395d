//! Flow tracking: from packets to flows.
//!
//! [`Tracker::track`] finds the flow of a packet, counts the packet, follows the TCP connection, and reports events
//! to an [`Observer`]. A packet of a known flow costs one look-up and no allocation; a batch
//! ([`Tracker::track_batch`]) hides the latency of memory, with the same results. All memory is bounded: see
//! [`Limits`](crate::base::Limits), and [`Class`] for the order of eviction.
//!
//! Time is taken from the packets: the clock is the highest timestamp seen. A timeout is decided when the flow's own
//! next packet arrives, or at the end; sweeps in between only deliver the same decision sooner. The same packets
//! therefore give the same records, regardless of how they are divided into calls.
//!
//! A program that reads frames itself can use the tracker alone. This one counts the flows of a capture:
//!
//! ```
//! use flowgauge::base::{EndReason, FrameBatch};
//! use flowgauge::decode::extractor::Extractor;
//! use flowgauge::source::{FileSource, Source};
//! use flowgauge::tracker::{FlowView, Observer, Tracker};
//!
//! struct Count(u32);
//!
//! impl Observer<()> for Count {
//!     fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _: ()) {
//!         println!("{} {} packets, {reason}", flow.key(), flow.packet_count());
//!         self.0 += 1;
//!     }
//! }
//!
//! let (mut tracker, mut count): (Tracker<()>, _) = (Tracker::default(), Count(0));
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! let mut batch = FrameBatch::new();
//! while !source.next_batch(&mut batch)?.is_end() {
//!     for packet in batch.iter().filter_map(|frame| Extractor::default().extract(&frame).ok()) {
//!         tracker.track(&packet, &mut count);
//!     }
//! }
//! tracker.finish(&mut count);
//! assert_eq!(count.0, 27);
//! # Ok::<(), flowgauge::source::Error>(())
//! ```

mod active_list;
mod anomaly_row;
mod carried;
mod class;
mod config;
mod direction;
mod encapsulations;
mod endpoint;
mod event;
mod expiry;
mod extras;
mod flow;
mod hot_cache;
mod index;
mod lifecycle;
mod lists;
mod observer;
mod proven;
mod recency;
mod segments;
mod services;
mod share;
mod slab;
mod snapshot;
mod stats;
mod table;
mod timing;
#[allow(clippy::module_inception, reason = "the type that the layer is named after")]
mod tracker;
mod update;
mod view;

pub use anomaly_row::FlowAnomaly;
pub use class::{Class, Timeouts, USER_CLASS_COUNT_MAX, UserClass};
pub use config::TrackerConfig;
pub(crate) use event::CallbackChanges;
pub use event::{Anomaly, FlowEvent};
pub(crate) use flow::FlowBits;
pub use flow::{FlowId, FlowScan};
pub use observer::{Flow, Interest, Observer};
pub(crate) use services::server_by_port;
pub(crate) use share::Share;
pub use snapshot::{Snapshot, SnapshotInfo, read_flows};
pub use stats::TrackerStats;
pub(crate) use table::GROUP_LEN;
pub use tracker::Tracker;
pub use view::FlowView;
