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

/// The layers above the flow tracker: [`Flows`], [`Streams`] or [`Sessions`]. No other type implements this trait.
pub trait Stage: sealed::Stage {
    /// Type of the stage's messages; [`Infallible`](std::convert::Infallible) for a stage without messages.
    type Message<'m>;
}

/// State of a flow in the flow table besides the tracker's own: the state of the stage and the caller's state.
#[derive(Debug, Default)]
pub struct Slot<F, S> {
    pub(super) stage: F,
    pub(super) state: S,
}

/// The type of the slots for a sink's flows in the flow table.
pub(super) type SlotOf<K> = Slot<PerFlow<K>, <K as Sink>::State>;
/// The type of the state that a sink's stage has for each flow.
pub(super) type PerFlow<K> = <<K as Sink>::Stage as sealed::Stage>::PerFlow;
/// The type of the state that a sink's stage has for all flows together.
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
        /// State of the stage for each flow.
        type PerFlow: Default;
        /// State of the stage for all flows together.
        type Engine;
        /// Callbacks of the tracker that the stage requires, in addition to those that the sink requires.
        const INTEREST: Interest;
        /// True if the stage delivers TCP segments as streams, so that a sink may request only packets of other
        /// protocols.
        const HAS_STREAMS: bool;
        /// True if the stage has sessions of application protocols.
        const HAS_SESSIONS: bool;

        fn engine(config: &Config, resources: &Resources) -> Result<Self::Engine, ConfigError>;

        fn application(_: &Self::PerFlow) -> Option<&'static Application> {
            None
        }

        /// Reads the state of a flow that [`packet`](Self::packet) accesses first, to load its memory early.
        #[inline(always)]
        fn touch(_: &Self::PerFlow) -> u64 {
            0
        }

        /// Delivers the events of a flow that are due before one of its packets. Mutes the flow if the sink does.
        fn before_packet<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Flow<'_, SlotOf<K>>,
            _: &Packet<'_>,
        ) where
            Self: super::Stage,
        {
        }

        /// Processes a packet of a flow in the stage. Mutes the flow if the sink does.
        fn packet<K: Sink<Stage = Self> + ?Sized>(
            engine: &mut Self::Engine,
            sink: &mut K,
            flow: &mut Flow<'_, SlotOf<K>>,
            packet: &Packet<'_>,
        ) where
            Self: super::Stage;

        /// Returns whether the stage delivers nothing more of a flow, whatever its further packets contain.
        #[inline(always)]
        fn is_over(_: &Self::PerFlow) -> bool {
            false
        }

        /// Releases the memory of the stage for a flow; no more events of the flow are delivered.
        fn mute(_: &mut Self::Engine, _: &mut Self::PerFlow) {}

        /// Delivers the remaining events of a flow that ends.
        fn finish<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &FlowView<'_>,
            _: &mut SlotOf<K>,
        ) where
            Self: super::Stage,
        {
        }

        /// Returns the time in nanoseconds at which the first deadline of any flow in the stage passes; `u64::MAX` for
        /// none.
        fn next_due_ns(_: &Self::Engine) -> u64 {
            u64::MAX
        }

        /// Returns the identifier of a flow with a deadline in the stage that has passed.
        fn next_due(_: &mut Self::Engine, _: Timestamp) -> Option<FlowId> {
            None
        }

        /// Delivers the events that are due of the flow that [`next_due`](Self::next_due) returned.
        fn due<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Flow<'_, SlotOf<K>>,
            _: Timestamp,
        ) where
            Self: super::Stage,
        {
        }

        /// Returns whether memory was charged, since the last call of this function, that [`relieve`](Self::relieve)
        /// may soon have to release.
        #[inline(always)]
        fn take_charged(_: &mut Self::Engine) -> bool {
            false
        }

        /// Releases memory of flows in the stage, as long as memory is short.
        fn relieve<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Tracker<SlotOf<K>>,
        ) where
            Self: super::Stage,
        {
        }

        /// Adds the counters of the engine to those of the pipeline.
        fn count(_: &Self::Engine, _: &mut PipelineStats) {}

        /// Returns the number of TCP streams for which the engine holds octets.
        fn held_stream_count(_: &Self::Engine) -> usize {
            0
        }

        /// Panics unless the engine's own account agrees with the state of the flows.
        fn check_invariants<'f>(_: &Self::Engine, _: impl Iterator<Item = &'f Self::PerFlow>) {}
    }
}
