//! The command `flowgauge-scheduler`.

use std::process::ExitCode;

use clap::Parser as _;
use flowgauge_cluster::process;
use flowgauge_cluster::scheduler::{SchedulerArgs, run};

fn main() -> ExitCode {
    process::exit("flowgauge-scheduler", run(&SchedulerArgs::parse()))
}
