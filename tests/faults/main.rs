//! Faults are injected one at a time, at every point where they can occur: no layer panics, no total is wrong, and all
//! output written before the fault is complete.
//!
//! - `budget.rs`: the n-th request for memory is refused (`Budget::with_refusals`).
//! - `sources.rs`: readers fail, return short reads, are interrupted, or end at every octet.
//! - `files.rs`: files disappear or shrink while they are merged, and memory for them is refused.
//! - `writers.rs`: writers fail at every octet.
//!
//! The tests in `crates/flowgauge-cli/tests/faults` check the outputs of the command, and signals.

mod budget;
mod captures;
mod files;
#[cfg(feature = "protocols")]
#[path = "../support/fn_source.rs"]
mod fn_source;
#[path = "../defragmentation/frames.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod packets;
mod sources;
mod writers;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A temporary directory that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flowgauge-faults-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, octets: &[u8]) -> String {
        fs::write(self.path(name), octets).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Prints the fault under test if a check fails.
struct Fault(String);

impl Drop for Fault {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the fault was: {}", self.0);
        }
    }
}
