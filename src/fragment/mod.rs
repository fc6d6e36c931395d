//! IP fragments to whole datagrams, in line and bounded.
//!
//! A [`Pool`] keeps fragments until their datagram is whole, too old, or in the way. It reads no headers and knows no
//! flows: the caller says what a [`Fragment`] is a part of, where it lies and what its bytes are, and gives a tag with
//! each.
//!
//! | outcome of [`Pool::push`] | when | the tag |
//! |---|---|---|
//! | [`Atomic`](Outcome::Atomic) | offset zero and nothing follows: no fragment at all (RFC 6946) | not kept |
//! | [`Held`](Outcome::Held) | it waits for the rest | kept |
//! | [`Duplicate`](Outcome::Duplicate) | the same place, length and bytes were there | kept |
//! | [`Completed`](Outcome::Completed) | the datagram is whole | given back |
//! | [`CompletedCut`](Outcome::CompletedCut) | all came, but the capture cut some of them | given back |
//! | [`Discarded`](Outcome::Discarded) | it ended its datagram: overlap, another end, too many | not kept |
//! | [`AlreadyDiscarded`](Outcome::AlreadyDiscarded) | of a datagram that was discarded | not kept |
//! | [`Malformed`](Outcome::Malformed) | no payload, no multiple of eight, beyond 65,535 octets | not kept |
//! | [`Refused`](Outcome::Refused) | no room, although all others made room | not kept |
//!
//! # Counting
//!
//! A fragment is a packet of its datagram's flow, but only the fragment with offset zero tells the ports. So a caller
//! counts in one of two ways; in both, each tag comes back once and none is lost.
//!
//! - *When the datagram ends*: all tags come with [`Completed`], or with [`Ended`].
//! - *As they come*: as soon as [`Held::head`] gives the first octets, [`Held::take_tags`] gives the tags of those that
//!   waited, then of each fragment in turn.
//!
//! A tag that was not kept is the caller's: that fragment is counted at once, on the flow if it is a first fragment,
//! otherwise as a fragment alone. So are the tags of an [`Ended`] without a `head`.

mod config;
mod datagram;
mod input;
mod outcome;
mod pages;
mod policy;
mod pool;
mod slots;
mod stats;

pub use config::{ConfigError, PoolConfig};
pub use input::{DatagramKey, Fragment};
pub use outcome::{Cap, Completed, Discard, EndReason, Ended, Held, Malformed, Outcome};
pub use policy::{OverlapPolicy, UnknownPolicy};
pub use pool::Pool;
pub use stats::FragmentStats;
