//! Faults are injected while the command runs: the output before the fault is complete, and the exit status reports it.
//!
//! - `outputs.rs`: the outputs of the command are full, closed or limited.
//! - `logs.rs`: files of logs and of `--write` are limited, killed or removed.
//! - `signals.rs`: a signal ends the command while it reads or writes.
#![cfg(target_os = "linux")]

#[path = "../support/folder.rs"]
mod folder;
mod logs;
mod outputs;
#[path = "../support/process.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod process;
mod signals;
