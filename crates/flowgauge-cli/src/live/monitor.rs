//! A source that reports problems while it runs, and records its frames.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowgauge::Source;
use flowgauge::base::FrameBatch;
use flowgauge::source::{self, End, Interface, Next, SourceStats, Warning};

use super::recorder::Recorder;
use crate::console::{is_stdout_closed, write_line};
use crate::human::plural;

/// Minimum time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum time between two checks of standard output.
const OUTPUT_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Passes on the frames of a source. Reports drops while their number grows, and problems of connections; writes the
/// frames to a file if there is a recorder.
pub(crate) struct Monitor {
    source: Box<dyn Source>,
    /// Shared, so that the file can be completed after the run.
    recorder: Arc<Mutex<Option<Recorder>>>,
    /// Counts that were reported.
    reported: SourceStats,
    reported_warning_count: usize,
    next_report: Instant,
    is_quiet: bool,
    /// Time of the next check of standard output, if its end is that of the source.
    next_output_check: Option<Instant>,
}

impl Monitor {
    /// Creates a monitor that does not record frames.
    #[cfg(feature = "bus")]
    pub(crate) fn without_recorder(source: Box<dyn Source>, is_quiet: bool) -> Self {
        Self::new(source, Arc::default(), is_quiet)
    }

    pub(super) fn new(
        source: Box<dyn Source>,
        recorder: Arc<Mutex<Option<Recorder>>>,
        is_quiet: bool,
    ) -> Self {
        Self {
            source,
            recorder,
            reported: SourceStats::default(),
            reported_warning_count: 0,
            next_report: Instant::now() + REPORT_INTERVAL,
            is_quiet,
            next_output_check: None,
        }
    }

    /// Ends the source when the reader of standard output has closed it, even if there is nothing to write.
    pub(super) fn until_output_is_closed(self) -> Self {
        Self { next_output_check: Some(Instant::now()), ..self }
    }

    fn has_closed_output(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.next_output_check.is_some_and(|check| now >= check);
        if is_due {
            self.next_output_check = Some(now + OUTPUT_CHECK_INTERVAL);
        }
        is_due && is_stdout_closed()
    }

    fn report(&mut self) {
        if self.is_quiet || Instant::now() < self.next_report {
            return;
        }
        self.next_report = Instant::now() + REPORT_INTERVAL;
        let stats = self.source.stats();
        let before = std::mem::replace(&mut self.reported, stats);
        let report = |now: u64, before: u64, one: &str, what: &str| {
            if now > before {
                write_line(&format!("flowgauge: {} {what}", plural(now - before, one)));
            }
        };
        report(stats.kernel_drop_count, before.kernel_drop_count, "packet", "dropped by the kernel");
        report(stats.interface_drop_count, before.interface_drop_count, "packet", "dropped by the interface");
        let (now, before) = (stats.refused_connection_count, before.refused_connection_count);
        report(now, before, "connection", "closed, because there are too many");
        for warning in self.source.warnings().iter().skip(self.reported_warning_count) {
            write_line(&format!("flowgauge: {warning}"));
        }
        self.reported_warning_count = self.source.warnings().len();
    }
}

impl Source for Monitor {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, source::Error> {
        if self.has_closed_output() {
            batch.clear();
            return Ok(Next::End(End::Stopped));
        }
        let next = self.source.next_batch(batch)?;
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &mut *recorder {
            recorder.write(batch, self.source.interfaces()).map_err(|error: io::Error| {
                source::Error::Io { path: recorder.current().to_owned(), error: error.into() }
            })?;
        }
        drop(recorder);
        self.report();
        Ok(next)
    }

    /// Returns the warnings that were not reported yet.
    fn warnings(&self) -> &[Warning] {
        self.source.warnings().get(self.reported_warning_count..).unwrap_or_default()
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
}
