//! A source that notes what its frames are, and which of them are duplicates.

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::dedup::{DedupConfig, Window};
use flowgauge::source::{Error, Interface, Next, SourceStats, Warning};
use flowgauge::{ConfigError, Resources, Source};

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
        frames.duplicate_count += u64::from(window.check(frame).is_duplicate());
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
