//! Captures of the repository and of the corpus.

use std::path::{Path, PathBuf};
use std::{env, fs};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the captures of this repository, and those of the corpus if it is available.
pub(crate) fn captures() -> Vec<PathBuf> {
    let mut paths = own_captures();
    if let Some(corpus) = env::var_os("FLOWGAUGE_CORPUS") {
        collect(Path::new(&corpus), &mut paths);
    }
    paths
}

/// Returns the captures of this repository.
pub(crate) fn own_captures() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    collect(&root().join("examples/data"), &mut paths);
    assert!(paths.len() >= 8);
    paths
}

/// Collects the captures below a folder.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() {
            collect(&path, paths);
        } else if extension == "pcap" || extension == "pcapng" {
            paths.push(path);
        }
    }
}
