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

use super::sink::Sink;

/// The layers above the flow tracker: [`Flows`], [`Streams`] or [`Sessions`]. Implemented by these three only.
pub trait Stage: sealed::Stage {
    /// Type of messages; [`Infallible`](std::convert::Infallible) for a stage without messages.
    type Message<'m>;
}

/// Entry of a flow in the flow table besides its counters: the state of the stage and that of the caller.
#[derive(Debug, Default)]
pub struct Slot<F, S> {
    pub(super) stage: F,
    pub(super) state: S,
}

/// The slot of a sink's flows.
pub(super) type SlotOf<K> = Slot<PerFlow<K>, <K as Sink>::State>;
type PerFlow<K> = <<K as Sink>::Stage as sealed::Stage>::PerFlow;
/// State of the stage of a sink for all flows.
pub(super) type EngineOf<K> = <<K as Sink>::Stage as sealed::Stage>::Engine;

pub(super) mod sealed {
    use super::super::config::Config;
    use super::super::sink::Sink;
    use super::super::stats::PipelineStats;
    use super::SlotOf;
    use crate::base::{Application, ConfigError, Resources, Timestamp};
    use crate::decode::extractor::Packet;
    use crate::tracker::{Flow, FlowId, FlowView, Interest, Tracker};

    pub trait Stage: Sized + 'static {
        /// State of each flow.
        type PerFlow: Default;
        /// State of all flows together.
        type Engine;
        /// Callbacks of the tracker required by the stage, in addition to those of the sink.
        const INTEREST: Interest;
        /// True if TCP segments are delivered as streams, so that a sink may request only packets of other protocols.
        const HAS_STREAMS: bool;
        /// True if the stage has sessions.
        const HAS_SESSIONS: bool;

        fn engine(config: &Config, resources: &Resources) -> Result<Self::Engine, ConfigError>;

        fn application(_: &Self::PerFlow) -> Option<&'static Application> {
            None
        }

        /// Delivers everything due before a packet. Mutes the flow if the sink does.
        fn before_packet<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Flow<'_, SlotOf<K>>,
            _: &Packet<'_>,
        ) where
            Self: super::Stage,
        {
        }

        /// Processes a packet. Mutes the flow if the sink does.
        fn packet<K: Sink<Stage = Self> + ?Sized>(
            engine: &mut Self::Engine,
            sink: &mut K,
            flow: &mut Flow<'_, SlotOf<K>>,
            packet: &Packet<'_>,
        ) where
            Self: super::Stage;

        /// Releases the memory of a flow; nothing more of it is delivered.
        fn mute(_: &mut Self::Engine, _: &mut Self::PerFlow) {}

        /// Delivers the rest of a flow that ends.
        fn finish<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &FlowView<'_>,
            _: &mut SlotOf<K>,
        ) where
            Self: super::Stage,
        {
        }

        /// Returns the time at which the first deadline of a flow passes.
        fn next_due_ns(_: &Self::Engine) -> u64 {
            u64::MAX
        }

        /// Returns a flow with a deadline that has passed.
        fn next_due(_: &mut Self::Engine, _: Timestamp) -> Option<FlowId> {
            None
        }

        /// Delivers everything due of that flow.
        fn due<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Flow<'_, SlotOf<K>>,
            _: Timestamp,
        ) where
            Self: super::Stage,
        {
        }

        /// Returns whether memory was charged since the last call that [`relieve`](Self::relieve) may soon have to
        /// release.
        #[inline(always)]
        fn take_charged(_: &mut Self::Engine) -> bool {
            false
        }

        /// Releases memory of flows while it is short.
        fn relieve<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Tracker<SlotOf<K>>,
        ) where
            Self: super::Stage,
        {
        }

        /// Adds the counters of the engine.
        fn count(_: &Self::Engine, _: &mut PipelineStats) {}

        /// Returns the number of streams that hold octets.
        fn held_stream_count(_: &Self::Engine) -> usize {
            0
        }

        /// Panics unless the engine agrees with the flows.
        fn check_invariants<'f>(_: &Self::Engine, _: impl Iterator<Item = &'f Self::PerFlow>) {}
    }
}
