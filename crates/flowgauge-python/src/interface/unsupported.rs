//! Systems on which interfaces are not captured.

use flowgauge::source::{self, SourceStats};
use flowgauge::{FrameBatch, Next, Source};

use super::{Settings, Shared};

/// A capture, which cannot be opened.
#[derive(Debug)]
pub(crate) enum Ring {}

impl Ring {
    pub(crate) fn open(name: &str, _: &Settings, _: Shared) -> Result<Self, source::Error> {
        let message = "live capture needs Linux".to_owned();
        Err(source::Error::Live { device: name.to_owned(), message })
    }
}

impl Source for Ring {
    fn next_batch(&mut self, _: &mut FrameBatch) -> Result<Next, source::Error> {
        match *self {}
    }

    fn stats(&self) -> SourceStats {
        match *self {}
    }
}
