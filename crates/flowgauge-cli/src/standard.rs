//! Standard output, and whether it was open when the process began.
//!
//! Before `main`, the standard library opens `/dev/null` for each of the first three descriptors that is closed, so that no
//! file takes its number. Rows would then be written to nowhere without an error.
//!
//! *Rejected*: looking at the descriptor in `main`. It cannot be told from a `/dev/null` that another program has opened for
//! reading and writing and passes as standard output, as Python does for `subprocess.DEVNULL`, and many daemons.
#![allow(unsafe_code, reason = "an attribute that lets a function run before `main`")]

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Standard output was closed when the process began.
static IS_MISSING: AtomicBool = AtomicBool::new(false);

/// Notes whether standard output is closed.
#[cfg(target_os = "linux")]
extern "C" fn note() {
    let is_open = |number: &str| std::fs::symlink_metadata(format!("/proc/self/fd{number}")).is_ok();
    IS_MISSING.store(is_open("") && !is_open("/1"), Ordering::Relaxed);
}

/// The loader calls the functions of this section before `main`.
// SAFETY: the section is an array of functions that are called in turn, with arguments that `note` ignores; the item is
// one pointer to such a function. `note` asks the system for two file names and stores a flag; it needs nothing that the
// standard library prepares before `main`, and does not unwind.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// Returns whether standard output was closed when the process began. Known on Linux only.
pub(crate) fn is_missing() -> bool {
    IS_MISSING.load(Ordering::Relaxed)
}

/// Standard output. Writing is an error if it was closed when the process began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if is_missing() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "standard output is closed"));
        }
        io::stdout().write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
