//! The stage of sinks that process TCP streams.

use std::ops::ControlFlow;

use super::super::config::Config;
use super::super::held::Held;
use super::super::sink::{NotInStage, Sink, Slot, SlotOf, Stage, sealed};
use super::super::stats::PipelineStats;
use super::segments::{self, Consumer, Pair};
use crate::base::Packet;
use crate::base::{ConfigError, Resources, Side, Timestamp};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::reassembler::{Stream, StreamEvent};
use crate::tracker::{Flow, FlowId, Interest, Tracker};

/// The stage of sinks that process TCP streams: octets in order, gaps and conflicts are delivered to [`Sink::stream`].
/// Takes 64 bytes per flow.
#[derive(Clone, Copy, Debug)]
pub enum Streams {}

impl Stage for Streams {
    type Message<'m> = NotInStage;
    type StreamEvent<'e> = StreamEvent<'e>;
    type SessionEvent = NotInStage;
}

/// Delivers the TCP stream events of one flow to the sink.
struct SinkConsumer<'a, 't, K: Sink + ?Sized> {
    sink: &'a mut K,
    flow: Flow<'t, K::State>,
}

impl<K: Sink<Stage = Streams> + ?Sized> Consumer for SinkConsumer<'_, '_, K> {
    #[inline]
    fn take(&mut self, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        self.sink.stream(&mut self.flow, side, event)
    }

    #[inline]
    fn is_muted(&self) -> bool {
        self.flow.is_muted()
    }
}

impl Streams {
    /// Ends the first hole of a TCP stream because memory is short. A separate function, so that the test for short
    /// memory is inlined.
    #[cold]
    #[inline(never)]
    fn skip<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut segments::Streams,
        sink: &mut K,
        tracker: &mut Tracker<SlotOf<K>>,
        name: (FlowId, Side),
    ) {
        // A flow that ends finishes its streams, so no stream is due without its flow.
        let Some((view, Slot { stage: pair, state })) = tracker.get_mut(name.0) else { return };
        let mut consumer = SinkConsumer { sink, flow: Flow::new(state, view) };
        segments::skip(streams, pair, name, &mut consumer);
        if consumer.is_muted() {
            segments::stop(streams, pair);
            tracker.mute(name.0);
        }
    }
}

impl sealed::Stage for Streams {
    type PerFlow = Pair;
    type Engine = segments::Streams;
    const INTEREST: Interest = Interest::PACKETS;
    const HAS_STREAMS: bool = true;
    const HAS_SESSIONS: bool = false;
    const NAME: &'static str = "streams";

    fn engine(config: &Config, resources: &Resources) -> Result<Self::Engine, ConfigError> {
        segments::Streams::new(config.streams.clone().unwrap_or_default(), resources)
    }

    #[inline(always)]
    fn touch(pair: &Pair) -> u64 {
        segments::touch(pair)
    }

    #[inline]
    fn before_packet<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        packet: &Packet<'_>,
    ) {
        if segments::may_have_due_holes(&flow.state.stage, packet) {
            Self::due(streams, sink, flow, flow.view.clock());
        }
    }

    #[inline]
    fn packet<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        packet: &Packet<'_>,
    ) {
        let Slot { stage: pair, state } = &mut *flow.state;
        let mut consumer = SinkConsumer { sink, flow: Flow::new(state, flow.view) };
        segments::segment(streams, pair, &flow.view, packet, &mut consumer);
        if consumer.is_muted() {
            flow.mute();
        }
    }

    #[inline(always)]
    fn is_over(pair: &Pair) -> bool {
        pair.iter().all(Stream::is_stopped)
    }

    fn mute(streams: &mut Self::Engine, pair: &mut Pair) {
        segments::stop(streams, pair);
    }

    fn finish<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
    ) {
        let (view, Slot { stage: pair, state }) = (flow.view, &mut *flow.state);
        let mut consumer = SinkConsumer { sink, flow: Flow::new(state, view) };
        segments::finish(streams, pair, &view, &mut consumer);
    }

    #[inline]
    fn next_due_ns(streams: &Self::Engine) -> u64 {
        streams.next_due_ns()
    }

    fn next_due(streams: &mut Self::Engine, now: Timestamp) -> Option<FlowId> {
        streams.next_overdue(now).map(|(id, _)| id)
    }

    fn due<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        now: Timestamp,
    ) {
        let Slot { stage: pair, state } = &mut *flow.state;
        let mut consumer = SinkConsumer { sink, flow: Flow::new(state, flow.view) };
        segments::end_due_holes(streams, pair, flow.view.id(), now, &mut consumer);
        if consumer.is_muted() {
            flow.mute();
        }
    }

    #[inline(always)]
    fn relieve<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut Self::Engine,
        sink: &mut K,
        _: &mut Held,
        tracker: &mut Tracker<SlotOf<K>>,
    ) {
        while let Some(name) = streams.next_pressed() {
            Self::skip(streams, sink, tracker, name);
        }
    }

    fn save(streams: &Self::Engine, pair: &Pair, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        segments::save(streams, pair, out)
    }

    fn load<K: Sink<Stage = Self> + ?Sized>(
        streams: &mut Self::Engine,
        sink: &mut K,
        flow: &mut Flow<'_, SlotOf<K>>,
        reader: &mut Reader<'_>,
    ) -> Result<(), Invalid> {
        let Slot { stage: pair, state } = &mut *flow.state;
        let mut consumer = SinkConsumer { sink, flow: Flow::new(state, flow.view) };
        segments::load(reader, streams, pair, &flow.view, &mut consumer)?;
        if consumer.is_muted() {
            flow.mute();
        }
        Ok(())
    }

    fn count(streams: &Self::Engine, stats: &mut PipelineStats) {
        stats.streams = streams.stats();
    }

    fn held_stream_count(streams: &Self::Engine) -> usize {
        streams.held_stream_count()
    }

    fn check_invariants<'f>(streams: &Self::Engine, flows: impl Iterator<Item = &'f Pair>) {
        segments::check_invariants(streams, flows);
    }
}
