//! Sources of which a test decides what each call returns.

use flowgauge::base::FrameBatch;
use flowgauge::source::{Error, Interface, Next, Source, SourceStats, Warning};

/// A source that calls a function for each batch, which it cleared.
pub(crate) struct FnSource<F>(pub(crate) F);

impl<F> Source for FnSource<F>
where
    F: FnMut(&mut FrameBatch) -> Result<Next, Error> + Send,
{
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        (self.0)(batch)
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn stats(&self) -> SourceStats {
        SourceStats::default()
    }

    fn interfaces(&self) -> &[Interface] {
        &[]
    }

    fn progress(&self) -> u64 {
        0
    }
}
