//! Events of a capture in Suricata's EVE format.

#[path = "memory.rs"]
mod memory;

use std::path::Path;

use flowgauge::export::eve::{EveConfig, Events};
use flowgauge::pipeline::{LogSink, Pipeline, RunOptions, Transactions};
use flowgauge::source::FileSource;
use flowgauge::tracker::TrackerConfig;
use flowgauge::transaction::TransactionConfig;
use serde_json::Value;

use memory::Memory;

/// Returns the events of a capture.
///
/// # Panics
///
/// If a line is not JSON.
pub(crate) fn events_of(path: &Path, config: EveConfig, tracker: TrackerConfig) -> Vec<Value> {
    let memory = Memory::default();
    let mut transactions = TransactionConfig::default();
    (transactions.has_hashes, transactions.decodes) = (true, true);
    let log = LogSink::new(Events::stream(memory.clone(), config));
    let sink = Transactions::new(log).config(transactions);
    let mut pipeline = Pipeline::builder().tracker(tracker).build(sink).expect("a valid configuration");
    // The corpus has files with the extension of captures that are none.
    let Ok(mut source) = FileSource::open(path) else { return Vec::new() };
    // Damaged captures have events too.
    let _ = pipeline.run(&mut source, &RunOptions::default());
    let row_count = pipeline.into_sink().into_inner().close().expect("memory");
    let text = memory.take();
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert_eq!(events.len() as u64, row_count);
    events
}
