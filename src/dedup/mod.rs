//! Removal of duplicate frames: captured over a loopback, from both ports of a mirror, or from bonded taps.
//!
//! A [`Window`] remembers a keyed hash of each of the last frames, and reports whether a frame was captured before
//! within a time. A look-up and an insertion take constant time; there is no search.
//!
//! | question | answer |
//! |---|---|
//! | which parts are compared | all captured octets, both lengths and the link type; or, with [`Mode::IgnoreMirrorChanges`], the parts that neither a mirror port nor a router changes |
//! | for how long | [`DedupConfig::window`], 1 ms by default, in packet time, regardless of which of the two timestamps is later |
//! | against which frames | the last equal frame among the last `dedup_frame_count_max` |
//! | does a duplicate restart the time | yes, as in `editcap -w`: a third copy within the time of the second is dropped too. With `only_between_interfaces`, no: each interface has its own count of repetitions |
//! | frames without a time | have the timestamp [`Timestamp::ZERO`](crate::base::Timestamp::ZERO), and are therefore within each other's window |
//!
//! Deduplication is off by default. Equal octets do not prove that a frame is a duplicate: a host with a constant IP
//! identifier may resend acknowledgments, and datagrams may be repeated. If copies come from different interfaces,
//! [`DedupConfig::only_between_interfaces`] distinguishes these cases.
//!
//! A program without a pipeline checks each frame itself:
//!
//! ```
//! use flowgauge::base::{Frame, Resources, Timestamp};
//! use flowgauge::dedup::{DedupConfig, Verdict, Window};
//!
//! let mut window = Window::new(DedupConfig::default(), &Resources::default())?;
//! let first = Frame::ethernet(Timestamp::from_parts(9, 0), b"octets of a frame");
//! let again = Frame { timestamp: Timestamp::from_parts(9, 20_000), ..first };
//! assert_eq!(window.check(&first), Verdict::First);
//! assert_eq!(window.check(&again), Verdict::Duplicate);
//! # Ok::<(), flowgauge::base::ConfigError>(())
//! ```

mod config;
mod identity;
mod ring;
mod stats;
mod store;
#[cfg(test)]
mod tests;
mod window;

pub use config::{DedupConfig, Mode};
pub use stats::DedupStats;
#[doc(hidden)]
pub use window::{Verdict, Window};
