//! `flowgauge checkpoint show`: what a checkpoint contains.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use flowgauge::EndReason;
use flowgauge::export::{Format, FormatOptions};
use flowgauge::pipeline::read_checkpoint;

use super::RunState;
use super::file::open;
use crate::console::{Failure, stdout};
use crate::formats::line_width;
use crate::human::plural;

/// Show a checkpoint of open flows.
///
/// `flowgauge flows --checkpoint` writes and continues it.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge checkpoint show state.checkpoint")]
pub(crate) struct CheckpointCommand {
    #[command(subcommand)]
    command: Operation,
}

#[derive(Debug, Subcommand)]
enum Operation {
    Show(ShowArgs),
}

/// Show what a checkpoint contains: its flows, the files that were read, and what was not saved.
///
/// The whole checkpoint is read, so that damage is found.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge checkpoint show state.checkpoint
  flowgauge checkpoint show state.checkpoint --flows ndjson

Exit status:
  0  The checkpoint is complete.
  1  It could not be read, or the output could not be written.
  2  The command line is invalid.")]
struct ShowArgs {
    /// Checkpoint that a command wrote with --checkpoint
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the open flows instead: table, ndjson or csv
    ///
    /// Each has the record that it would have if it ended now.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    flows: Option<Format>,
}

fn parse_format(text: &str) -> Result<Format, String> {
    match text.parse() {
        Ok(format @ (Format::Table | Format::Ndjson | Format::Csv)) => Ok(format),
        _ => Err("must be table, ndjson or csv".to_owned()),
    }
}

/// Runs the command `flowgauge checkpoint`.
pub(crate) fn run(command: &CheckpointCommand) -> Result<(), Failure> {
    let Operation::Show(args) = &command.command;
    show(args)
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let failure =
        |problem: &dyn std::fmt::Display| Failure::Other(format!("{}: {problem}", args.file.display()));
    let Some(mut reader) = open(&args.file)? else { return Err(failure(&"there is no such file")) };
    let state = RunState::of(&reader);
    let mut out = stdout();
    if let Some(format) = args.flows {
        let mut options = FormatOptions::default();
        options.line_width = line_width();
        let mut writer = format.writer(out, options)?;
        let mut outcome = Ok(());
        let read = read_checkpoint(&mut reader, |flow| {
            if outcome.is_ok() && !flow.is_empty() {
                outcome = writer.write(&flow.record(EndReason::ForcedEnd));
            }
        });
        outcome?;
        read.map_err(|error| failure(&error))?;
        writer.finish()?;
        return Ok(());
    }
    let mut protocols: BTreeMap<String, u64> = BTreeMap::new();
    let info = read_checkpoint(&mut reader, |flow| {
        *protocols.entry(flow.key().protocol().to_string()).or_default() += 1;
    });
    let info = info.map_err(|error| failure(&error))?;
    let by_protocol: Vec<_> = protocols.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let flows = plural(info.tracker.flow_count, "open flow");
    writeln!(
        out,
        "{flows}: {}",
        if by_protocol.is_empty() { "none".to_owned() } else { by_protocol.join(", ") }
    )?;
    writeln!(out, "clock: {}", info.tracker.now)?;
    if let Some(state) = state {
        let (file_count, frame_count) = state.inputs.counts();
        writeln!(out, "command: flowgauge {}, version {}", state.command, state.version)?;
        writeln!(out, "input: {} of {}", plural(frame_count, "frame"), plural(file_count, "file"))?;
        writeln!(
            out,
            "state: {}",
            if state.has_ended { "the run ended" } else { "the run continued, or was interrupted" }
        )?;
    }
    let datagrams = plural(info.unsaved.datagram_count, "incomplete datagram");
    let frames = plural(info.unsaved.hash_count, "frame");
    writeln!(out, "not saved: {datagrams}, {frames} of the window of duplicates")?;
    out.flush()?;
    Ok(())
}
