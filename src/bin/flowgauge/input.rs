//! Captures to read, the loop over their batches, and the progress bar.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use flowgauge::base::FrameBatch;
use flowgauge::source::{Error, Files, Interface, Source, SourceConfig, SourceStats, Warning};
use flowgauge::tracker::TrackerConfig;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::{Console, Failure};
use crate::interrupt;

/// A bar that would be gone before it was read is not shown.
const BAR_DELAY: Duration = Duration::from_millis(500);

/// An open input.
pub(crate) struct Input {
    source: Box<dyn Source>,
    /// Whether to go on after an error: the other files.
    has_more: bool,
    shows_progress: bool,
    bar: Option<ProgressBar>,
    started: Instant,
}

impl Input {
    /// Opens files, on the tracker's account of memory. What cannot be opened is reported, and the others are read; `None` if
    /// there are none.
    pub(crate) fn open(paths: &[PathBuf], tracker: &TrackerConfig, console: &mut Console) -> Option<Self> {
        let (waits, paths): (Vec<_>, Vec<_>) =
            paths.iter().partition(|path| is_stdin(path) && io::stdin().is_terminal());
        if !waits.is_empty() {
            console.problem("-: standard input is a terminal; send a capture through a pipe");
        }
        let stdin = paths.iter().position(|path| is_stdin(path));
        let (paths, again): (Vec<_>, Vec<_>) =
            paths.iter().enumerate().partition(|(place, path)| !is_stdin(path) || Some(*place) == stdin);
        if !again.is_empty() {
            console.problem("-: named more than once; standard input is read once");
        }
        let paths: Vec<_> = paths.into_iter().map(|(_, path)| *path).collect();
        let mut open_count = paths.len();
        let mut config = SourceConfig::from(tracker.limits);
        config.budget = tracker.budget.clone();
        config.stop = interrupt::flag();
        let files = Files::open_readable(paths, config, |error| {
            open_count -= 1;
            console.problem(reason(&error));
        });
        (open_count > 0).then(|| Self::of(Box::new(files), true))
    }

    /// Reads any source.
    pub(crate) fn of(source: Box<dyn Source>, has_more: bool) -> Self {
        Self { source, has_more, shows_progress: false, bar: None, started: Instant::now() }
    }

    /// Shows a bar on standard error if that is a terminal and it is known how much there is to read.
    pub(crate) fn with_progress(mut self, is_wanted: bool) -> Self {
        self.shows_progress = is_wanted && self.source.total_len().is_some() && io::stderr().is_terminal();
        self
    }

    /// Whether frames come as somebody sends them, so that results shall not wait.
    pub(crate) fn is_stream(&self) -> bool {
        self.source.total_len().is_none()
    }

    pub(crate) fn stats(&self) -> SourceStats {
        self.source.stats()
    }

    /// Hands over all batches, and says where input broke.
    pub(crate) fn each_batch(
        &mut self,
        console: &mut Console,
        mut take: impl FnMut(&FrameBatch, &[Interface]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut batch = FrameBatch::new();
        loop {
            let goes_on = match self.source.next_batch(&mut batch) {
                Ok(goes_on) => goes_on,
                Err(error) => {
                    self.hide_bar();
                    console.problem(reason(&error));
                    self.has_more
                }
            };
            let taken = take(&batch, self.source.interfaces());
            if !goes_on || taken.is_err() || interrupt::is_set() {
                self.hide_bar();
                taken?;
                break;
            }
            if self.shows_progress {
                self.show_bar();
            }
        }
        for warning in self.source.warnings() {
            console.problem(warning);
        }
        Ok(())
    }

    /// The same as a source, until it is over. What breaks is said, and is no error.
    pub(crate) const fn reading<'a>(
        &'a mut self,
        console: &'a mut Console,
        is_over: &'a AtomicBool,
    ) -> Reading<'a> {
        Reading { input: self, console, is_over }
    }

    fn show_bar(&mut self) {
        if self.bar.is_none() && self.started.elapsed() >= BAR_DELAY {
            let total_len = self.source.total_len().unwrap_or_default();
            let bar = ProgressBar::with_draw_target(Some(total_len), ProgressDrawTarget::stderr_with_hz(10));
            let template = "{bar:40} {percent:>3} %  {decimal_bytes_per_sec}  {eta} left";
            bar.set_style(
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            // The rate is that of what follows.
            bar.set_position(self.source.progress());
            bar.reset_eta();
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.source.progress());
        }
    }

    fn hide_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
            self.shows_progress = false;
        }
    }
}

/// An input that is being read.
pub(crate) struct Reading<'a> {
    input: &'a mut Input,
    console: &'a mut Console,
    is_over: &'a AtomicBool,
}

impl Reading<'_> {
    /// Says what else was wrong.
    pub(crate) fn end(self) {
        self.input.hide_bar();
        for warning in self.input.source.warnings() {
            self.console.problem(warning);
        }
    }
}

impl Source for Reading<'_> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error> {
        // A capture file knows by itself; an interface does not.
        if self.is_over.load(Relaxed) || interrupt::is_set() {
            batch.clear();
            return Ok(false);
        }
        if self.input.shows_progress {
            self.input.show_bar();
        }
        self.input.source.next_batch(batch).or_else(|error| {
            self.input.hide_bar();
            self.console.problem(reason(&error));
            self.is_over.store(!self.input.has_more, Relaxed);
            // What was read before the error is in the batch.
            Ok(true)
        })
    }

    fn warnings(&self) -> &[Warning] {
        self.input.source.warnings()
    }

    fn stats(&self) -> SourceStats {
        self.input.source.stats()
    }

    fn interfaces(&self) -> &[Interface] {
        self.input.source.interfaces()
    }

    fn progress(&self) -> u64 {
        self.input.source.progress()
    }
}

/// What is wrong, and the option that helps, if one does.
fn reason(error: &Error) -> String {
    match error {
        Error::ZstdWindow { .. } => format!("{error}; --zstd-window sets another"),
        Error::Memory { .. } => format!("{error}, a quarter of --memory"),
        _ => error.to_string(),
    }
}

/// Whether a path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
