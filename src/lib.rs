//! Packets to flows.
//!
//! Frames from a capture file or an interface pass through the layers of a pipeline, which produce bidirectional flow
//! records, and on request TCP streams and messages of application protocols. Memory is bounded, and so is the work for
//! each octet of input.
//!
//! [`records`] iterates over the flow records of a source:
//!
//! ```
//! use flowgauge::{FileSource, records};
//!
//! let mut refused_count = 0;
//! for record in records(FileSource::open("examples/data/web.pcap")?) {
//!     let record = record?;
//!     println!("{} {} packets {}", record.key, record.packet_count(), record.conn_state);
//!     refused_count += u32::from(record.conn_state.name() == "REJ");
//! }
//! assert_eq!(refused_count, 2);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! A program that needs more than records implements [`Sink`] and builds a [`Pipeline`] around it. The associated type
//! [`Sink::Stage`] selects the layers above the flow tracker: none ([`Flows`]), TCP streams ([`Streams`]), or messages
//! of application protocols ([`Sessions`]).
//!
//! ```
//! use flowgauge::{FileSource, Flow, Flows, Packet, Pipeline, RunOptions, Sink};
//!
//! /// Counts packets without payload.
//! #[derive(Default)]
//! struct Empty(u64);
//!
//! impl Sink for Empty {
//!     type State = ();
//!     type Stage = Flows;
//!
//!     fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
//!         self.0 += u64::from(packet.payload_len == 0);
//!     }
//! }
//!
//! let mut pipeline = Pipeline::builder().memory(64 << 20).build(Empty::default())?;
//! let summary = pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
//! assert!(pipeline.sink().0 < summary.stats.tracker.packet_count);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! # By task
//!
//! | task | items |
//! |---|---|
//! | read frames | [`FileSource`], [`Files`], `LiveSource`, [`Source`] for your own; [`source`] has the others |
//! | build a pipeline | [`Pipeline::builder`], [`Builder`], [`Filter`], [`Limits`] |
//! | run it | [`records`], [`on_message`], [`Pipeline::run`], [`Pipeline::feed`] for files that continue each other, [`Builder::run_records`] on several threads, [`RunOptions`], [`Summary`], [`Error`] |
//! | receive messages | `client_hellos`, `dns_messages`, `http_heads` (feature `protocols`), [`Builder::messages`] |
//! | receive flows, packets, streams, messages | [`Sink`] with a [`Stage`]: [`Flows`], [`Streams`], [`Sessions`]; [`Flow`] with [`Flow::mute`], [`Packet`], [`StreamEvent`], [`MessageMeta`] |
//! | track packets of your own parser | [`Packet::builder`], [`tracker::Tracker`] |
//! | parse a protocol | [`Parser`] in a set made by [`protocols!`](crate::protocols!); [`Framing`]; [`Driver`] without a pipeline |
//! | write | [`FlowRecord`], [`export::RecordWriter`], [`ipfix::Exporter`], [`table!`](crate::table!) for rows of your own |
//!
//! # Layers
//!
//! ```text
//!  source            batches of frames: files, standard input, interfaces
//!    │
//!  dedup             duplicate frames are dropped, on request
//!    │
//!  decode            packets: Flow Key, side, lengths, TCP fields; tunnels, fragments, checksums
//!    │
//!  filter            packets of flows that cannot match are dropped
//!    │
//!  tracker           one lookup per packet finds the flow, its streams, its session and your state
//!    │
//!  stage             Flows: nothing │ Streams: reassembler │ Sessions: reassembler, session, protocols
//!    │
//!  Sink              your callbacks ──FlowView::record──> record ──> export
//! ```
//!
//! | module | input | output | memory |
//! |---|---|---|---|
//! | [`source`] | files, standard input, interfaces | batches of frames | one block |
//! | [`dedup`] | a frame | whether it is a duplicate | hashes of the latest frames, on request |
//! | [`decode`] | a frame | its packets: key, side, lengths, TCP fields, outer headers | a bounded pool of fragments |
//! | [`filter`] | a key | whether it matches an expression | the expression |
//! | [`tracker`] | packets | callbacks with the flow | the flow table, limited |
//! | [`reassembler`] | TCP segments | octets in order, gaps, conflicts | segments behind holes, limited |
//! | [`session`] | octets in order, datagrams | typed messages | parsers and incomplete messages, limited |
//! | `protocols` | | the built-in parsers and recognizers | |
//! | `transaction` | messages of a flow | requests with their responses, connections, certificates, mails | bounded per flow, on request |
//! | [`record`] | a flow | a [`FlowRecord`], its schema, and its Community ID | nothing |
//! | [`export`] | records | ndjson, csv, fixed records | nothing |
//! | [`ipfix`] | records | IPFIX messages; from IPFIX, NetFlow and sFlow, back to records and packets | one message, templates |
//! | [`codec`] | numbers, octets, texts | binary formats | nothing |
//! | [`checkpoint`] | open flows | a file from which another process continues them | one block |
//! | [`pipeline`] | a source and a sink | all of the above, connected | |
//!
//! [`base`] contains the types that the layers share. [`tap`] converts between Ethernet frames and IP packets, for
//! programs on TAP and TUN devices. Each layer can be used alone; it then takes a [`Resources`], which contains the
//! limits, the memory budget, and the hash seeds that a pipeline otherwise passes to its layers. The types that most
//! programs need are re-exported here.
//!
//! # Limits
//!
//! Every limit is a field of [`Limits`], which documents its default and the effect of reaching it. One [`Budget`]
//! accounts for the memory of all layers.
//!
//! | limit | default | effect when it is reached |
//! |---|---|---|
//! | `flow_count_max` | 1,048,576 | a flow is evicted for each new one, in the order that [`tracker`] documents |
//! | `total_bytes_max` | 1 GiB | layers release memory, then flows are evicted |
//! | `encapsulation_count_max` | 1,048,576 | the outer headers of further flows are not recorded |
//! | `fragment_datagram_count_max` | 8192 | the oldest datagram is evicted |
//! | `fragment_bytes_max` | 32 MiB | the oldest datagrams are evicted |
//! | `fragment_per_datagram_count_max` | 2048 | the datagram is discarded |
//! | `stream_bytes_max` | 256 MiB | the stream that has waited longest skips a hole |
//! | `stream_side_bytes_max` | 4 MiB | the stream skips its first hole, or is poisoned |
//! | `stream_side_segment_count_max` | 2048 | same as `stream_side_bytes_max` |
//! | `session_bytes_max` | 128 MiB | the session with the oldest charge is closed |
//! | `session_side_bytes_max` | 64 KiB | the parser is dropped |
//! | `dedup_frame_count_max` | 16,384 | the oldest frame is evicted |
//! | `dedup_bytes_max` | 4 MiB | the oldest octets are evicted; frames that repeat them are not dropped |
//! | `vlan_tag_count_max` | 8 | the frame is counted as nested too deep |
//! | `ip_extension_count_max` | 16 | the frame is counted as nested too deep |
//! | `frame_len_max` | 262,144 | the block is invalid: reading of the file ends there with a warning |
//! | `block_len_max` | 16 MiB | same as `frame_len_max` |
//! | `interface_count_max` | 65,536 | in one section, the block is invalid; in total, further interfaces have no name |
//! | `source_bytes_max` | 256 MiB | blocks become shorter; then a capture that does not fit ends with an error |
//! | `zstd_window_len_max` | 8 MiB | the capture ends with an error |
//! | `neighbor_count_max` | 1024 | the least recently used neighbor is evicted |
//! | `neighbor_request_count_max` | 1024 | the oldest request is evicted |
//!
//! # Features
//!
//! All features are additive.
//!
//! | feature | adds | requires |
//! |---|---|---|
//! | (none) | the library; it reads uncompressed files and memory, on any system that Rust supports | cargo |
//! | `net` (default) | sources on sockets (mirror sessions, captures over TCP); [`StopHandle::on_interrupt`] | |
//! | `serde` | `Serialize` for keys, records, and statistics; adapters for all rows ([`row`]); `Deserialize` for keys and records | |
//! | `protocols` | the module `protocols`: parsers of application protocols | |
//! | `compression` | captures in gzip and zstd | a C compiler, for zstd |
//! | `live` | capture from interfaces | libpcap |
//! | `tun` | frames from TUN and TAP devices; forwarding between two of them | Linux |
//! | `tun-async` | the same on tokio | Linux |
//!
//! The command `flowgauge` is a separate package, `flowgauge-cli`.

// docs.rs shows which feature each item requires.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::panic))]

pub mod base;
// Layers that read what others wrote check every access.
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod checkpoint;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod codec;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod decode;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod dedup;
pub mod export;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod features;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod filter;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod ipfix;
#[cfg(feature = "protocols")]
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod neighbor;
pub mod pipeline;
#[cfg(feature = "protocols")]
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod protocols;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod reassembler;
pub mod record;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod record_file;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod row;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod session;
pub mod source;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod tap;
pub mod tracker;
#[cfg(feature = "protocols")]
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod transaction;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub(crate) mod wire;

// Read: sources of frames.
#[doc(inline)]
pub use base::{Frame, FrameBatch, LinkType, StopHandle};
#[cfg(feature = "live")]
#[doc(inline)]
pub use source::{Device, LiveConfig, LiveSource};
#[doc(inline)]
pub use source::{FileSource, Files, Interface, Next, Source, SourceConfig};

// Build: a pipeline and its configuration.
#[doc(inline)]
pub use base::{Account, Budget, ConfigError, ConfigProblem, Limits, Resources};
#[doc(inline)]
pub use decode::extractor::KeyPolicy;
#[doc(inline)]
pub use decode::link::Decapsulation;
#[doc(inline)]
pub use dedup::DedupConfig;
#[doc(inline)]
pub use filter::Filter;
#[doc(inline)]
pub use pipeline::{Builder, ChecksumHandling, FragmentHandling, Pipeline};
#[doc(inline)]
pub use reassembler::ReassemblerConfig;
#[doc(inline)]
pub use session::DriverConfig;
#[doc(inline)]
pub use tracker::TrackerConfig;

// Run.
#[doc(inline)]
pub use pipeline::{
    Error, ErrorPolicy, OnMessage, PipelineStats, RecordIter, RunEnd, RunOptions, RunProgress, Summary,
    on_message, records,
};

// Receive: sinks and the arguments of their callbacks.
#[doc(inline)]
pub use base::{Application, ConnState, EndReason, Evidence, Side, TcpFlags, TcpState, Timestamp};
#[doc(inline)]
pub use decode::extractor::Packet;
#[doc(inline)]
pub use pipeline::{FirstOctets, Flows, MessageOf, Records, Sessions, Sink, Stage, Streams};
#[doc(inline)]
pub use reassembler::{Chunk, Gap, StreamEvent};
#[doc(inline)]
pub use session::{MessageMeta, Role, SessionEvent};
#[doc(inline)]
pub use tracker::{Anomaly, Flow, FlowEvent, FlowId, FlowScan, FlowView, Interest};

// Parse: protocols of the crate, and those of a program.
#[cfg(feature = "protocols")]
#[doc(inline)]
pub use pipeline::{
    LogSink, Seen, TransactionSink, Transactions, client_hellos, dns_messages, http_heads, on_transaction,
};
#[cfg(feature = "protocols")]
#[doc(inline)]
pub use protocols::{Message, Standard, dns, tls};
#[doc(inline)]
pub use session::framing::{AfterPdu, Framing, Lane, Width};
#[doc(inline)]
pub use session::{
    Datagram, Driver, Fault, Input, Out, Parser, Progress, Protocol, Protocols, StreamOpening, Verdict,
};

// Write: records, and what is in them.
#[doc(inline)]
pub use base::{FlowKey, IpProtocol};
#[doc(inline)]
pub use record::{FieldSet, FlowRecord, SideRecord, SortKey};

/// The code examples of the README, which are compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The code example of the design page of rows, which is compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../docs/design/row.md")]
struct RowDesign;

/// The programs of the cookbook, which are compiled and run as documentation tests.
#[cfg(all(doctest, feature = "protocols", feature = "net"))]
#[doc = include_str!("../docs/cookbook.md")]
struct Cookbook;
