//! Stages: the layers above the flow tracker.
//!
//! A sink names its stage as an associated type. Each stage declares its state in a flow's slot, its state for all
//! flows (its engine), and its processing of a packet, a deadline and the end of a flow.
//! [`StageObserver`](super::observer) calls it; there is no other adapter between the tracker and the sink.

mod flows;
mod segments;
mod sessions;
mod streams;

pub use flows::Flows;
pub use sessions::Sessions;
pub use streams::Streams;
