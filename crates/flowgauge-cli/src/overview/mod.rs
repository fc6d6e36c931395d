//! `flowgauge summary`: what happened in a capture.

mod bounded;
mod facts;
mod few;
mod finding;
mod screen;
mod sink;
mod timeline;
mod watch;

use std::io::{self, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flowgauge::export::{Lines, RecordWriter as _, Style};
use flowgauge::pipeline::Transactions;
use flowgauge::{Builder, Filter, Sessions, Standard};

use crate::args::{Pages, SharedArgs, check, parse_count, parse_filter};
use crate::console::{Console, Failure, stdout};
use crate::input::Input;
use finding::Finding;
use screen::{Screen, Section};
use sink::Collecting;

/// Show what happened in a capture: protocols, hosts, conversations, and what was seen
///
/// One pass over the input, in bounded memory. A finding states what was seen, with its evidence and, if it was seen in flows, the
/// command that shows them; none is a verdict. docs/cli.md has the thresholds.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge capture.pcap
  flowgauge summary capture.pcap --section findings
  flowgauge summary capture.pcap --format ndjson | jq -r '.evidence'

Exit status:
  0  All input was read.
  1  Some input could not be read.
  2  The command line is invalid.")]
pub(crate) struct SummaryArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Show only one section: up to 64 entries, or all findings
    #[arg(long, value_enum, value_name = "NAME")]
    section: Option<Section>,

    /// Number of lines of each list
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count::<NonZeroUsize>)]
    top: Option<NonZeroUsize>,

    /// Format: text, or ndjson with an object per finding
    #[arg(long, short = 'f', value_enum, value_name = "FORMAT", default_value_t = Format::Text, hide_possible_values = true)]
    format: Format,

    /// Show only packets that match an expression, as in pcap-filter(7)
    #[arg(long, short = 'F', value_name = "EXPR")]
    filter: Option<String>,

    #[command(flatten)]
    shared: SharedArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Ndjson,
}

/// Quotes a file name for a shell, if that is necessary.
fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/+=:@%,".contains(letter);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// Runs the command `flowgauge summary`.
pub(crate) fn run(args: &SummaryArgs, console: &mut Console) -> Result<(), Failure> {
    let filter: Option<Filter> = args.filter.as_deref().map(parse_filter).transpose()?;
    let resources = args.shared.resources();
    let builder: Builder = args.shared.builder(&resources, filter.as_ref(), Pages::Huge).encapsulation(true);
    check::<Sessions<Standard>>(&builder)?;
    let Some(input) = Input::open(&args.files, &resources, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.shared.quiet && !io::stdout().is_terminal());
    let mut pipeline = builder.build(Transactions::new(Collecting::default()))?;
    let mut frames = watch::Frames::default();
    let stats = input.run_with(console, |source, options| {
        let mut watched = watch::Watched::new(source, &resources)?;
        let outcome = pipeline.run(&mut watched, options);
        frames = watched.frames;
        outcome
    })?;
    let stats = stats.unwrap_or_else(|| pipeline.stats());
    let Collecting { facts } = pipeline.into_sink().into_inner();
    let findings = facts.findings(&frames, &stats);
    let mut out = stdout();
    if args.format == Format::Ndjson {
        let mut lines = Lines::ndjson(out, None, Style::default());
        findings.iter().try_for_each(|finding| lines.write(finding))?;
        flowgauge::export::RecordWriter::<Finding>::finish(Box::new(lines))?;
        return Ok(());
    }
    let names: Vec<_> = args.files.iter().map(|file| file.display().to_string()).collect();
    let screen = Screen {
        files: if names.len() > 3 { format!("{} files", names.len()) } else { names.join(", ") },
        facts: &facts,
        frames: &frames,
        stats: &stats,
        findings: &findings,
        arguments: names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(" "),
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
