//! A source that notes what its frames are, and which of them are duplicates.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::decode::extractor::Extractor;
use flowgauge::dedup::{DedupConfig, Window};
use flowgauge::reassembler::SkewStats;
use flowgauge::source::{Error, Next};
use flowgauge::{
    ConfigError, IpProtocol, KeyPolicy, PipelineStats, Resources, Side, Source, TcpFlags, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::counts::is_group;
use crate::few::Few;

/// What the frames of a source are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Frames {
    /// Numbers of the types of the outermost headers.
    pub link_types: Few<u16>,
    /// Number of frames.
    pub frame_count: u64,
    /// Frames with the octets of one shortly before, without those that hosts repeat.
    pub duplicate_count: u64,
    /// Frames of which octets are missing.
    pub truncated_count: u64,
}

impl Frames {
    /// Adds the frames of another run.
    pub fn add(&mut self, other: &Self) {
        self.link_types.add(&other.link_types);
        self.frame_count += other.frame_count;
        self.duplicate_count += other.duplicate_count;
        self.truncated_count += other.truncated_count;
    }
}

/// What the layers of a pipeline counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Totals {
    /// Number of frames.
    pub packet_count: u64,
    /// Octets of frames on the wire.
    pub octet_count: u64,
    /// Number of flows.
    pub flow_count: u64,
    /// Packets without a flow.
    pub skipped_count: u64,
    /// Number of gaps in streams of TCP.
    pub gap_count: u64,
    /// Octets of these gaps.
    pub missing_len: u64,
    /// Number of conflicts in streams of TCP: octets that were sent again with other values.
    #[serde(default)]
    pub conflict_count: u64,
    /// Octets of these conflicts.
    #[serde(default)]
    pub conflict_len: u64,
    /// Skew between the directions of the captures.
    #[serde(default)]
    pub skew: SkewStats,
}

impl Totals {
    /// Adds the counters of a pipeline.
    pub fn add(&mut self, stats: &PipelineStats) {
        self.packet_count += stats.frame_count;
        self.octet_count += stats.octet_count;
        self.flow_count += stats.tracker.started_count;
        self.skipped_count += stats.skipped.total();
        self.gap_count += stats.streams.gap_counts.iter().sum::<u64>();
        self.missing_len += stats.streams.gap_octet_count;
        self.conflict_count += stats.streams.conflict_count;
        self.conflict_len += stats.streams.conflict_octet_count;
        self.skew.add(&stats.streams.skew);
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

/// Notes what the frames of sources are, in one window over all of them.
///
/// Clones share what they note.
#[derive(Clone)]
pub struct Watch(Arc<Mutex<Watching>>);

struct Watching {
    window: Window,
    frames: Frames,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.locked().frames).finish()
    }
}

impl Watch {
    /// Creates a watch, with a window that finds duplicate frames.
    ///
    /// # Errors
    ///
    /// Returns an error if the window does not fit the memory of `resources`.
    pub fn new(resources: &Resources) -> Result<Self, ConfigError> {
        let window = Window::new(DedupConfig::default(), resources)?;
        Ok(Self(Arc::new(Mutex::new(Watching { window, frames: Frames::default() }))))
    }

    /// Returns a source with the frames of another one, which are noted.
    pub fn source<S: Source>(&self, source: S) -> Watched<S> {
        Watched { source, watch: self.clone() }
    }

    /// Returns what the frames so far are.
    #[must_use]
    pub fn frames(&self) -> Frames {
        self.locked().frames.clone()
    }

    /// Locks what no thread leaves inconsistent.
    fn locked(&self) -> MutexGuard<'_, Watching> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watching {
    fn note(&mut self, frame: &Frame<'_>) {
        let Self { window, frames } = self;
        frames.link_types.insert(frame.link_type.0);
        frames.frame_count += 1;
        frames.truncated_count += u64::from((frame.data.len() as u64) < u64::from(frame.wire_len));
        // Frames without a time are not known to follow each other at once.
        let is_duplicate = window.check(frame).is_duplicate() && frame.timestamp > Timestamp::ZERO;
        frames.duplicate_count += u64::from(is_duplicate && !is_repeated_by_hosts(frame));
    }
}

/// Passes the frames of a source on, and notes what they are; see [`Watch::source`].
#[derive(Debug)]
pub struct Watched<S> {
    source: S,
    watch: Watch,
}

impl<S: Source> Source for Watched<S> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        let next = self.source.next_batch(batch);
        let mut watching = self.watch.locked();
        for frame in batch.iter() {
            watching.note(&frame);
        }
        next
    }

    flowgauge::forward_source!(source);
}
