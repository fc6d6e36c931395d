//! Hostile input and peers: output, memory and slots stay bounded, and legitimate peers are served.
//!
//! Peak memory is that of the process (`VmHWM`); the bounds are far above what legitimate input needs, and far below what the
//! attack would cause without a limit. Time is never asserted, except that a command ends.
#![cfg(target_os = "linux")]

mod amplification;
mod collect;
#[path = "../support/folder.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod folder;
mod listeners;
mod packets;
#[path = "../support/port.rs"]
mod port;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;
#[cfg(feature = "bus")]
mod publisher;
#[cfg(feature = "bus")]
mod subscribers;
mod timestamps;
#[cfg(feature = "bus")]
mod zmtp;

use std::fs;
use std::process::{Command, Stdio};

use folder::Folder;
use process::{Process, wait_for};

/// A command with its output in files, which ends with the test.
struct Run {
    process: Process,
    folder: Folder,
}

impl Run {
    /// Starts a command; its outputs and the files that it is passed by name are in `folder`.
    fn start(folder: Folder, args: &[&str]) -> Self {
        let file = |name: &str| fs::File::create(folder.0.join(name)).unwrap();
        let mut command = command(&folder, args);
        command.stdout(file("out")).stderr(file("err"));
        Self { process: Process::start(&mut command), folder }
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.folder.0.join(name)).unwrap()).unwrap()
    }

    fn out(&self) -> String {
        self.read("out")
    }

    fn err(&self) -> String {
        self.read("err")
    }

    /// Waits until a listener, a publisher or a subscriber is ready, which it reports.
    fn wait_until_ready(&self) {
        wait_for("a report", || !self.err().is_empty());
    }

    /// Returns the highest resident memory so far, in MiB.
    fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib / 1024
    }

    /// Interrupts the command and waits for its end. Returns the exit status.
    fn interrupt(&mut self) -> Option<i32> {
        self.process.signal("INT");
        self.process.end()
    }
}

/// Returns the command with arguments; it runs in `folder`.
fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgauge"));
    command.args(args).current_dir(&folder.0).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// Runs a command on a file with `input`, named `input`. Returns its output, its messages, and the peak of its memory in
/// MiB.
fn run(args: &[&str], input: &[u8]) -> (Vec<u8>, String, u64) {
    let folder = Folder::new();
    folder.file("input", input);
    let child = command(&folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let watcher = std::thread::spawn(move || watch_memory(id));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    (output.stdout, String::from_utf8(output.stderr).unwrap(), watcher.join().unwrap())
}

/// Returns the highest resident memory of a process, in MiB, as it was last seen before the end.
fn watch_memory(id: u32) -> u64 {
    let mut peak = 0;
    while let Ok(status) = fs::read_to_string(format!("/proc/{id}/status")) {
        let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) else { break };
        peak = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024;
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}
