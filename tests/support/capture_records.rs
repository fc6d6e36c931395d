//! The records of a capture.

use std::path::Path;

use flowgauge::{FileSource, FlowRecord, Pipeline, Records, RunOptions};

/// Returns the records of a capture, with all optional fields.
pub(crate) fn records(path: &Path) -> Vec<FlowRecord> {
    let Ok(mut source) = FileSource::open(path) else { return Vec::new() };
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    #[cfg(feature = "protocols")]
    let sink = sink.with_stage::<flowgauge::Sessions<flowgauge::Standard>>();
    let builder = Pipeline::builder().encapsulation(true);
    builder.build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
    records
}
