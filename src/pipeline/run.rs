//! The run loop.

use crate::base::{Frame, FrameBatch, Timestamp};
use crate::extractor::{Extractor, KeyPolicy, Packet, SkipStats};
use crate::filter::Filter;
use crate::source::{Error, Source};
use crate::tracker::{ConfigError, FlowSink, Tracker, TrackerConfig, TrackerStats};

/// Packets that are extracted before they are tracked together.
const CHUNK: usize = 32;

/// What went through a [`Pipeline`].
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PipelineStats {
    /// Frames.
    pub frame_count: u64,
    /// Octets of the frames on the wire.
    pub octet_count: u64,
    /// Frames that are no packet of any flow, by reason.
    pub skipped: SkipStats,
    /// Packets that the filter dropped.
    pub filtered_count: u64,
    /// What the tracker counted.
    pub tracker: TrackerStats,
}

/// Extractor and tracker, wired: takes frames, batches, or a whole source. `S` is the caller's state per flow.
#[derive(Debug)]
pub struct Pipeline<S> {
    extractor: Extractor,
    tracker: Tracker<S>,
    filter: Option<Filter>,
    frame_count: u64,
    octet_count: u64,
    filtered_count: u64,
    skipped: SkipStats,
}

impl Default for Pipeline<()> {
    /// With default configuration and without a state per flow.
    fn default() -> Self {
        Self::around(Extractor::default(), Tracker::default())
    }
}

impl<S: Default> Pipeline<S> {
    /// A pipeline with a tracker configuration of the caller's; its key policy and limits go for the extractor too.
    ///
    /// # Errors
    ///
    /// As [`Tracker::new`].
    pub fn new(config: TrackerConfig) -> Result<Self, ConfigError> {
        let policy: KeyPolicy = config.key_policy;
        let extractor = Extractor::new(policy).with_limits(config.limits);
        Ok(Self::around(extractor, Tracker::new(config)?))
    }

    fn around(extractor: Extractor, tracker: Tracker<S>) -> Self {
        Self {
            extractor,
            tracker,
            filter: None,
            frame_count: 0,
            octet_count: 0,
            filtered_count: 0,
            skipped: SkipStats::default(),
        }
    }

    /// Drops packets before the flow table that belong to no flow which the filter could let pass.
    ///
    /// A filter with `src`, `dst` or `vlan` is about a whole flow; ask it again of the record.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// The tracker: for look-ups, removal and its clock.
    pub const fn tracker_mut(&mut self) -> &mut Tracker<S> {
        &mut self.tracker
    }

    /// The tracker, to look at.
    #[must_use]
    pub const fn tracker(&self) -> &Tracker<S> {
        &self.tracker
    }

    /// What went through so far. Copies the counts by reason.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        PipelineStats {
            frame_count: self.frame_count,
            octet_count: self.octet_count,
            skipped: self.skipped.clone(),
            filtered_count: self.filtered_count,
            tracker: *self.tracker.stats(),
        }
    }

    /// Takes all frames of a source, then ends the flows.
    ///
    /// Stops early, between batches, if the sink wants no more. What a source met that it could not read, it tells
    /// by its warnings.
    ///
    /// # Errors
    ///
    /// What the source gives; the flows so far are ended before it is returned.
    pub fn run<K: FlowSink<S> + ?Sized>(
        &mut self,
        source: &mut (impl Source + ?Sized),
        sink: &mut K,
    ) -> Result<(), Error> {
        let mut batch = FrameBatch::new();
        let outcome = loop {
            match source.next_batch(&mut batch) {
                Ok(true) => self.batch(&batch, sink),
                Ok(false) => break Ok(()),
                Err(error) => {
                    // What was read before the error is in the batch.
                    self.batch(&batch, sink);
                    break Err(error);
                }
            }
            if !sink.wants_more() {
                break Ok(());
            }
        };
        self.finish(sink);
        outcome
    }

    /// Takes the frames of a batch.
    pub fn batch<K: FlowSink<S> + ?Sized>(&mut self, batch: &FrameBatch, sink: &mut K) {
        let mut packets = [Packet::EMPTY; CHUNK];
        let mut count = 0;
        for frame in batch.iter() {
            count += usize::from(self.extract(&frame, &mut packets[count]));
            if count == CHUNK {
                self.tracker.track_batch(&packets, sink);
                count = 0;
            }
        }
        self.tracker.track_batch(&packets[..count], sink);
    }

    /// Takes one frame.
    pub fn frame<K: FlowSink<S> + ?Sized>(&mut self, frame: &Frame<'_>, sink: &mut K) {
        let mut packet = Packet::EMPTY;
        if self.extract(frame, &mut packet) {
            self.tracker.track(&packet, sink);
        }
    }

    /// Ends flows that are due at a time, for live capture when no packets come.
    pub fn advance<K: FlowSink<S> + ?Sized>(&mut self, now: Timestamp, sink: &mut K) {
        self.tracker.advance(now, sink);
    }

    /// Ends all flows; see [`Tracker::finish`].
    pub fn finish<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        self.tracker.finish(sink);
    }

    /// Reads a frame into `packet`; whether it is to be tracked.
    #[inline(always)]
    fn extract<'a>(&mut self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> bool {
        self.frame_count += 1;
        self.octet_count += u64::from(frame.wire_len);
        if let Err(skip) = self.extractor.extract_into(frame, packet) {
            self.skipped.count(&skip);
            return false;
        }
        match &self.filter {
            Some(filter) if !filter.may_match(&packet.key) => {
                self.filtered_count += 1;
                false
            }
            _ => true,
        }
    }
}
