//! Pauses of an input, in which checkpoints are written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flowgauge::Source;
use flowgauge::base::FrameBatch;
use flowgauge::source::{End, Error, Next};

/// Locks a value that no thread leaves inconsistent.
pub(super) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When an input pauses.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Option<Duration>,
    /// When the input began, or continued after its last pause.
    resumed_at: Instant,
    /// True if the input was read since its last pause: there is progress even if a checkpoint takes longer than the interval.
    has_read: bool,
    is_paused: bool,
}

impl Pace {
    pub(super) fn new(interval: Option<Duration>) -> Self {
        Self { interval, resumed_at: Instant::now(), has_read: false, is_paused: false }
    }

    /// Returns whether the input pauses, and may have more frames.
    pub(super) const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Continues after a pause, whose length does not count as time since the last checkpoint.
    pub(super) fn resume(&mut self) {
        *self = Self::new(self.interval);
    }

    /// Begins a pause if one is due.
    fn pause(&mut self) -> bool {
        let is_due = self.interval.is_some_and(|interval| self.resumed_at.elapsed() >= interval);
        self.is_paused = is_due && self.has_read;
        self.has_read = true;
        self.is_paused
    }
}

/// A source that is stopped at each pause.
pub(super) struct Paced<S> {
    pub(super) source: S,
    pub(super) pace: Arc<Mutex<Pace>>,
}

impl<S: Source> Source for Paced<S> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        if locked(&self.pace).pause() {
            batch.clear();
            return Ok(Next::End(End::Stopped));
        }
        self.source.next_batch(batch)
    }

    flowgauge::forward_source!(source);
}
