//! Runs sinks over capture files, with the default settings of all layers but the tracker.

use std::path::Path;

use flowgauge::tracker::{Timeouts, TrackerConfig};
use flowgauge::{FileSource, Pipeline, PipelineStats, RunOptions, Sink};

/// Runs a sink over a whole capture and returns it with the statistics. No layer may hold any state afterwards.
///
/// # Panics
///
/// If the file cannot be read.
pub(crate) fn run_capture<K: Sink>(path: &Path, config: TrackerConfig, sink: K) -> (K, PipelineStats) {
    let mut pipeline = Pipeline::builder().tracker(config).build(sink).expect("a valid configuration");
    let mut source = FileSource::open(path).expect("a readable capture");
    let run = pipeline.run(&mut source, &RunOptions::default());
    run.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(pipeline.stats().sessions.held_bytes, 0, "{}", path.display());
    assert_eq!(pipeline.held_stream_count(), 0, "{}", path.display());
    let stats = pipeline.stats();
    (pipeline.into_sink(), stats)
}

/// Runs a sink over a whole capture without timeouts of flows.
///
/// # Panics
///
/// If the file cannot be read.
#[allow(dead_code, reason = "not every test that uses this module needs it")]
pub(crate) fn run_without_timeouts<K: Sink>(path: &Path, sink: K) -> K {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    run_capture(path, config, sink).0
}
