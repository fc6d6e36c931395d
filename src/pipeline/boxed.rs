//! Sinks whose type is known only when the program runs.

use std::any::Any;
use std::ops::ControlFlow;

use super::sink::{MessageOf, Sink, Stage};
use crate::base::{EndReason, Packet, Side};
#[cfg(feature = "protocols")]
use crate::neighbor::Neighbor;
use crate::session::MessageMeta;
use crate::tracker::{Flow, FlowEvent, FlowView, Interest};

/// A sink of any type that requires the stage `G`, made by [`boxed`].
pub type BoxedSink<'a, G> = Box<dyn Sink<State = AnyState, Stage = G> + 'a>;

/// The state of a flow of a [`BoxedSink`]: allocated by the first callback of the flow, unless it takes no memory.
#[derive(Debug, Default)]
pub struct AnyState(Option<Box<dyn Any>>);

/// What the allocation of a state takes beside it.
const ALLOCATION_LEN: usize = 16;

/// Makes a sink one of the type that all sinks of its stage have in common.
///
/// A pipeline is compiled for each type of sink, about 90 KiB of code each. A program with many sinks, of which a run
/// uses one, builds in less time and is smaller if they are boxed. Each callback is a call through a pointer, and a state
/// that takes memory is an allocation for each flow. [`Sink::held_bytes`] counts them, with at most 64 of flows that ended,
/// which later flows use.
///
/// ```
/// use flowgauge::pipeline::{BoxedSink, boxed};
/// use flowgauge::{FileSource, Flows, Pipeline, Records, RunOptions};
///
/// let (mut octet_count, mut packet_count) = (0, 0);
/// let counts_octets = true;
/// let sink: BoxedSink<'_, Flows> = if counts_octets {
///     boxed(Records::new(|record| octet_count += record.octet_count()))
/// } else {
///     boxed(Records::new(|record| packet_count += record.packet_count()))
/// };
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// Pipeline::builder().build(sink)?.run(&mut source, &RunOptions::default())?;
/// assert!(octet_count > 1_000_000 && packet_count == 0);
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub fn boxed<'a, K: Sink + 'a>(sink: K) -> BoxedSink<'a, K::Stage>
where
    K::State: 'static,
{
    Box::new(Erased { sink, states: States { count: 0, spare: Vec::new() } })
}

struct Erased<K: Sink> {
    sink: K,
    states: States<K::State>,
}

/// The allocations of the states of flows.
struct States<T> {
    /// Number of states that are allocated.
    count: u64,
    /// Allocations of flows that ended, for later ones.
    spare: Vec<Box<T>>,
}

/// Maximum number of allocations that are kept for later flows.
const SPARE_MAX: usize = 64;

impl<K: Sink> Erased<K>
where
    K::State: 'static,
{
    #[inline]
    fn with<R>(
        &mut self,
        flow: &mut Flow<'_, AnyState>,
        call: impl FnOnce(&mut K, &mut Flow<'_, K::State>) -> R,
    ) -> R {
        let Self { sink, states } = self;
        flow.project(|state| state.get(states), |flow| call(sink, flow))
    }
}

impl AnyState {
    #[expect(clippy::expect_used, reason = "the line before creates a state of this type")]
    #[inline]
    fn get<T: Default + 'static>(&mut self, states: &mut States<T>) -> &mut T {
        // A type without size is not allocated.
        let state = self.0.get_or_insert_with(|| states.spare.pop().unwrap_or_else(|| states.allocated()));
        state.downcast_mut().expect("one sink uses the state")
    }

    fn take<T: Default + 'static>(self, states: &mut States<T>) -> T {
        let Some(mut state) = self.0.and_then(|state| state.downcast::<T>().ok()) else {
            return T::default();
        };
        if states.spare.len() < SPARE_MAX {
            let taken = std::mem::take(&mut *state);
            states.spare.push(state);
            taken
        } else {
            states.count -= 1;
            *state
        }
    }
}

impl<T: Default> States<T> {
    #[cold]
    fn allocated(&mut self) -> Box<T> {
        self.count += 1;
        Box::default()
    }
}

impl<K: Sink> Sink for Erased<K>
where
    K::State: 'static,
{
    type State = AnyState;
    type Stage = K::Stage;

    fn interest(&self) -> Interest {
        self.sink.interest()
    }

    fn started(&mut self, flow: &mut Flow<'_, AnyState>) {
        self.with(flow, K::started);
    }

    fn packet(&mut self, flow: &mut Flow<'_, AnyState>, packet: &Packet<'_>) {
        self.with(flow, |sink, flow| sink.packet(flow, packet));
    }

    fn event(&mut self, flow: &mut Flow<'_, AnyState>, event: &FlowEvent) {
        self.with(flow, |sink, flow| sink.event(flow, event));
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, AnyState>,
        side: Side,
        event: &<K::Stage as Stage>::StreamEvent<'_>,
    ) -> ControlFlow<()> {
        self.with(flow, |sink, flow| sink.stream(flow, side, event))
    }

    fn message(&mut self, flow: &mut Flow<'_, AnyState>, meta: &MessageMeta, message: &MessageOf<'_, Self>) {
        self.with(flow, |sink, flow| sink.message(flow, meta, message));
    }

    fn session(&mut self, flow: &mut Flow<'_, AnyState>, event: &<K::Stage as Stage>::SessionEvent) {
        self.with(flow, |sink, flow| sink.session(flow, event));
    }

    fn record(&mut self, flow: &mut Flow<'_, AnyState>, reason: EndReason) {
        self.with(flow, |sink, flow| sink.record(flow, reason));
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, state: AnyState) {
        let state = state.take(&mut self.states);
        self.sink.ended(flow, reason, state);
    }

    #[cfg(feature = "protocols")]
    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.sink.neighbor(neighbor);
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        let state_len = match size_of::<K::State>() {
            0 => 0,
            len => len + ALLOCATION_LEN,
        };
        self.states.count * state_len as u64 + self.sink.held_bytes(left)
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.sink.batch_ended()
    }
}
