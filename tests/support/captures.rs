//! Captures of the repository and of the corpus, and their records.

use std::path::{Path, PathBuf};
use std::{env, fs};

use flowgauge::{FileSource, FlowRecord, Pipeline, Records, RunOptions};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the captures of this repository, and those of the corpus if it is available.
pub(crate) fn captures() -> Vec<PathBuf> {
    let mut folders = vec![root().join("examples/data")];
    folders.extend(env::var_os("FLOWGAUGE_CORPUS").map(PathBuf::from));
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let extension = path.extension().unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if extension == "pcap" || extension == "pcapng" {
                paths.push(path);
            }
        }
    }
    assert!(paths.len() >= 8);
    paths
}

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
