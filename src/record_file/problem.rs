//! What is no record in a file of flow records.

use std::fmt;
use std::path::PathBuf;

use crate::base::ConfigError;
use crate::source;

/// A problem of a file of flow records. Records before and after it are not lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordProblem {
    /// Path of the file; `-` for standard input, `(stream)` for a reader.
    pub path: PathBuf,
    /// The problem, with its place.
    pub kind: RecordProblemKind,
}

/// Kind of problem of a file of flow records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RecordProblemKind {
    /// The file has other content, which the text describes.
    NotRecords(&'static str),
    /// A line, record or row is not a flow record. Reading continues with the next one.
    Invalid {
        /// What the number counts: `line`, `record` or `row`.
        place: &'static str,
        /// Number of the line, record or row, counted from one.
        number: u64,
        /// Reason why it is not a record.
        cause: String,
    },
    /// Number of further lines, records or rows that are not flow records.
    More(u64),
    /// Parts of IPFIX messages that have no record.
    Skipped {
        /// Number of parts.
        count: u64,
        /// Kind of part, in the singular.
        part: &'static str,
        /// Reason why they have no record.
        reason: &'static str,
    },
    /// The file is truncated or damaged, and its rest was not read.
    Damaged(String),
    /// The file could not be opened or read.
    Source(source::Error),
    /// A collector could not be created.
    Config(ConfigError),
}

impl RecordProblem {
    /// Creates the problem of a file.
    pub fn new(path: impl Into<PathBuf>, kind: RecordProblemKind) -> Self {
        Self { path: path.into(), kind }
    }

    /// Returns whether the file could not be read because of the operating system or a limit, so that records may be missing
    /// although the file is not damaged.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self.kind, RecordProblemKind::Source(_) | RecordProblemKind::Config(_))
    }
}

impl fmt::Display for RecordProblem {
    /// Formats the problem as one line: path, place, and cause.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            RecordProblemKind::NotRecords(content) => write!(f, "{path}: {content}"),
            RecordProblemKind::Invalid { place, number, cause } => {
                write!(f, "{path}: {place} {number}: {cause}")
            }
            RecordProblemKind::More(1) => write!(f, "{path}: 1 problem more without a record"),
            RecordProblemKind::More(count) => write!(f, "{path}: {count} problems more without a record"),
            RecordProblemKind::Skipped { count: 1, part, reason } => write!(f, "{path}: 1 {part} {reason}"),
            RecordProblemKind::Skipped { count, part, reason } => {
                write!(f, "{path}: {count} {part}s {reason}")
            }
            RecordProblemKind::Damaged(cause) => write!(f, "{path}: {cause}"),
            RecordProblemKind::Source(source::Error::NotACapture { looks_like, .. }) => {
                write!(f, "{path}: does not contain flow records: it looks like {looks_like}")
            }
            // Its message has the path.
            RecordProblemKind::Source(error) => error.fmt(f),
            RecordProblemKind::Config(error) => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for RecordProblem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            RecordProblemKind::Source(error) => Some(error),
            RecordProblemKind::Config(error) => Some(error),
            _ => None,
        }
    }
}
