//! The command `flowgauge-executor`.

use std::process::ExitCode;

use clap::Parser as _;
use flowgauge_cluster::executor::{ExecutorArgs, run};
use flowgauge_cluster::process;

fn main() -> ExitCode {
    process::exit("flowgauge-executor", run(&ExecutorArgs::parse()))
}
