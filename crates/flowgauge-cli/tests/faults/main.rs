//! Faults are injected while the command runs: what was written before the fault is whole, and the exit status reports it.
//!
//! - `outputs.rs`: the outputs of the command are full, closed or limited.
//! - `signals.rs`: the command is ended while it reads or writes.
#![cfg(target_os = "linux")]

#[path = "../support/folder.rs"]
mod folder;
mod outputs;
mod signals;
