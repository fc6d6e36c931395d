//! `flowgauge slice`: extracts the packets of selected flows.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use flowgauge::source::PcapngWriter;
use flowgauge::{Flow, Flows, FragmentHandling, Frame, Interest, Interface, Packet, Sink};

use crate::args::{Pages, SliceArgs, check, parse_filter};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::{Input, is_stdin};
use crate::output::{OutputFile, Outputs};
use crate::summary;

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
    let choice = Choice::new(&args.community_id, filter.as_ref(), &args.files, (&builder, &resources))?;
    let Some(input) = Input::open_for_frames(&args.files, &resources, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.shared.quiet);
    let mut pipeline = builder.build(Slicer::new(choice, output))?;
    let stats = input.run_with(console, |source, options| {
        pipeline.run_frames(source, options, |slicer, frame, interfaces| slicer.frame(frame, interfaces))
    })?;
    let stats = stats.unwrap_or_else(|| pipeline.stats());
    let Slicer { output, chosen_count, outcome, .. } = pipeline.into_sink();
    outcome?;
    let packet_count = output.finish()?;
    if packet_count == 0 {
        return Err(Failure::Other("no flow was selected; nothing was written".to_owned()));
    }
    if !args.shared.quiet {
        let (packets, flows) = (plural(packet_count, "packet"), plural(chosen_count, "flow"));
        let result = format!("{packets} of {flows} written");
        summary::write(&stats, &input.stats(), started_at.elapsed(), &result);
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
    output: Output,
    started_count: u64,
    chosen_count: u64,
    /// True if the packet that was tracked last belongs to a selected flow.
    is_frame_chosen: bool,
    outcome: Result<(), Failure>,
}

impl Slicer {
    const fn new(choice: Choice, output: Output) -> Self {
        Self { choice, output, started_count: 0, chosen_count: 0, is_frame_chosen: false, outcome: Ok(()) }
    }

    /// Writes a frame if its packet belongs to a selected flow.
    fn frame(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) {
        if std::mem::take(&mut self.is_frame_chosen) && self.outcome.is_ok() {
            self.outcome = self.output.write(frame, interfaces);
        }
    }
}

impl Sink for Slicer {
    type State = Mark;
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::PACKETS
    }

    fn started(&mut self, flow: &mut Flow<'_, Mark>) {
        self.started_count += 1;
        let is_chosen = self.choice.selects(&flow.view, self.started_count);
        self.chosen_count += u64::from(is_chosen);
        *flow.state = Mark { is_chosen };
    }

    fn packet(&mut self, flow: &mut Flow<'_, Mark>, _: &Packet<'_>) {
        self.is_frame_chosen = flow.state.is_chosen;
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
            None => (None, Box::new(io::stdout())),
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
