//! Control of a scan, and what it reports while it runs.

use std::fmt;
use std::sync::Arc;

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
    /// Called after each batch of frames, or 1024 flow records, with the progress of the file that is read.
    pub progress: Option<Notify<RunProgress>>,
    /// Called with the damage at which reading of a capture ended, and with what is no record in a file of flow records.
    pub warning: Option<Notify<Warning>>,
    /// True if packets of long captures are extracted on a thread of their own.
    pub is_ahead: bool,
    /// Captures that are not files of the operating system, such as objects in object storage.
    pub storage: Option<Arc<dyn Storage>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("stop", &self.stop)
            .field("is_ahead", &self.is_ahead)
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
