//! Progress of a query on the terminal.

use std::cell::Cell;
use std::io::{self, IsTerminal as _};

use datafusion::physical_plan::ExecutionPlan;
use flowgauge_sql::ScanProgress;

use crate::bar::Bar;

/// The progress bar of a query, if standard error is a terminal.
pub(super) struct Progress {
    bar: Option<Bar>,
    /// True if rows are written to the terminal too, so that the bar ends before the first one.
    is_shared: bool,
    is_over: Cell<bool>,
}

impl Progress {
    /// Creates the progress of a query; `is_standard` if its rows are written to standard output.
    pub(super) fn new(is_standard: bool) -> Self {
        Self {
            bar: io::stderr().is_terminal().then(Bar::new),
            is_shared: is_standard && io::stdout().is_terminal(),
            is_over: Cell::new(false),
        }
    }

    /// Shows what the scans of captures have read.
    pub(super) fn update(&self, plan: &dyn ExecutionPlan) {
        if let Some(bar) = self.bar.as_ref().filter(|_| !self.is_over.get())
            && let Some(progress) = ScanProgress::of(plan)
        {
            // A file that grows has more octets than when the query was planned.
            bar.update(progress.octet_count.min(progress.len), Some(progress.len));
        }
    }

    /// Removes the bar before rows are written to the same terminal.
    pub(super) fn before_rows(&self) {
        if self.is_shared {
            self.end();
        }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = self.bar.as_ref().filter(|_| !self.is_over.replace(true)) {
            bar.clear();
        }
    }

    /// Calls a function that writes to the terminal, without the bar.
    pub(super) fn suspend(&self, write: impl FnOnce()) {
        match self.bar.as_ref().filter(|_| !self.is_over.get()) {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}
