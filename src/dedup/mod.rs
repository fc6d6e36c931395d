//! Frames that were captured twice: over a loopback, from both ports of a mirror, from bonded taps.
//!
//! A [`Window`] remembers a keyed hash of each of the last frames and says of a frame whether it was there within a time.
//! A look-up and an entry take constant time; nothing is searched.
//!
//! | question | answer |
//! |---|---|
//! | what is compared | all captured octets, both lengths and the link type; or, with [`Mode::IgnoreMirrorChanges`], what neither a mirror port nor a router changes |
//! | how long | [`DedupConfig::window`], 1 ms by default, in packet time, whichever of the two times is the later one |
//! | against which frames | the last one that was equal, among the last `dedup_frame_count_max` |
//! | does a duplicate count as seen | yes, as in `editcap -w`: a third copy within the time of the second is dropped too. With `only_between_interfaces`, no: each interface has its own count of repetitions |
//! | frames without a time | bear that of [`Timestamp::ZERO`](crate::base::Timestamp::ZERO), and so lie within each other's window |
//!
//! It is off unless it is asked for. Octets may be equal without a frame having been captured twice: acknowledgements that are
//! sent again by a host with a constant IP identifier, datagrams that are repeated. Where copies come from different
//! interfaces, [`DedupConfig::only_between_interfaces`] tells these apart.
//!
//! ```
//! use flowgauge::base::{Frame, Timestamp};
//! use flowgauge::dedup::{DedupConfig, Verdict, Window};
//!
//! let mut window = Window::new(DedupConfig::default())?;
//! let first = Frame::ethernet(Timestamp::from_parts(9, 0), b"octets of a frame");
//! let again = Frame { timestamp: Timestamp::from_parts(9, 20_000), ..first };
//! assert_eq!(window.check(&first), Verdict::First);
//! assert_eq!(window.check(&again), Verdict::Duplicate);
//! # Ok::<(), flowgauge::dedup::ConfigError>(())
//! ```

mod config;
mod identity;
mod ring;
mod stats;
mod store;
#[cfg(test)]
mod tests;
mod window;

pub use config::{ConfigError, DedupConfig, Mode};
pub use stats::DedupStats;
pub use window::{Verdict, Window};
