//! Packets to flows.
//!
//! Frames from a capture file or an interface go through a pipeline of layers and come out as bidirectional flow records,
//! in nanoseconds per packet and in bounded memory.
//!
//! ```
//! use flowgauge::pipeline::{Pipeline, Records};
//! use flowgauge::source::FileSource;
//!
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! let mut pipeline = Pipeline::default();
//! let mut refused = 0;
//! pipeline.run(&mut source, &mut Records::new(|record| {
//!     println!("{} {} packets {}", record.key, record.packet_count(), record.conn_state);
//!     refused += u32::from(record.conn_state.name() == "REJ");
//! }))?;
//! assert_eq!(refused, 2);
//! # Ok::<(), flowgauge::source::Error>(())
//! ```
//!
//! # Layers
//!
//! ```text
//! source ──batches──> link ──IP──> extractor ──packets──> tracker ──calls──> your FlowSink ──> record
//!    files, stdin,      Ethernet,     FlowKey, side,        flows, TCP,          Records, or
//!    interfaces         VLAN, SLL,    transport view        timeouts, caps       your own
//!                       PPP, raw
//! ```
//!
//! | module | takes | gives | keeps |
//! |---|---|---|---|
//! | [`source`] | files, standard input, interfaces | batches of frames | one block |
//! | [`dedup`] | a frame | whether it was captured twice | hashes of the last frames, if asked for |
//! | [`link`] | a frame | where its innermost IP packet begins, and what encloses it | nothing |
//! | [`fragment`] | IP fragments | whole datagrams | a bounded pool |
//! | [`extractor`] | a frame | a packet: key, side, lengths, TCP fields | nothing |
//! | [`filter`] | a key | whether it matches an expression | the expression |
//! | [`tracker`] | packets | calls with the flow | the flow table, under a cap |
//! | [`reassembler`] | TCP segments | bytes in order, gaps, conflicts | what waits behind holes, under caps |
//! | [`session`] | bytes in order, datagrams | typed messages | parsers, what they wait for, under caps |
//! | [`record`] | a flow | a [`FlowRecord`](record::FlowRecord), its Community ID | nothing |
//! | [`pipeline`] | a source | all of the above, wired | |
//!
//! [`base`] is the vocabulary that they share, [`wire`] reads single headers. Each layer can be used alone.
//!
//! # Limits
//!
//! Every cap is a field of [`Limits`](base::Limits), with its default and what happens there; one
//! [`Budget`](base::Budget) accounts the memory of all layers.
//!
//! | limit | default | when it is reached |
//! |---|---|---|
//! | `flow_count_max` | 1,048,576 | a flow makes room, in the order of [`tracker`] |
//! | `total_bytes_max` | 1 GiB | nothing grows; a flow makes room |
//! | `enclosure_count_max` | 1,048,576 | what encloses further flows is not kept |
//! | `fragment_datagram_count_max` | 8192 | the oldest datagram goes |
//! | `fragment_bytes_max` | 32 MiB | the oldest datagrams go |
//! | `fragment_per_datagram_count_max` | 2048 | the datagram is discarded |
//! | `stream_bytes_max` | 256 MiB | the stream that waits longest gives up a hole |
//! | `stream_side_bytes_max` | 4 MiB | the stream gives up its first hole, or is poisoned |
//! | `stream_side_segment_count_max` | 2048 | likewise |
//! | `session_bytes_max` | 128 MiB | the parser that asks for more is dropped |
//! | `session_side_bytes_max` | 64 KiB | the parser is dropped |
//! | `dedup_frame_count_max` | 16,384 | the oldest frame is forgotten |
//! | `dedup_bytes_max` | 4 MiB | the oldest octets go, and what repeats them is kept |
//! | `vlan_tag_count_max` | 8 | the frame counts as nested too deep |
//! | `ip_extension_count_max` | 16 | the frame counts as nested too deep |
//! | `frame_len_max` | 262,144 | a bad block: reading ends there with a warning |
//! | `block_len_max` | 16 MiB | likewise |
//! | `interface_count_max` | 65,536 | a bad block in one section; of all captures, further ones have no name |
//! | `source_bytes_max` | 256 MiB | shorter blocks, then an error for the capture that does not fit |
//! | `zstd_window_len_max` | 8 MiB | an error for the capture |
//! | `neighbour_count_max` | 1024 | the least recently used neighbour makes room |
//! | `neighbour_request_count_max` | 1024 | the oldest request makes room |
//!
//! # Features
//!
//! None changes what another does.
//!
//! | feature | brings | needs |
//! |---|---|---|
//! | (default) | the library, reading plain files | cargo |
//! | `serde` | `Serialize` for keys, records and statistics | |
//! | `protocols` | parsers of application protocols | |
//! | `compression` | captures in gzip and zstd | a C compiler, for zstd |
//! | `cli` | the command `flowgauge`; implies the three above | |
//! | `live` | capture from interfaces | libpcap |

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::panic))]

pub mod base;
// Layers that read what others wrote check every access.
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod dedup;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod extractor;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod filter;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod fragment;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod link;
pub mod pipeline;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod reassembler;
pub mod record;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod session;
pub mod source;
pub mod tracker;
#[cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::expect_used))]
pub mod wire;

/// The library example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
