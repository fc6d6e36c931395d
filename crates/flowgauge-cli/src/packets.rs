//! `flowgauge packets`: writes a row for each packet.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgGroup, Args, ValueEnum};
use flowgauge::export::{Lines, RecordWriter, Selection, Style};
use flowgauge::pipeline::boxed;
use flowgauge::{Flow, Flows, FragmentHandling, Interest, Packet, Sink};

use crate::args::{Pages, SharedArgs, check, parse_community_id, parse_filter};
use crate::choice::Choice;
use crate::columns::{ColumnArgs, Columns};
use crate::console::{Console, Failure, stdout};
use crate::formats::StyleArgs;
#[cfg(feature = "arrow")]
use crate::formats::check_redirected;
use crate::human::plural;
use crate::input::Input;
use crate::selection::parse_columns;
use crate::summary::SummaryLineArgs;

/// Print one row per packet, with the fields of its innermost headers.
///
/// A packet that belongs to no flow, such as ARP, has no row. Fragments have rows of their own, without ports except for the
/// first one.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").args(["community_id", "filter"])))]
#[command(after_long_help = "Examples:
  flowgauge packets capture.pcap --format csv --fields timestamp,source_address,wire_len
  flowgauge packets capture.pcap --filter 'udp port 53' | jq -c .payload_len
  flowgauge packets capture.pcap --format parquet > packets.parquet

Exit status:
  0  All input was read.
  1  Some input could not be read, or the output could not be written.
  2  The command line is invalid.")]
pub(crate) struct PacketsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Output format
    #[arg(long, short = 'f', value_enum, default_value_t = Format::Ndjson)]
    format: Format,

    /// Write only these fields of each packet, separated by commas
    #[arg(long, value_name = "LIST", value_parser = parse_columns::<Packet<'static>>)]
    fields: Option<Selection>,

    /// Select flows by Community ID; may be repeated
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    community_id: Vec<String>,

    /// Select flows by an expression (see `flowgauge flows --help`)
    #[arg(long, short = 'F', value_name = "EXPR")]
    filter: Option<String>,

    #[command(flatten)]
    style: StyleArgs,

    #[command(flatten)]
    columns: ColumnArgs,

    #[command(flatten)]
    summary: SummaryLineArgs,

    #[command(flatten)]
    shared: SharedArgs,
}

/// Output format of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line
    Ndjson,
    /// A header line and one line per packet
    Csv,
    /// A Parquet file (feature `arrow`)
    Parquet,
    /// An Arrow IPC stream (feature `arrow`)
    Arrow,
}

impl PacketsArgs {
    /// Creates the writer; fails if options contradict each other.
    fn writer(&self) -> Result<Writer, Failure> {
        let columns = match self.format {
            Format::Parquet => Some(Columns::Parquet),
            Format::Arrow => Some(Columns::Arrow),
            Format::Ndjson | Format::Csv => None,
        };
        self.columns.check(columns)?;
        let style = self.style.style();
        if columns.is_some() && style != Style::default() {
            return Err(Failure::Usage("--time and --nulls require --format ndjson or csv".to_owned()));
        }
        #[cfg(feature = "arrow")]
        if let Some(format) = columns {
            check_redirected(format.name())?;
            let options = self.columns.options("packet", self.fields.clone());
            return Ok(Box::new(format.writer::<Packet<'static>, _>(stdout(), options)?));
        }
        Ok(match self.format {
            Format::Csv => Box::new(Lines::csv(stdout(), self.fields.clone(), style)),
            _ => Box::new(Lines::ndjson(stdout(), self.fields.clone(), style)),
        })
    }
}

type Writer = Box<dyn for<'p> RecordWriter<Packet<'p>> + Send>;

/// Runs the command `flowgauge packets`.
pub(crate) fn run(args: &PacketsArgs, console: &mut Console) -> Result<(), Failure> {
    let started_at = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let writer = args.writer()?;
    let resources = args.shared.resources();
    let builder = args.shared.builder(&resources, filter.as_ref(), Pages::Huge);
    // Each fragment is a packet.
    let builder = builder.fragments(FragmentHandling::AsTheyCome);
    check::<Flows>(&builder)?;
    let choice =
        Choice::new(&args.community_id, filter.as_ref(), (&args.files, None), (&builder, &resources))?;
    let Some(input) = Input::open(&args.files, &resources, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.shared.quiet && !io::stdout().is_terminal());
    let is_stream = input.is_stream();
    let mut sink = PacketSink {
        choice,
        started_count: 0,
        writer,
        is_stream,
        packet_count: 0,
        flushed_count: 0,
        outcome: Ok(()),
    };
    let stats = input.run(builder.build(boxed(&mut sink))?, console)?;
    let PacketSink { writer, packet_count, outcome, .. } = sink;
    outcome?;
    writer.finish()?;
    if !args.shared.quiet {
        let result = format!("{} written", plural(packet_count, "packet"));
        args.summary.write(&stats, &input.stats(), started_at.elapsed(), &result);
    }
    Ok(())
}

/// Writes the packets of selected flows until the first failure.
struct PacketSink {
    choice: Choice,
    started_count: u64,
    writer: Writer,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    packet_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
}

impl Sink for PacketSink {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::PACKETS
    }

    fn started(&mut self, flow: &mut Flow<'_, ()>) {
        self.started_count += 1;
        if !self.choice.selects(&flow.view, self.started_count) {
            flow.mute();
        }
    }

    #[inline]
    fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        if self.outcome.is_ok() {
            self.outcome = self.writer.write(packet);
            self.packet_count += 1;
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.packet_count > self.flushed_count {
            self.flushed_count = self.packet_count;
            self.outcome = self.writer.flush();
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
