//! The trait that a program implements to receive the output of a pipeline, and the one of the layers above the tracker
//! that produce the output.

use std::cell::RefCell;
use std::ops::{ControlFlow, Deref, DerefMut};
use std::rc::Rc;

use crate::base::Packet;
use crate::base::{EndReason, Side};
#[cfg(feature = "protocols")]
use crate::neighbor::Neighbor;
use crate::session::MessageMeta;
use crate::tracker::{Flow, FlowEvent, FlowView, Interest};

/// The type of the messages that a sink receives, which its stage determines.
pub type MessageOf<'m, K> = <<K as Sink>::Stage as Stage>::Message<'m>;

/// Receives flows, packets, streams, messages and records from a [`Pipeline`](super::Pipeline).
///
/// All methods have defaults that ignore their arguments; only the associated types do not. [`Stage`](Self::Stage)
/// selects the layers above the flow tracker: [`Flows`](super::Flows) for none, [`Streams`](super::Streams) for TCP streams,
/// [`Sessions`](super::Sessions) for messages of application protocols. A flow uses memory only for the needs of its
/// stage.
///
/// The calls for one packet have this order: everything due before it, `record` and `ended` of a flow that is evicted
/// or replaced, `started`, `event`s, `packet`, then `stream`, or `session` and `message`s. [`Flow::mute`] in any of
/// them ends all calls for the flow except `record` and `ended`, and releases the memory of its streams and session.
///
/// A program that uses its sink between the calls of the pipeline shares it: `&RefCell<K>` and `Rc<RefCell<K>>` are sinks
/// too. They panic if the program has borrowed the sink during a call.
///
/// A stage that does not deliver streams, messages or session events has [`NotInStage`](super::NotInStage) as their
/// type, so that a sink with such a method and the wrong stage does not compile. Of the other methods, all are called
/// unless [`interest`](Self::interest) excludes them. In debug builds, a pipeline panics at the end of a flow if its sink
/// implements a method that its interest excludes, unless the interest contains [`Interest::VARIES`].
///
/// ```compile_fail,E0053
/// use std::ops::ControlFlow;
///
/// use flowgauge::{Flow, Flows, Side, Sink, StreamEvent};
///
/// struct Octets;
///
/// impl Sink for Octets {
///     type State = ();
///     type Stage = Flows; // has to be Streams
///
///     fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, _: &StreamEvent<'_>) -> ControlFlow<()> {
///         ControlFlow::Continue(())
///     }
/// }
/// ```
///
/// `&mut K` and `Box<K>` are sinks too, and so is `Box<dyn Sink<State = S, Stage = G>>`.
///
/// ```
/// use flowgauge::{Flow, Flows, FileSource, Packet, Pipeline, RunOptions, Sink};
///
/// /// Counts packets with an ECN mark.
/// #[derive(Default)]
/// struct Marked(u64);
///
/// impl Sink for Marked {
///     type State = ();
///     type Stage = Flows;
///
///     fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
///         self.0 += u64::from(packet.traffic_class & 3 != 0);
///     }
/// }
///
/// let mut pipeline = Pipeline::builder().build(Marked::default())?;
/// pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
/// println!("{} packets with an ECN mark", pipeline.sink().0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Sink {
    /// The caller's state of each flow: the default value when the flow begins, passed to [`ended`](Self::ended) when
    /// it ends. Unused entries of the flow table contain a default too, so creating one should be cheap and have no
    /// side effects; `()` takes no memory.
    type State: Default;

    /// The layers above the flow tracker that the sink requires: [`Flows`](super::Flows), [`Streams`](super::Streams) or
    /// [`Sessions`](super::Sessions).
    type Stage: Stage;

    /// Returns the callbacks that the sink requests, by default all. A sink that requests less must not rely on the
    /// others: without [`Interest::PACKETS`], [`packet`](Self::packet) is not called. It is called up to twice per packet and is best a constant. A
    /// change takes effect with the next batch at the latest, except for flows of which the stage had nothing more to
    /// deliver while the sink requested neither packets nor events: these are muted. [`record`](Self::record),
    /// [`ended`](Self::ended), [`stream`](Self::stream), [`message`](Self::message) and [`session`](Self::session) are
    /// always called.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Called when a flow begins; the flow's first packet is not counted yet.
    #[inline]
    fn started(&mut self, flow: &mut Flow<'_, Self::State>) {
        flow.ignore();
    }

    /// Called after a packet was counted on its flow.
    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        let _ = packet;
        flow.ignore();
    }

    /// Called when the flow changes, or has unusual traffic.
    #[inline]
    fn event(&mut self, flow: &mut Flow<'_, Self::State>, event: &FlowEvent) {
        let _ = event;
        flow.ignore();
    }

    /// Delivers octets of a TCP stream that `side` sent, or another event, in stream order: a
    /// [`StreamEvent`](crate::reassembler::StreamEvent) (stage [`Streams`](super::Streams)). The rest of a
    /// stream is delivered before the [`record`](Self::record) of the end of the flow.
    ///
    /// After [`ControlFlow::Break`], nothing more of this direction is delivered. Its memory is released, and its later
    /// segments cost one test.
    fn stream(
        &mut self,
        flow: &mut Flow<'_, Self::State>,
        side: Side,
        event: &<Self::Stage as Stage>::StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let _ = (flow, side, event);
        ControlFlow::Continue(())
    }

    /// Delivers a message of an application protocol (stage [`Sessions`](super::Sessions)). Borrowed data is valid
    /// during the call. Messages of a flow that ends are delivered before the flow's [`record`](Self::record).
    fn message(
        &mut self,
        flow: &mut Flow<'_, Self::State>,
        meta: &MessageMeta,
        message: &MessageOf<'_, Self>,
    ) {
        let _ = (flow, meta, message);
    }

    /// Called with a [`SessionEvent`](crate::session::SessionEvent) when an application protocol is recognized, or a
    /// parser stops (stage [`Sessions`](super::Sessions)). A protocol without a
    /// parser that only the port indicates is reported when the flow ends.
    fn session(&mut self, flow: &mut Flow<'_, Self::State>, event: &<Self::Stage as Stage>::SessionEvent) {
        let _ = (flow, event);
    }

    /// Called when a record of the flow is due: because the flow's active timeout passed, because its connection closed
    /// and the [linger timeout](crate::tracker::Timeouts::linger) is zero, or because the flow ends. Not called for a
    /// flow without packets since the last record. [`FlowView::record`] creates the record.
    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        let _ = (flow, reason);
    }

    /// Called once for each flow when the flow has ended, after the last [`record`](Self::record). `state` is the
    /// caller's state of the flow.
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: Self::State) {
        let _ = (flow, reason, state);
    }

    /// Delivers a message between neighbors on a link, such as one of ARP or LLDP, whatever the stage. Those of ICMPv6, IGMP,
    /// VRRP and HSRP are delivered before the callbacks of their packet, which counts for a flow too.
    #[cfg(feature = "protocols")]
    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let _ = neighbor;
    }

    /// Called with the state of an open flow that was read from a checkpoint, for sinks that count
    /// [what their states hold](Self::held_bytes).
    fn restored(&mut self, state: &mut Self::State) {
        let _ = state;
    }

    /// Returns the memory in bytes that the sink has allocated for the open flows of the pipeline, beside their
    /// [`State`](Self::State) in the flow table. The pipeline charges it to the budget
    /// ([`Account::Sinks`](crate::base::Account::Sinks)). While memory is short, the pipeline evicts sessions, then flows, so
    /// that the sink can free what it has for them. By default 0.
    ///
    /// Called when the pipeline is built, after each group of at most 32 packets, and after each eviction, so that it must
    /// take constant time. `left` is the memory in bytes by which the budget permits the sink to grow. A sink that may
    /// allocate more than a few KiB per packet should free memory itself when it grows by more than a part of this.
    fn held_bytes(&mut self, left: u64) -> u64 {
        let _ = left;
        0
    }

    /// Called after a batch of frames was processed. [`ControlFlow::Break`] ends the run as if the input had ended
    /// here.
    fn batch_ended(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Forwards all methods of [`Sink`] to the referenced value, which two methods borrow.
macro_rules! forward {
    ($pointer:ty, $shared:ident, $exclusive:ident) => {
        impl<K: Sink + ?Sized> Sink for $pointer {
            type State = K::State;
            type Stage = K::Stage;

            #[inline]
            fn interest(&self) -> Interest {
                self.$shared().interest()
            }

            #[inline]
            fn started(&mut self, flow: &mut Flow<'_, K::State>) {
                self.$exclusive().started(flow);
            }

            #[inline]
            fn packet(&mut self, flow: &mut Flow<'_, K::State>, packet: &Packet<'_>) {
                self.$exclusive().packet(flow, packet);
            }

            #[inline]
            fn event(&mut self, flow: &mut Flow<'_, K::State>, event: &FlowEvent) {
                self.$exclusive().event(flow, event);
            }

            #[inline]
            fn stream(
                &mut self,
                flow: &mut Flow<'_, K::State>,
                side: Side,
                event: &<K::Stage as Stage>::StreamEvent<'_>,
            ) -> ControlFlow<()> {
                self.$exclusive().stream(flow, side, event)
            }

            #[inline]
            fn message(
                &mut self,
                flow: &mut Flow<'_, K::State>,
                meta: &MessageMeta,
                message: &MessageOf<'_, K>,
            ) {
                self.$exclusive().message(flow, meta, message);
            }

            #[inline]
            fn session(&mut self, flow: &mut Flow<'_, K::State>, event: &<K::Stage as Stage>::SessionEvent) {
                self.$exclusive().session(flow, event);
            }

            #[inline]
            fn record(&mut self, flow: &mut Flow<'_, K::State>, reason: EndReason) {
                self.$exclusive().record(flow, reason);
            }

            #[inline]
            fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: K::State) {
                self.$exclusive().ended(flow, reason, state);
            }

            #[cfg(feature = "protocols")]
            #[inline]
            fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
                self.$exclusive().neighbor(neighbor);
            }

            #[inline]
            fn restored(&mut self, state: &mut K::State) {
                self.$exclusive().restored(state);
            }

            #[inline]
            fn held_bytes(&mut self, left: u64) -> u64 {
                self.$exclusive().held_bytes(left)
            }

            #[inline]
            fn batch_ended(&mut self) -> ControlFlow<()> {
                self.$exclusive().batch_ended()
            }
        }
    };
}

forward!(&mut K, deref, deref_mut);
forward!(Box<K>, deref, deref_mut);
forward!(&RefCell<K>, borrow, borrow_mut);
forward!(Rc<RefCell<K>>, borrow, borrow_mut);

/// The layers above the flow tracker: [`Flows`](super::Flows), [`Streams`](super::Streams) or
/// [`Sessions`](super::Sessions). No other type implements this trait.
pub trait Stage: sealed::Stage {
    /// Type of the stage's messages; [`NotInStage`] for a stage without them.
    type Message<'m>;
    /// Type of the stage's stream events; [`NotInStage`] for a stage that does not deliver streams.
    type StreamEvent<'e>;
    /// Type of the stage's session events; [`NotInStage`] for a stage without sessions.
    type SessionEvent;
}

/// Type without values, in place of the messages and events that a stage does not deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInStage {}

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
    use super::super::held::Held;
    use super::super::stats::PipelineStats;
    use super::{Sink, SlotOf};
    use crate::base::Packet;
    use crate::base::{Application, ConfigError, Resources, Timestamp};
    use crate::checkpoint::{Invalid, StateWriter};
    use crate::codec::Reader;
    use crate::tracker::{Flow, FlowId, Interest, Tracker};

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

        /// Returns whether the first packet of a flow is an answer, of a flow whose initiator neither a handshake, the
        /// addresses nor the ports show. The probes of the built-in protocols decide it, so that the records of stages
        /// without sessions have the initiator of those with them.
        #[inline(always)]
        fn is_answer(packet: &Packet<'_>) -> bool {
            #[cfg(feature = "protocols")]
            let is_answer = crate::session::is_answer::<crate::protocols::Standard>(packet);
            #[cfg(not(feature = "protocols"))]
            let is_answer = {
                let _ = packet;
                false
            };
            is_answer
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
            _: &mut Flow<'_, SlotOf<K>>,
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
            _: &mut Held,
            _: &mut Tracker<SlotOf<K>>,
        ) where
            Self: super::Stage,
        {
        }

        /// Name of the stage in a checkpoint.
        const NAME: &'static str;

        /// Writes the state of all flows together to a checkpoint.
        fn save_engine(_: &Self::Engine, _: &mut StateWriter<'_>) -> Result<(), Invalid> {
            Ok(())
        }

        /// Reads the state of all flows together from a checkpoint.
        fn load_engine(_: &mut Self::Engine, _: &mut Reader<'_>) -> Result<(), Invalid> {
            Ok(())
        }

        /// Writes the state of a flow to a checkpoint.
        fn save(_: &Self::Engine, _: &Self::PerFlow, _: &mut StateWriter<'_>) -> Result<(), Invalid> {
            Ok(())
        }

        /// Reads the state of a flow from a checkpoint, and delivers what results from it.
        fn load<K: Sink<Stage = Self> + ?Sized>(
            _: &mut Self::Engine,
            _: &mut K,
            _: &mut Flow<'_, SlotOf<K>>,
            _: &mut Reader<'_>,
        ) -> Result<(), Invalid>
        where
            Self: super::Stage,
        {
            Ok(())
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
