//! Reassembly of IP fragments to whole datagrams, inline and with bounded memory.
//!
//! A [`Pool`] keeps fragments until their datagram is complete, expires or is evicted. The pool parses no
//! headers and has no concept of flows: the caller passes each [`Fragment`] with its key, offset and bytes,
//! together with a tag.
//!
//! A pipeline contains a pool by default, and reports its statistics to programs that monitor fragmentation. This
//! capture contains eight large echo messages of three fragments each:
//!
//! ```
//! use flowgauge::{FileSource, Pipeline, Records, RunOptions};
//!
//! let mut source = FileSource::open("examples/data/dns.pcap")?;
//! let mut pipeline = Pipeline::builder().build(Records::new(|_| ()))?;
//! let fragments = pipeline.run(&mut source, &RunOptions::default())?.stats.fragments;
//! assert_eq!((fragments.fragment_count, fragments.completed_count), (24, 8));
//! assert_eq!(fragments.abandoned_count(), 0);
//! # Ok::<(), flowgauge::Error>(())
//! ```
//!
//! | outcome of [`Pool::push`] | when | the tag |
//! |---|---|---|
//! | [`Atomic`](Outcome::Atomic) | offset zero and no more fragments: not a fragment (RFC 6946) | not kept |
//! | [`Held`](Outcome::Held) | the datagram is not complete yet | kept |
//! | [`Duplicate`](Outcome::Duplicate) | a fragment with the same offset, length and bytes is held | kept |
//! | [`Completed`](Outcome::Completed) | the datagram is complete | returned |
//! | [`CompletedTruncated`](Outcome::CompletedTruncated) | all arrived, but the capture truncated some | returned |
//! | [`Discarded`](Outcome::Discarded) | it ended its datagram: overlap, conflicting end, too many | not kept |
//! | [`AlreadyDiscarded`](Outcome::AlreadyDiscarded) | its datagram was discarded before | not kept |
//! | [`Malformed`](Outcome::Malformed) | no payload, not a multiple of eight, beyond 65,535 octets | not kept |
//! | [`Refused`](Outcome::Refused) | a cap does not allow it, even after all evictions | not kept |
//!
//! # Counting
//!
//! A fragment is a packet of its datagram's flow, but only the fragment with offset zero contains the ports.
//! A caller can therefore count in one of two ways; in both, each tag is returned exactly once.
//!
//! - *When the datagram ends*: all tags are returned with [`Completed`] or with [`Ended`].
//! - *As fragments arrive*: as soon as [`Held::head`] returns the first octets, [`Held::take_tags`] returns
//!   the tags of the fragments held so far, then of each further fragment.
//!
//! The caller counts a fragment whose tag was not kept at once: for the flow if it is a first fragment,
//! otherwise as an orphan fragment. The same applies to the tags of an [`Ended`] without a `head`.

mod config;
mod datagram;
mod input;
mod outcome;
mod pages;
mod policy;
mod pool;
mod slots;
mod stats;

pub use config::PoolConfig;
pub use input::Malformed;
#[doc(hidden)]
pub use input::{DatagramKey, Fragment};
#[doc(hidden)]
pub use outcome::{Cap, Completed, Discard, EndReason, Ended, Held, Outcome};
pub use policy::{OverlapPolicy, UnknownPolicy};
#[doc(hidden)]
pub use pool::Pool;
pub use stats::FragmentStats;
