//! A source that returns the batches that a test specifies.

use flowgauge::base::FrameBatch;
use flowgauge::source::{Error, Next, Source};

/// A source that clears each batch and calls a function to fill it.
pub(crate) struct FnSource<F>(pub(crate) F);

impl<F> Source for FnSource<F>
where
    F: FnMut(&mut FrameBatch) -> Result<Next, Error> + Send,
{
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        (self.0)(batch)
    }
}
