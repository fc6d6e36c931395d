//! Control of a scan, and what it reports while it runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgauge::record_file::RecordProblem;
use flowgauge::source::Storage;
use flowgauge::{RunProgress, StopHandle, source};

/// A function that is called by the thread that reads.
pub type Notify<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// How a scan is controlled while it runs.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Control {
    /// Ends the scan before the next batch of frames; rows of flows that are open are not passed on.
    pub stop: StopHandle,
    /// Called with zeros at the beginning of each file, and with its progress after each batch of frames, or 1024 flow
    /// records, and at its end.
    pub progress: Option<Notify<RunProgress>>,
    /// Called with the damage at which reading of a capture ended, and with what is no record in a file of flow records.
    pub warning: Option<Notify<Warning>>,
    /// True if packets of long captures are extracted on a thread of their own.
    pub is_ahead: bool,
    /// Number of threads that track parts of one long uncompressed capture; below 4, there is one pass. Only flow records are
    /// tracked in parts ([`Scan`](super::Scan#parts-of-a-capture)). A receiver that ends the scan of parts sets the stop handle.
    pub thread_count: usize,
    /// Captures that are not files of the operating system, such as objects in object storage.
    pub storage: Option<Arc<dyn Storage>>,
}

impl Control {
    /// Reports progress, if that is wanted.
    pub(super) fn report(&self, progress: &RunProgress) {
        if let Some(notify) = &self.progress {
            notify(progress);
        }
    }

    /// Returns the control of a pipeline whose sink holds further memory, in bytes, which is reported together with its own.
    pub(super) fn with_memory(&self, held_bytes: Arc<AtomicU64>) -> Self {
        let mut control = self.clone();
        control.progress = self.progress.clone().map(|notify| {
            let report: Notify<RunProgress> = Arc::new(move |progress| {
                let mut progress = *progress;
                progress.held_bytes += held_bytes.load(Relaxed);
                notify(&progress);
            });
            report
        });
        control
    }

    /// Reports the damage of a capture, if that is wanted.
    pub(super) fn warn(&self, warnings: &[source::Warning]) {
        if let Some(warn) = &self.warning {
            warnings.iter().for_each(|warning| warn(&Warning::Capture(warning.clone())));
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("stop", &self.stop)
            .field("is_ahead", &self.is_ahead)
            .field("thread_count", &self.thread_count)
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}

/// Damage within a file: what it did not prevent is part of the rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// Reading of a capture ended at this place.
    Capture(source::Warning),
    /// A part of a file of flow records is no record. At most eight are warnings of their own.
    Records(RecordProblem),
}

impl fmt::Display for Warning {
    /// Formats the warning as one line: path, place, and kind of damage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(warning) => warning.fmt(f),
            Self::Records(problem) => problem.fmt(f),
        }
    }
}
