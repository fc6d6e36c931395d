//! The folder with captures and their expected results.

use std::path::{Path, PathBuf};

use flowgauge::base::FlowKey;
use flowgauge::pipeline::{Pipeline, PipelineStats, Records, RunOptions};
use flowgauge::record::FlowRecord;
use flowgauge::source::{FileSource, Source};
use flowgauge::tracker::{Timeouts, TrackerConfig};

/// A row of the manifest.
pub(crate) struct Capture {
    root: PathBuf,
    /// Path below `captures`.
    pub(crate) name: String,
    oracles: Vec<String>,
}

/// Returns all captures of the corpus. If the variable is not set, prints a note and returns `None`.
///
/// # Panics
///
/// If the folder has no manifest or the manifest is empty.
pub(crate) fn captures() -> Option<Vec<Capture>> {
    let Some(root) = root() else {
        println!("skipped: FLOWGAUGE_CORPUS is not set");
        return None;
    };
    let manifest = root.join("MANIFEST.tsv");
    let text =
        std::fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let captures: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| Capture::from_row(&root, line))
        .collect();
    assert!(!captures.is_empty(), "{} lists no captures", manifest.display());
    Some(captures)
}

/// Returns the folder of the corpus if the variable names one.
pub(crate) fn root() -> Option<PathBuf> {
    std::env::var_os("FLOWGAUGE_CORPUS").filter(|name| !name.is_empty()).map(PathBuf::from)
}

impl Capture {
    fn from_row(root: &Path, row: &str) -> Self {
        let columns: Vec<_> = row.split('\t').collect();
        let name = columns[0].strip_prefix("captures/").expect("a file below captures").to_owned();
        let oracles = columns[6].split(';').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Self { root: root.to_owned(), name, oracles }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.join("captures").join(&self.name)
    }

    /// Returns the path of a file that another program derived from the capture.
    pub(crate) fn derived(&self, suffix: &str) -> PathBuf {
        self.root.join(format!("derived/{}.{suffix}", self.name))
    }

    /// Returns the folders and files with expectations of upstream suites, of one kind.
    pub(crate) fn oracles(&self, kind: &str) -> impl Iterator<Item = PathBuf> {
        let of_kind =
            self.oracles.iter().filter_map(move |oracle| oracle.strip_prefix(kind)?.strip_prefix('='));
        of_kind.map(|path| self.root.join(path))
    }
}

/// The statistics of a capture, and its records in the order in which the flows ended.
pub(crate) struct Outcome {
    pub(crate) stats: PipelineStats,
    pub(crate) records: Vec<FlowRecord>,
}

/// Processes a capture file without timeouts and returns the records.
pub(crate) fn flows_of(path: &Path) -> Outcome {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    flows_with(path, config)
}

/// Processes a capture file and returns the records.
///
/// # Panics
///
/// If the file cannot be read.
pub(crate) fn flows_with(path: &Path, config: TrackerConfig) -> Outcome {
    let mut source = FileSource::open(path).expect("a readable capture");
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    let mut pipeline = Pipeline::builder().tracker(config).build(sink).expect("a valid configuration");
    let run = pipeline.run(&mut source, &RunOptions::default());
    drop(pipeline);
    let summary = run.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for warning in source.warnings() {
        println!("{warning}");
    }
    Outcome { stats: summary.stats, records }
}

/// Returns the key of two endpoints with addresses as text, and the side of the first one.
pub(crate) fn key(
    protocol: u8,
    source: (&str, u16),
    target: (&str, u16),
) -> (FlowKey, flowgauge::base::Side) {
    let end = |(address, port): (&str, u16)| (address.parse().expect("an address"), port);
    FlowKey::new(flowgauge::base::IpProtocol(protocol), end(source), end(target))
}
