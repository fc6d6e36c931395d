//! Errors of a scan.

use std::fmt;
use std::path::PathBuf;

use arrow_schema::ArrowError;
use flowgauge::record_file::RecordProblem;

/// An error of a scan. `Debug` writes the message too, because an engine may pass on nothing else from another process.
#[non_exhaustive]
pub enum ScanError {
    /// A capture could not be read, or the settings are invalid.
    Pipeline(flowgauge::Error),
    /// A batch could not be created.
    Batch(ArrowError),
    /// The filter has `src`, `dst` or `vlan`, which apply to whole flows, for a table of another kind.
    Filter,
    /// A file of flow records could not be read.
    Records(RecordProblem),
    /// A file has flow records, but none of the rows of a table.
    RecordsOnly {
        /// Path of the file.
        path: PathBuf,
        /// Name of the table, in the plural.
        table: &'static str,
    },
    /// A file has flow records, but a setting concerns packets.
    CapturesOnly {
        /// Path of the file.
        path: PathBuf,
        /// Name of the setting, as in SQL and Python.
        option: &'static str,
    },
}

impl fmt::Debug for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScanError").field(&self.to_string()).finish()
    }
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipeline(error) => error.fmt(f),
            Self::Batch(error) => error.fmt(f),
            Self::Filter => f.write_str(
                "src, dst and vlan in a filter apply to whole flows: only the table of flows has them",
            ),
            Self::Records(problem) => problem.fmt(f),
            Self::RecordsOnly { path, table } => {
                write!(
                    f,
                    "{}: contains flow records, which have no {table}; read the capture",
                    path.display()
                )
            }
            Self::CapturesOnly { path, option } => write!(
                f,
                "{}: contains flow records, but {option} applies to the packets of captures",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ScanError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Pipeline(error) => Some(error),
            Self::Batch(error) => Some(error),
            Self::Records(problem) => Some(problem),
            Self::Filter | Self::RecordsOnly { .. } | Self::CapturesOnly { .. } => None,
        }
    }
}

impl<E: Into<flowgauge::Error>> From<E> for ScanError {
    fn from(error: E) -> Self {
        Self::Pipeline(error.into())
    }
}
