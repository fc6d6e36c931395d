//! Sink adapter that passes on only the first octets of each direction of a TCP connection.

use std::ops::ControlFlow;

use super::sink::Sink;
use super::stage::Streams;
use crate::base::Packet;
use crate::base::{EndReason, Side};
#[cfg(feature = "protocols")]
use crate::neighbor::Neighbor;
use crate::reassembler::{Chunk, Gap, StreamEvent};
use crate::tracker::{Flow, FlowEvent, FlowView, Interest};

/// Passes the first octets of each direction to a sink, then stops that direction, so that its later segments cost one
/// test and no memory. All other callbacks are passed on unchanged.
///
/// Missing octets count: a [`Gap`] is truncated at the same offset as a [`Chunk`]. A direction that ends earlier
/// delivers its [`Fin`](StreamEvent::Fin); a stopped direction does not. Allocates nothing.
///
/// ```
/// use std::ops::ControlFlow;
/// use flowgauge::{FileSource, FirstOctets, Flow, Pipeline, RunOptions, Side, Sink, StreamEvent, Streams};
///
/// #[derive(Default)]
/// struct Count(usize);
///
/// impl Sink for Count {
///     type State = ();
///     type Stage = Streams;
///
///     fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
///         if let StreamEvent::Chunk(chunk) = event {
///             self.0 += chunk.bytes.len();
///         }
///         ControlFlow::Continue(())
///     }
/// }
///
/// let mut pipeline = Pipeline::builder().build(FirstOctets::new(64, Count::default()))?;
/// pipeline.run(&mut FileSource::open("examples/data/web.pcap")?, &RunOptions::default())?;
/// let flow_count = pipeline.stats().tracker.started_count;
/// assert!((1..=2 * 64 * flow_count).contains(&(pipeline.into_sink().into_inner().0 as u64)));
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FirstOctets<K> {
    len: u64,
    inner: K,
}

impl<K> FirstOctets<K> {
    /// Creates an adapter that passes the first `len` octets of each direction to the sink `inner`.
    #[must_use]
    pub const fn new(len: u64, inner: K) -> Self {
        Self { len, inner }
    }

    /// Returns the sink that the adapter calls.
    #[must_use]
    pub const fn inner(&self) -> &K {
        &self.inner
    }

    /// Returns the sink that the adapter called, and drops the adapter.
    #[must_use]
    pub fn into_inner(self) -> K {
        self.inner
    }

    /// Returns how many octets of a range of a stream, from `offset`, are among the first octets that are passed on,
    /// and whether the range reaches the end of these.
    const fn truncated(&self, offset: u64, len: u64) -> (u64, bool) {
        let rest = self.len.saturating_sub(offset);
        if len < rest { (len, false) } else { (rest, true) }
    }
}

impl<K: Sink<Stage = Streams>> Sink for FirstOctets<K> {
    type State = K::State;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        self.inner.interest()
    }

    fn started(&mut self, flow: &mut Flow<'_, K::State>) {
        self.inner.started(flow);
    }

    fn packet(&mut self, flow: &mut Flow<'_, K::State>, packet: &Packet<'_>) {
        self.inner.packet(flow, packet);
    }

    fn event(&mut self, flow: &mut Flow<'_, K::State>, event: &FlowEvent) {
        self.inner.event(flow, event);
    }

    fn record(&mut self, flow: &mut Flow<'_, K::State>, reason: EndReason) {
        self.inner.record(flow, reason);
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: K::State) {
        self.inner.ended(view, reason, state);
    }

    fn restored(&mut self, state: &mut K::State) {
        self.inner.restored(state);
    }

    #[cfg(feature = "protocols")]
    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.inner.neighbor(neighbor);
    }

    #[inline]
    fn held_bytes(&mut self, left: u64) -> u64 {
        self.inner.held_bytes(left)
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.inner.batch_ended()
    }

    #[inline]
    fn stream(
        &mut self,
        flow: &mut Flow<'_, K::State>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let (event, is_last) = match *event {
            StreamEvent::Chunk(Chunk { offset, bytes, timestamp }) => {
                let (len, is_last) = self.truncated(offset, bytes.len() as u64);
                let bytes = bytes.get(..len as usize).unwrap_or_default();
                (StreamEvent::Chunk(Chunk { offset, bytes, timestamp }), is_last)
            }
            StreamEvent::Gap(gap) => {
                let (len, is_last) = self.truncated(gap.offset, gap.len);
                (StreamEvent::Gap(Gap { len, ..gap }), is_last)
            }
            // Such a conflict concerns octets that are held behind a hole.
            StreamEvent::Conflict(conflict) if conflict.offset >= self.len => {
                return ControlFlow::Continue(());
            }
            StreamEvent::Repeated { offset, .. } | StreamEvent::AfterFin { offset, .. }
                if offset >= self.len =>
            {
                return ControlFlow::Continue(());
            }
            event => (event, false),
        };
        // With a length of zero, there is nothing to deliver.
        if self.len > 0 {
            self.inner.stream(flow, side, &event)?;
        }
        if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
