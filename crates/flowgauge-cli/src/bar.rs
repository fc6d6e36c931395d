//! The progress bar.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Duration of a run after which the bar is shown.
const DELAY: Duration = Duration::from_millis(500);

/// A progress bar on standard error that appears after a delay.
pub(crate) struct Bar {
    started: Instant,
    shown: OnceLock<ProgressBar>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), shown: OnceLock::new() }
    }

    /// Shows how many octets of the input were read, and how many there are.
    pub(crate) fn update(&self, position: u64, len: Option<u64>) {
        if self.shown.get().is_none() && self.started.elapsed() < DELAY {
            return;
        }
        let bar = self.shown.get_or_init(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(len, target);
            let template = "{bar:40} {percent:>3} %  {decimal_bytes_per_sec}  {eta} remaining";
            bar.set_style(
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            // The rate is computed from the position at which the bar appears.
            bar.set_position(position);
            bar.reset_eta();
            bar
        });
        bar.set_position(position);
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.shown.get() {
            bar.finish_and_clear();
        }
    }

    /// Calls a function that writes to the terminal, without the bar.
    #[cfg(feature = "sql")]
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        match self.shown.get() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}
