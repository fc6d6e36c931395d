//! What happened in captures: `flowgauge summary` and `flowgauge report`.

mod continued;
pub(crate) mod hosts;
mod pass;
pub(crate) mod report;
mod screen;
mod selected;

use std::io::{self, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use flowgauge::export::{Lines, RecordWriter as _, Style};
use flowgauge_summary::Finding;

use crate::args::parse_count;
use crate::checkpoint::CheckpointArgs;
use crate::console::{Console, Failure, stdout};
use continued::Earlier;
use pass::{Pass, PassArgs, arguments, lack, title};
use screen::{Screen, Section};

const CHECKPOINT_HELP: &str = "Continue the summary in FILE, and show that of all runs so far

For files of a rotation: FILE contains the summary, the open flows, and which frames were read, so that a file that is given \
again continues behind them, or is skipped, under any name. Files are read in the order of their first frames, one after \
another. Flows that are open at the end are shown as if they ended, and continue in the next run. FILE is replaced when it is \
complete.";

/// Show what happened in a capture: protocols, hosts, conversations, and what was seen
///
/// One pass over the input, in bounded memory. A finding states what was seen, with its evidence and, if it was seen in flows, the
/// command that shows them; none is a verdict. docs/cli.md has the thresholds.
#[derive(Debug, Args)]
#[command(mut_arg("files", |files| files.required(false).required_unless_present("finish")))]
#[command(mut_arg("checkpoint", |checkpoint| {
    checkpoint.help("Continue the summary in FILE, and show that of all runs so far").long_help(CHECKPOINT_HELP)
}))]
#[command(after_long_help = "Examples:
  flowgauge capture.pcap
  flowgauge summary capture.pcap --section findings
  flowgauge summary --checkpoint state capture*.pcap
  flowgauge summary capture.pcap --format ndjson | jq -r '.evidence'

Exit status:
  0  All input was read.
  1  Some input could not be read.
  2  The command line is invalid.")]
pub(crate) struct SummaryArgs {
    #[command(flatten)]
    pass: PassArgs,

    /// Show only one section: up to 64 entries, or all findings
    #[arg(long, value_enum, value_name = "NAME")]
    section: Option<Section>,

    /// Number of lines of each list
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = parse_count::<NonZeroUsize>)]
    top: Option<NonZeroUsize>,

    /// Format: text, or ndjson with an object per finding
    #[arg(long, short = 'f', value_enum, value_name = "FORMAT", default_value_t = Format::Text, hide_possible_values = true)]
    format: Format,

    #[command(flatten)]
    checkpoint: CheckpointArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Ndjson,
}

/// Runs the command `flowgauge summary`.
pub(crate) fn run(args: &SummaryArgs, console: &mut Console) -> Result<(), Failure> {
    if args.format == Format::Ndjson && args.section.is_some_and(|section| section != Section::Findings) {
        let usage = "--format ndjson writes findings, and cannot be combined with another --section";
        return Err(Failure::Usage(usage.to_owned()));
    }
    let is_terminal_free = !io::stdout().is_terminal();
    let (facts, Earlier { frames, totals, names }) = if args.checkpoint.is_used() {
        args.pass.continued(&args.checkpoint, is_terminal_free, console)?
    } else {
        let pass = args.pass.collect(is_terminal_free, console)?;
        let Some(Pass { sink, frames, totals }) = pass else { return Ok(()) };
        (sink.facts, Earlier { frames, totals, names: args.pass.names() })
    };
    let findings = args.pass.findings(&facts, &frames, &totals);
    let mut out = stdout();
    if args.format == Format::Ndjson {
        let mut lines = Lines::ndjson(out, None, Style::default());
        findings.iter().try_for_each(|finding| lines.write(finding))?;
        flowgauge::export::RecordWriter::<Finding>::finish(Box::new(lines))?;
        return Ok(());
    }
    let screen = Screen {
        files: title(&names),
        facts: &facts,
        frames: &frames,
        totals: &totals,
        findings: &findings,
        arguments: arguments(&names),
        is_filtered: args.pass.is_filtered(),
        lack: lack(console),
    };
    let limit = args.top.map(NonZeroUsize::get);
    let lines = match args.section {
        Some(section) => screen.section(section, limit),
        None => screen.whole(limit),
    };
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
