//! `flowgauge report`: what happened in captures, as one file for a browser.

mod chart;
mod details;
mod histogram;
mod kept;
mod page;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::pass::{Pass, PassArgs, arguments, lack, title};
use crate::console::{Console, Failure, stdout};
use crate::input::is_stdin;
use crate::output::{Outputs, write_whole};
use details::Detailed;
use page::Page;

/// Write what happened in a capture to one HTML file, with plots and a table of flows
///
/// The file needs nothing from a network and no other file. It has all of `flowgauge summary`, plots with the commands that
/// reproduce their numbers, and a table of up to 2,000 flows with their transactions: those with the most octets, and some of each
/// protocol, application and state. One pass over the input, in bounded memory.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge report capture.pcap -o report.html
  flowgauge report monday.pcap tuesday.pcap.gz --filter 'host 192.0.2.7' -o host.html

Exit status:
  0  All input was read, and the report was written.
  1  Some input could not be read, or the report could not be written.
  2  The command line is invalid.")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pass: PassArgs,

    /// Output file; `-` is standard output
    #[arg(long, short = 'o', value_name = "HTML")]
    out: PathBuf,

    /// Overwrite an existing output file
    #[arg(long)]
    force: bool,
}

/// Runs the command `flowgauge report`.
pub(crate) fn run(args: &ReportArgs, console: &mut Console) -> Result<(), Failure> {
    let is_standard = is_stdin(&args.out);
    if is_standard && io::stdout().is_terminal() {
        let what = "standard output is a terminal; specify a file with --out, or use a pipe";
        return Err(Failure::Usage(what.to_owned()));
    }
    let outputs = Outputs::new(&args.pass.files, args.force);
    if !is_standard {
        // Refused before anything is read.
        outputs.location(&args.out)?;
    }
    let Some(pass) = args.pass.read(Detailed::default(), true, console)? else { return Ok(()) };
    let Pass { sink: Detailed { overview, mut details }, frames, totals } = pass;
    let findings = args.pass.findings(&overview.facts, &frames, &totals);
    let page = Page {
        title: title(&args.pass.names()),
        arguments: arguments(&args.pass.names()),
        options: args.pass.all_options(),
        is_filtered: args.pass.is_filtered(),
        lack: lack(console),
        facts: &overview.facts,
        findings: &findings,
        frames: &frames,
        totals: &totals,
    };
    let html = page.html(&mut details)?;
    if is_standard {
        let mut out = stdout();
        out.write_all(html.as_bytes())?;
        return Ok(out.flush()?);
    }
    write_whole(outputs.location(&args.out)?, html.as_bytes())
}
