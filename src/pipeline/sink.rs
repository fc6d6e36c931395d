//! The trait that a program implements to receive the output of a pipeline.

use std::ops::ControlFlow;

use super::stage::{Flows, Stage};
use crate::base::{EndReason, Side};
use crate::decode::extractor::Packet;
use crate::reassembler::StreamEvent;
use crate::session::{MessageMeta, SessionEvent};
use crate::tracker::{Flow, FlowEvent, FlowView, Interest};

/// The type of the messages that a sink receives, which its stage determines.
pub type MessageOf<'m, K> = <<K as Sink>::Stage as Stage>::Message<'m>;

/// Receives flows, packets, streams, messages and records from a [`Pipeline`](super::Pipeline).
///
/// All methods have defaults that ignore their arguments; only the associated types do not. [`Stage`](Self::Stage)
/// selects the layers above the flow tracker: [`Flows`] for none, [`Streams`](super::Streams) for TCP streams,
/// [`Sessions`](super::Sessions) for messages of application protocols. A flow uses memory only for the needs of its
/// stage.
///
/// The calls for one packet have this order: everything due before it, `record` and `ended` of a flow that is evicted
/// or replaced, `started`, `event`s, `packet`, then `stream`, or `session` and `message`s. [`Flow::mute`] in any of
/// them ends all calls for the flow except `record` and `ended`, and releases the memory of its streams and session.
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

    /// The layers above the flow tracker that the sink requires: [`Flows`], [`Streams`](super::Streams) or
    /// [`Sessions`](super::Sessions).
    type Stage: Stage;

    /// Returns the callbacks that the sink requests. It is called up to twice per packet and is best a constant. A
    /// change takes effect with the next batch at the latest, except for flows of which the stage had nothing more to
    /// deliver while the sink requested neither packets nor events: these are muted. [`record`](Self::record),
    /// [`ended`](Self::ended), [`stream`](Self::stream), [`message`](Self::message) and [`session`](Self::session) are
    /// always called.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Called when a flow begins; the flow's first packet is not counted yet.
    fn started(&mut self, flow: &mut Flow<'_, Self::State>) {
        let _ = flow;
    }

    /// Called after a packet was counted on its flow.
    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        let _ = (flow, packet);
    }

    /// Called when the flow changes, or has unusual traffic.
    fn event(&mut self, flow: &mut Flow<'_, Self::State>, event: &FlowEvent) {
        let _ = (flow, event);
    }

    /// Delivers octets of a TCP stream that `side` sent, or another event, in stream order (stage
    /// [`Streams`](super::Streams)). The rest of a stream is delivered before the flow's [`record`](Self::record).
    ///
    /// After [`ControlFlow::Break`], nothing more of this direction is delivered. Its memory is released, and its later
    /// segments cost one test.
    fn stream(
        &mut self,
        flow: &mut Flow<'_, Self::State>,
        side: Side,
        event: &StreamEvent<'_>,
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

    /// Called when an application protocol is recognized, or a parser stops (stage [`Sessions`](super::Sessions)). A
    /// protocol that only the port indicates is reported when the flow ends.
    fn session(&mut self, flow: &mut Flow<'_, Self::State>, event: &SessionEvent) {
        let _ = (flow, event);
    }

    /// Called when a record of the flow is due, because the flow's active timeout passed or because the flow ends. Not
    /// called for a flow without packets since the last record. [`FlowView::record`] creates the record.
    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        let _ = (flow, reason);
    }

    /// Called once for each flow when the flow has ended, after the last [`record`](Self::record). `state` is the
    /// caller's state of the flow.
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: Self::State) {
        let _ = (flow, reason, state);
    }

    /// Called after a batch of frames was processed. [`ControlFlow::Break`] ends the run as if the input had ended
    /// here.
    fn batch_ended(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Sink that ignores all callbacks.
impl Sink for () {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }
}

/// Forwards all methods of [`Sink`] to the referenced value.
macro_rules! forward {
    ($pointer:ty) => {
        impl<K: Sink + ?Sized> Sink for $pointer {
            type State = K::State;
            type Stage = K::Stage;

            #[inline]
            fn interest(&self) -> Interest {
                (**self).interest()
            }

            #[inline]
            fn started(&mut self, flow: &mut Flow<'_, K::State>) {
                (**self).started(flow);
            }

            #[inline]
            fn packet(&mut self, flow: &mut Flow<'_, K::State>, packet: &Packet<'_>) {
                (**self).packet(flow, packet);
            }

            #[inline]
            fn event(&mut self, flow: &mut Flow<'_, K::State>, event: &FlowEvent) {
                (**self).event(flow, event);
            }

            #[inline]
            fn stream(
                &mut self,
                flow: &mut Flow<'_, K::State>,
                side: Side,
                event: &StreamEvent<'_>,
            ) -> ControlFlow<()> {
                (**self).stream(flow, side, event)
            }

            #[inline]
            fn message(
                &mut self,
                flow: &mut Flow<'_, K::State>,
                meta: &MessageMeta,
                message: &MessageOf<'_, K>,
            ) {
                (**self).message(flow, meta, message);
            }

            #[inline]
            fn session(&mut self, flow: &mut Flow<'_, K::State>, event: &SessionEvent) {
                (**self).session(flow, event);
            }

            #[inline]
            fn record(&mut self, flow: &mut Flow<'_, K::State>, reason: EndReason) {
                (**self).record(flow, reason);
            }

            #[inline]
            fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: K::State) {
                (**self).ended(flow, reason, state);
            }

            #[inline]
            fn batch_ended(&mut self) -> ControlFlow<()> {
                (**self).batch_ended()
            }
        }
    };
}

forward!(&mut K);
forward!(Box<K>);
