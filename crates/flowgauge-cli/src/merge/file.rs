//! Files of flow records, and their problems.

use std::path::Path;

use flowgauge::record_file::{RecordFile, RecordProblem, RecordProblemKind};
use flowgauge::source::{Contents, SourceConfig};
use flowgauge::{FlowRecord, Resources};

use crate::console::Console;
use crate::input::is_stdin;
use crate::interrupt;

/// Opens a file, and recognizes its format.
pub(super) fn open(path: &Path, resources: &Resources) -> Result<RecordFile, RecordProblem> {
    let mut config = SourceConfig::from(resources.clone());
    config.stop = Some(interrupt::stop());
    let contents = if is_stdin(path) { Contents::stdin(config) } else { Contents::open(path, config) };
    let contents = contents.map_err(|error| RecordProblem::new(path, RecordProblemKind::Source(error)))?;
    #[cfg(feature = "arrow")]
    return flowgauge_arrow::record_file(contents);
    #[cfg(not(feature = "arrow"))]
    return RecordFile::new(contents, |line: &[u8]| serde_json::from_slice(line));
}

/// Returns the next record, and reports what is no record; `None` at the end of the file.
pub(super) fn next(file: &mut RecordFile, console: &mut Console) -> Option<FlowRecord> {
    loop {
        match file.next()? {
            Ok(record) => return Some(record),
            Err(problem) => console.problem(problem),
        }
    }
}
