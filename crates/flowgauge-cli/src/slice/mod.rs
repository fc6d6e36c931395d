//! `flowgauge slice`: extracts the packets of selected flows.

mod fragments;

use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgGroup, Args};
use flowgauge::decode::extractor::PacketMarks;
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::boxed;
use flowgauge::source::PcapngWriter;
use flowgauge::{Flow, Flows, FragmentHandling, Frame, Interest, Interface, Packet, Sink};

use self::fragments::Fragments;
use crate::args::{Pages, SharedArgs, check, parse_community_id, parse_filter};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::{Input, is_stdin};
use crate::output::{OutputFile, Outputs};
use crate::standard::StandardOutput;
use crate::summary::SummaryLineArgs;

/// Write the packets of selected flows to a pcapng file.
///
/// The packets of both directions are written. A filter with `src`, `dst` or `vlan` depends on properties that may be
/// known only at the end of a flow: it reads the files twice, and cannot read from a pipe. The fragments of a datagram
/// are written with the one that contains its ports. A filter also selects messages of ARP, LLDP and the like, which belong
/// to no flow.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("choice").required(true).args(["community_id", "filter"])))]
#[command(after_long_help = "Examples:
  flowgauge slice capture.pcap --community-id 1:LQU9qZlK+B5F3KDmev6m5PMibrg= -w flow.pcapng
  flowgauge slice day*.pcap --filter 'host 192.0.2.1 and tcp' -w - | tshark -r -
  flowgauge slice capture.pcap --filter arp -w arp.pcapng

Exit status:
  0  All input was read, and packets were written.
  1  Some input could not be read, the output could not be written, or no packet was selected. In the
     last case, no file is created.
  2  The command line is invalid.")]
pub(crate) struct SliceArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Select flows by Community ID; may be repeated
    ///
    /// The version is 1 and the seed 0, as in the field `community_id` of `flowgauge flows`.
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    community_id: Vec<String>,

    /// Select flows by an expression (see `flowgauge flows --help`)
    #[arg(long, short = 'F', value_name = "EXPR")]
    filter: Option<String>,

    /// Output file; `-` is standard output
    #[arg(long, short = 'w', value_name = "OUT")]
    write: PathBuf,

    /// Overwrite an existing output file
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    summary: SummaryLineArgs,

    #[command(flatten)]
    shared: SharedArgs,
}

/// Runs the command `flowgauge slice`.
pub(crate) fn run(args: &SliceArgs, console: &mut Console) -> Result<(), Failure> {
    let started_at = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let output = Output::new(args)?;
    let resources = args.shared.resources();
    // Whether to write a frame is decided when it is read, so it cannot wait for its datagram or for a frame that
    // confirms its time.
    let builder = args.shared.builder(&resources, filter.as_ref(), Pages::Huge);
    let builder = builder.fragments(FragmentHandling::AsTheyCome).time_check(false);
    check::<Flows>(&builder)?;
    let choice =
        Choice::new(&args.community_id, filter.as_ref(), (&args.files, None), (&builder, &resources))?;
    let Some(input) = Input::open_for_frames(&args.files, &resources, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.shared.quiet);
    let slicer = Slicer::new(choice, output, Fragments::new(resources.limits));
    let slicer = RefCell::new(Slicer { has_filter: filter.is_some(), ..slicer });
    let mut pipeline = builder.build(boxed(&slicer))?;
    let stats = input.run_with(console, |source, options| {
        let write =
            |frame: &Frame<'_>, interfaces: &[Interface]| slicer.borrow_mut().frame(frame, interfaces);
        pipeline.run_frames(source, options, |_, frame, interfaces| write(frame, interfaces))
    })?;
    let stats = stats.unwrap_or_else(|| pipeline.stats());
    drop(pipeline);
    let Slicer { output, chosen_count, outcome, .. } = slicer.into_inner();
    outcome?;
    let packet_count = output.finish()?;
    if packet_count == 0 {
        return Err(Failure::Other("no packet was selected; nothing was written".to_owned()));
    }
    if !args.shared.quiet {
        let (packets, flows) = (plural(packet_count, "packet"), plural(chosen_count, "flow"));
        let result = format!("{packets} of {flows} written");
        args.summary.write(&stats, &input.stats(), started_at.elapsed(), &result);
    }
    Ok(())
}

/// State of a flow: true if it was selected at its first packet.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    is_chosen: bool,
}

/// Writes the frames of selected flows until the first failure.
struct Slicer {
    choice: Choice,
    /// True if a filter selects the packets, rather than the Community IDs of flows.
    has_filter: bool,
    output: Output,
    started_count: u64,
    chosen_count: u64,
    /// True if a packet of the current frame belongs to a selected flow.
    is_frame_chosen: bool,
    fragments: Fragments,
    outcome: Result<(), Failure>,
}

impl Slicer {
    fn new(choice: Choice, output: Output, fragments: Fragments) -> Self {
        Self {
            choice,
            has_filter: false,
            output,
            started_count: 0,
            chosen_count: 0,
            is_frame_chosen: false,
            fragments,
            outcome: Ok(()),
        }
    }

    /// Writes a frame if a packet in it belongs to a selected flow, after the fragments of the same datagram that
    /// preceded it.
    fn frame(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) {
        let is_chosen = std::mem::take(&mut self.is_frame_chosen) || self.fragments.selects(frame);
        if !is_chosen {
            return;
        }
        for held in self.fragments.awaited() {
            self.write(&held.frame(), interfaces);
        }
        self.write(frame, interfaces);
    }

    fn write(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) {
        if self.outcome.is_ok() {
            self.outcome = self.output.write(frame, interfaces);
        }
    }
}

impl Sink for Slicer {
    type State = Mark;
    type Stage = Flows;

    fn interest(&self) -> Interest {
        let flows = Interest::STARTS | Interest::PACKETS;
        if self.has_filter { flows | Interest::NEIGHBORS } else { flows | Interest::VARIES }
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        // Those in IP packets belong to flows, which the filter selects.
        self.is_frame_chosen |= !neighbor.head.is_in_flow();
    }

    fn started(&mut self, flow: &mut Flow<'_, Mark>) {
        self.started_count += 1;
        let is_chosen = self.choice.selects(&flow.view, self.started_count);
        self.chosen_count += u64::from(is_chosen);
        *flow.state = Mark { is_chosen };
    }

    fn packet(&mut self, flow: &mut Flow<'_, Mark>, packet: &Packet<'_>) {
        self.is_frame_chosen |= flow.state.is_chosen;
        if flow.state.is_chosen && packet.marks.contains(PacketMarks::FRAGMENT) {
            self.fragments.selected(packet);
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// A pcapng output file that is created with its first packet, so that a run without packets replaces no file.
struct Output {
    /// Path of the output file; `None` for standard output.
    path: Option<PathBuf>,
    outputs: Outputs,
    writer: Option<Writer>,
    packet_count: u64,
}

struct Writer {
    pcapng: PcapngWriter<BufWriter<Box<dyn Write>>>,
    file: Option<OutputFile>,
}

impl Output {
    /// Checks whether the output file may be written.
    fn new(args: &SliceArgs) -> Result<Self, Failure> {
        let path = Some(args.write.clone()).filter(|path| !is_stdin(path));
        let outputs = Outputs::new(&args.files, args.force);
        match &path {
            None if io::stdout().is_terminal() => {
                let what = "standard output is a terminal; specify a file with --write, or use a pipe";
                return Err(Failure::Usage(what.to_owned()));
            }
            None => {}
            Some(path) => drop(outputs.location(path)?),
        }
        Ok(Self { path, outputs, writer: None, packet_count: 0 })
    }

    fn open(&self) -> Result<Writer, Failure> {
        let (file, out): (_, Box<dyn Write>) = match &self.path {
            None => (None, Box::new(StandardOutput)),
            Some(path) => {
                let (file, out) = OutputFile::create(self.outputs.location(path)?)?;
                (Some(file), Box::new(out))
            }
        };
        let pcapng = PcapngWriter::new(BufWriter::with_capacity(1 << 16, out));
        match pcapng {
            Ok(pcapng) => Ok(Writer { pcapng, file }),
            Err(error) => Err(failure(file.as_ref(), &error)),
        }
    }

    fn write(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) -> Result<(), Failure> {
        self.packet_count += 1;
        if self.writer.is_none() {
            self.writer = Some(self.open()?);
        }
        let Some(Writer { pcapng, file }) = &mut self.writer else { return Ok(()) };
        pcapng.write(frame, interfaces).map_err(|error| failure(file.as_ref(), &error))
    }

    /// Completes the output file. Returns the number of packets in it.
    fn finish(self) -> Result<u64, Failure> {
        if let Some(Writer { pcapng, file }) = self.writer {
            pcapng.finish().map_err(|error| failure(file.as_ref(), &error))?;
            file.map_or(Ok(()), OutputFile::commit)?;
        }
        Ok(self.packet_count)
    }
}

/// Returns the failure for an I/O error of a file, or of standard output if `file` is `None`.
fn failure(file: Option<&OutputFile>, error: &io::Error) -> Failure {
    file.map_or_else(|| Failure::writing("standard output", error), |file| file.failure(error))
}
