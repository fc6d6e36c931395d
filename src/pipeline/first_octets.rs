//! The first octets of each direction, and no more.

use std::ops::ControlFlow;

use super::streams::StreamSink;
use crate::base::{EndReason, Side};
use crate::extractor::Packet;
use crate::reassembler::{Chunk, Gap, StreamEvent};
use crate::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest};

/// Lends a sink the first octets of each direction; then that direction is stopped, so that its later segments cost a test and hold
/// nothing. What happens to the flow is told as before.
///
/// Octets that are missing count: a [`Gap`] is cut at the same place as a [`Chunk`]. A direction that ends before tells its
/// [`Fin`](StreamEvent::Fin); one that is stopped tells none. Allocates nothing.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use flowgauge::base::Side;
/// use flowgauge::pipeline::{FirstOctets, Pipeline, StreamSink};
/// use flowgauge::reassembler::{ReassemblerConfig, StreamEvent};
/// use flowgauge::source::FileSource;
/// use flowgauge::tracker::{Flow, FlowSink, TrackerConfig};
///
/// #[derive(Default)]
/// struct Count(usize);
///
/// impl FlowSink<()> for Count {}
///
/// impl StreamSink<()> for Count {
///     fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
///         if let StreamEvent::Chunk(chunk) = event {
///             self.0 += chunk.bytes.len();
///         }
///         ControlFlow::Continue(())
///     }
/// }
///
/// let pipeline = Pipeline::new(TrackerConfig::default())?;
/// let mut pipeline = pipeline.with_streams(ReassemblerConfig::default())?;
/// let mut source = FileSource::open("examples/data/web.pcap")?;
/// let mut sink = FirstOctets::new(64, Count::default());
/// pipeline.run(&mut source, &mut sink)?;
/// let flow_count = pipeline.stats().tracker.started_count;
/// assert!((1..=2 * 64 * flow_count).contains(&(sink.into_inner().0 as u64)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FirstOctets<K> {
    len: u64,
    inner: K,
}

impl<K> FirstOctets<K> {
    /// The first `len` octets of each direction for a sink.
    #[must_use]
    pub const fn new(len: u64, inner: K) -> Self {
        Self { len, inner }
    }

    /// The sink.
    #[must_use]
    pub const fn inner(&self) -> &K {
        &self.inner
    }

    /// The sink, given back.
    #[must_use]
    pub fn into_inner(self) -> K {
        self.inner
    }

    /// As much of what begins at an offset as lies among the first octets, and whether it goes on to their end.
    const fn cut(&self, offset: u64, len: u64) -> (u64, bool) {
        let room = self.len.saturating_sub(offset);
        if len < room { (len, false) } else { (room, true) }
    }
}

impl<U, K: FlowSink<U>> FlowSink<U> for FirstOctets<K> {
    fn interest(&self) -> Interest {
        self.inner.interest()
    }

    fn started(&mut self, flow: &mut Flow<'_, U>) {
        self.inner.started(flow);
    }

    fn packet(&mut self, flow: &mut Flow<'_, U>, packet: &Packet<'_>) {
        self.inner.packet(flow, packet);
    }

    fn event(&mut self, flow: &mut Flow<'_, U>, event: &FlowEvent) {
        self.inner.event(flow, event);
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, user: U) {
        self.inner.ended(view, reason, user);
    }

    fn wants_more(&self) -> bool {
        self.inner.wants_more()
    }
}

impl<U, K: StreamSink<U>> StreamSink<U> for FirstOctets<K> {
    #[inline]
    fn stream(&mut self, flow: &mut Flow<'_, U>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let (event, is_last) = match *event {
            StreamEvent::Chunk(Chunk { offset, bytes, timestamp }) => {
                let (len, is_last) = self.cut(offset, bytes.len() as u64);
                let bytes = bytes.get(..len as usize).unwrap_or_default();
                (StreamEvent::Chunk(Chunk { offset, bytes, timestamp }), is_last)
            }
            StreamEvent::Gap(gap) => {
                let (len, is_last) = self.cut(gap.offset, gap.len);
                (StreamEvent::Gap(Gap { len, ..gap }), is_last)
            }
            // About octets that are held behind a hole.
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
        // Of no octets, there is nothing to tell.
        if self.len > 0 {
            self.inner.stream(flow, side, &event)?;
        }
        if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
