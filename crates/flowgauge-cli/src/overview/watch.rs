//! A source that notes what its frames are, and which of them are duplicates.

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::decode::extractor::Extractor;
use flowgauge::dedup::{DedupConfig, Window};
use flowgauge::source::{Error, Interface, Next, SourceStats, Warning};
use flowgauge::{ConfigError, IpProtocol, KeyPolicy, Resources, Side, Source, TcpFlags, Timestamp};

use super::facts::is_group;
use super::few::Few;

/// What frames are.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Numbers of the types of the outermost headers.
    pub(super) link_types: Few<u16>,
    pub(super) frame_count: u64,
    pub(super) duplicate_count: u64,
    /// Frames of which octets are missing.
    pub(super) truncated_count: u64,
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
pub(super) struct Watched<'a> {
    source: &'a mut dyn Source,
    window: Window,
    pub(super) frames: Frames,
}

impl<'a> Watched<'a> {
    pub(super) fn new(source: &'a mut dyn Source, resources: &Resources) -> Result<Self, ConfigError> {
        Ok(Self {
            source,
            window: Window::new(DedupConfig::default(), resources)?,
            frames: Frames::default(),
        })
    }

    fn note(&mut self, frame: &Frame<'_>) {
        let Self { window, frames, .. } = self;
        frames.link_types.insert(frame.link_type.0);
        frames.frame_count += 1;
        frames.truncated_count += u64::from((frame.data.len() as u64) < u64::from(frame.wire_len));
        // Frames without a time are not known to follow each other at once.
        let is_duplicate = window.check(frame).is_duplicate() && frame.timestamp > Timestamp::ZERO;
        frames.duplicate_count += u64::from(is_duplicate && !is_repeated_by_hosts(frame));
    }
}

impl Source for Watched<'_> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        let next = self.source.next_batch(batch);
        for frame in batch.iter() {
            self.note(&frame);
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
