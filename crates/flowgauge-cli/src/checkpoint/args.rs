//! Options of runs that continue open flows.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::{Timeout, parse_timeout};
use crate::console::Failure;
use crate::formats::OutputFormat;

/// Options of runs that continue open flows.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    /// Continue the open flows in FILE, and write those that are open at the end
    ///
    /// For files of a rotation, and for runs that may be interrupted: FILE also contains which frames were read, so that a
    /// file that is given again continues behind them, or is skipped, under any name. Files are read in the order of their
    /// first frames, one after another. Flows that are open at the end have no record until `--finish`. If standard output
    /// is appended to a file, rows that an interrupted run wrote behind its last checkpoint are removed from the file.
    /// FILE is replaced when it is complete. Requires `--format ndjson`.
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// Time between two checkpoints of a run, such as 10s, or none
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "60s", requires = "checkpoint", value_parser = parse_timeout)]
    pub(crate) checkpoint_interval: Timeout,

    /// End all open flows, and remove the checkpoint
    #[arg(long, hide_short_help = true, requires = "checkpoint")]
    pub(crate) finish: bool,
}

impl CheckpointArgs {
    pub(crate) const fn is_used(&self) -> bool {
        self.checkpoint.is_some()
    }

    pub(super) fn interval(&self) -> Option<Duration> {
        self.checkpoint_interval.0
    }

    /// Returns a failure if the rows cannot be appended to those of an earlier run. `others` are the options that need more
    /// than one row at a time, and whether one of them is used.
    pub(crate) fn check(
        &self,
        format: OutputFormat,
        (others, has_others): (&str, bool),
    ) -> Result<(), Failure> {
        if !self.is_used() {
            return Ok(());
        }
        if has_others {
            return Err(Failure::Usage(format!("--checkpoint cannot be combined with {others}")));
        }
        if format != OutputFormat::Library(flowgauge::export::Format::Ndjson) {
            let usage = "--checkpoint requires --format ndjson, whose rows can be appended to those of an earlier run";
            return Err(Failure::Usage(usage.to_owned()));
        }
        Ok(())
    }
}
