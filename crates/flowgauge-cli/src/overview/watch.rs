//! A source that notes what its frames are, and which of them are duplicates.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::decode::extractor::Extractor;
use flowgauge::dedup::{DedupConfig, Window};
use flowgauge::source::{Error, Interface, Next, SourceStats, Warning};
use flowgauge::{
    ConfigError, IpProtocol, KeyPolicy, PipelineStats, Resources, Side, Source, TcpFlags, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::facts::is_group;
use super::few::Few;

/// What frames are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Frames {
    /// Numbers of the types of the outermost headers.
    pub(super) link_types: Few<u16>,
    pub(super) frame_count: u64,
    pub(super) duplicate_count: u64,
    /// Frames of which octets are missing.
    pub(super) truncated_count: u64,
}

impl Frames {
    /// Adds the frames of another run.
    pub(super) fn add(&mut self, other: &Self) {
        self.link_types.add(&other.link_types);
        self.frame_count += other.frame_count;
        self.duplicate_count += other.duplicate_count;
        self.truncated_count += other.truncated_count;
    }
}

/// What the layers of a pipeline counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Totals {
    pub(super) packet_count: u64,
    pub(super) octet_count: u64,
    pub(super) flow_count: u64,
    /// Packets without a flow.
    pub(super) skipped_count: u64,
    /// Gaps in streams, and their octets.
    pub(super) gap_count: u64,
    pub(super) missing_len: u64,
}

impl Totals {
    /// Adds the counters of a pipeline.
    pub(super) fn add(&mut self, stats: &PipelineStats) {
        self.packet_count += stats.frame_count;
        self.octet_count += stats.octet_count;
        self.flow_count += stats.tracker.started_count;
        self.skipped_count += stats.skipped.total();
        self.gap_count += stats.streams.gap_counts.iter().sum::<u64>();
        self.missing_len += stats.streams.gap_octet_count;
    }
}

/// Returns whether hosts send equal frames of this kind one after another: segments with RST, and announcements to a group.
#[cold]
fn is_repeated_by_hosts(frame: &Frame<'_>) -> bool {
    let Ok(packet) = Extractor::new(KeyPolicy::default()).extract(frame) else { return false };
    let is_to_group = [Side::A, Side::B].into_iter().any(|side| is_group(&packet.key.address(side)));
    match packet.key.protocol() {
        IpProtocol::TCP => packet.tcp.flags.contains(TcpFlags::RST),
        protocol => protocol == IpProtocol::UDP && is_to_group,
    }
}

/// Passes the frames of a source on, and notes what they are.
pub(super) struct Watched<S> {
    source: S,
    window: Window,
    frames: Arc<Mutex<Frames>>,
}

impl<S> Watched<S> {
    pub(super) const fn new(source: S, window: Window, frames: Arc<Mutex<Frames>>) -> Self {
        Self { source, window, frames }
    }
}

/// Returns a window that finds duplicate frames.
pub(super) fn window(resources: &Resources) -> Result<Window, ConfigError> {
    Window::new(DedupConfig::default(), resources)
}

/// Locks what frames are, which no thread leaves inconsistent.
pub(super) fn locked(frames: &Mutex<Frames>) -> MutexGuard<'_, Frames> {
    frames.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(frame: &Frame<'_>, window: &mut Window, frames: &mut Frames) {
    frames.link_types.insert(frame.link_type.0);
    frames.frame_count += 1;
    frames.truncated_count += u64::from((frame.data.len() as u64) < u64::from(frame.wire_len));
    // Frames without a time are not known to follow each other at once.
    let is_duplicate = window.check(frame).is_duplicate() && frame.timestamp > Timestamp::ZERO;
    frames.duplicate_count += u64::from(is_duplicate && !is_repeated_by_hosts(frame));
}

impl<S: Source> Source for Watched<S> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        let next = self.source.next_batch(batch);
        let mut frames = locked(&self.frames);
        for frame in batch.iter() {
            note(&frame, &mut self.window, &mut frames);
        }
        next
    }

    fn warnings(&self) -> &[Warning] {
        self.source.warnings()
    }

    fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    fn interfaces(&self) -> &[Interface] {
        self.source.interfaces()
    }

    fn progress(&self) -> u64 {
        self.source.progress()
    }

    fn total_len(&self) -> Option<u64> {
        self.source.total_len()
    }
}
