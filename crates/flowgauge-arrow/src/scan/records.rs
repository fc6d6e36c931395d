//! Rows of files of flow records.

use std::path::Path;

use flowgauge::features::FeatureSet;
use flowgauge::record_file::{RecordFile, RecordFormat};
use flowgauge::source::{self, Contents};
use flowgauge::{Decapsulation, Resources, RunProgress, SourceConfig};

use super::config::ScanConfig;
use super::control::{Control, Warning};
use super::error::ScanError;
use super::sinks::Rows;
use super::table::Table;

/// Number of records after which progress is reported.
const PROGRESS_INTERVAL: u64 = 1024;

/// Returns the setting that concerns packets, which a file of flow records does not have.
fn setting_of_packets(config: &ScanConfig) -> Option<&'static str> {
    [
        ("features", config.features != FeatureSet::default()),
        ("idle_timeout", config.idle_timeout.is_some()),
        ("active_timeout", config.active_timeout.is_some()),
        ("tunnels", config.tunnels != Decapsulation::default()),
    ]
    .into_iter()
    .find_map(|(name, is_set)| is_set.then_some(name))
}

/// Checks whether a file of flow records has the rows of a table with these settings.
pub(super) fn check(path: &Path, table: Table, config: &ScanConfig) -> Result<(), ScanError> {
    let path = || path.to_owned();
    if table != Table::Flows {
        return Err(ScanError::RecordsOnly { path: path(), table: table.function() });
    }
    match setting_of_packets(config) {
        Some(option) => Err(ScanError::CapturesOnly { path: path(), option }),
        None => Ok(()),
    }
}

/// Passes on the records of a file.
pub(super) fn read(
    mut file: RecordFile,
    mut rows: Rows<'_, '_>,
    config: &ScanConfig,
    control: &Control,
    resources: &Resources,
) -> Result<(), ScanError> {
    let mut count = 0_u64;
    while !rows.batches.is_over() {
        match file.next() {
            Some(Ok(record)) => {
                if config.filter.as_ref().is_none_or(|filter| filter.matches_record(&record)) {
                    rows.push_record(&record);
                }
            }
            Some(Err(problem)) if problem.is_failure() => return Err(ScanError::Records(problem)),
            Some(Err(problem)) => {
                if let Some(warn) = &control.warning {
                    warn(&Warning::Records(problem));
                }
            }
            None => break,
        }
        count += 1;
        if count.is_multiple_of(PROGRESS_INTERVAL) {
            control.report(&progress(&file, resources));
        }
    }
    control.report(&progress(&file, resources));
    Ok(())
}

fn progress(file: &RecordFile, resources: &Resources) -> RunProgress {
    let mut progress = RunProgress::default();
    progress.input_octet_count = file.progress().map_or(0, |(at, _)| at);
    progress.input_len = file.progress().map(|(_, len)| len);
    progress.held_bytes = resources.budget.held();
    progress
}

/// Returns the error of captures that are read as one: if one of them is a file of flow records, that it is.
pub(super) fn among_captures(
    error: source::Error,
    table: Table,
    config: &ScanConfig,
    sources: SourceConfig,
) -> ScanError {
    if let source::Error::NotACapture { path, .. } = &error
        && (path.is_file() || sources.storage.as_ref().is_some_and(|storage| storage.find(path).is_some()))
        && let Ok(contents) = Contents::open(path, sources)
        && RecordFormat::of(contents.head()).is_some()
    {
        let joined = ScanError::CapturesOnly { path: path.clone(), option: "joined" };
        return check(path, table, config).err().unwrap_or(joined);
    }
    error.into()
}
