//! `flowgauge slice`: the packets of chosen flows.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;
use std::time::Instant;

use flowgauge::base::Frame;
use flowgauge::extractor::Packet;
use flowgauge::filter::Filter;
use flowgauge::fragment::PoolConfig;
use flowgauge::pipeline::{FragmentHandling, Pipeline};
use flowgauge::source::{Interface, PcapngWriter};
use flowgauge::tracker::{Flow, FlowSink, Interest, TrackerConfig};

use crate::args::{SliceArgs, parse_filter};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::{Input, is_stdin};
use crate::output::{OutputFile, Outputs};
use crate::summary;

/// Runs the command.
pub(crate) fn run(args: SliceArgs, console: &mut Console) -> Result<(), Failure> {
    let begun = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let mut output = Output::new(&args)?;
    // Each reading has an account of its own; one is done before the other begins.
    let input = (&args.files[..], args.tracking.config());
    let choice = Choice::new(&args.community_id, filter.as_ref(), input, |config| {
        pipeline(&args, filter.as_ref(), config)
    })?;
    let config = args.tracking.config();
    let mut pipeline = pipeline(&args, filter.as_ref(), &config)?;
    let Some(input) = Input::open(&args.files, &config, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.quiet);
    let mut chooser = Chooser { choice, ..Chooser::default() };
    input.each_batch(console, |batch, interfaces| {
        for frame in batch.iter() {
            chooser.takes_packet = false;
            pipeline.frame(&frame, &mut chooser);
            if chooser.takes_packet {
                output.write(&frame, interfaces)?;
            }
        }
        Ok(())
    })?;
    let packet_count = output.finish()?;
    if packet_count == 0 {
        return Err(Failure::Other("no such flow was found, nothing is written".to_owned()));
    }
    if !args.quiet {
        let (packets, flows) = (plural(packet_count, "packet"), plural(chooser.chosen_count, "flow"));
        let result = format!("{packets} of {flows} written");
        summary::write(&pipeline.stats(), &input.stats(), begun.elapsed(), &result);
    }
    Ok(())
}

fn pipeline<S: Default>(
    args: &SliceArgs,
    filter: Option<&Filter>,
    config: &TrackerConfig,
) -> Result<Pipeline<S>, Failure> {
    // A frame is written, or not, when it is read: it cannot wait for its datagram, nor for another one that confirms its time.
    let pipeline = Pipeline::new(config.clone())
        .and_then(|pipeline| pipeline.with_fragments(FragmentHandling::AsTheyCome, PoolConfig::default()))
        .and_then(|pipeline| args.dedup.apply(pipeline, &config.budget))
        .map_err(|error| Failure::Usage(error.to_string()))?
        .with_time_check(false);
    Ok(match filter {
        Some(filter) => pipeline.with_filter(filter.clone()),
        None => pipeline,
    })
}

/// Whether a flow was chosen at its beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    is_chosen: bool,
}

#[derive(Debug, Default)]
struct Chooser {
    choice: Choice,
    started_count: u64,
    chosen_count: u64,
    /// Whether the packet that was tracked last belongs to a chosen flow.
    takes_packet: bool,
}

impl FlowSink<Mark> for Chooser {
    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::PACKETS
    }

    fn started(&mut self, flow: &mut Flow<'_, Mark>) {
        self.started_count += 1;
        let is_chosen = self.choice.takes(&flow.view, self.started_count);
        self.chosen_count += u64::from(is_chosen);
        *flow.state = Mark { is_chosen };
    }

    fn packet(&mut self, flow: &mut Flow<'_, Mark>, _: &Packet<'_>) {
        self.takes_packet = flow.state.is_chosen;
    }
}

/// A pcapng file that is made with its first packet, so that nothing is lost for nothing.
struct Output {
    /// `None` for standard output.
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
    /// Looks whether the output may be written.
    fn new(args: &SliceArgs) -> Result<Self, Failure> {
        let path = Some(args.write.clone()).filter(|path| !is_stdin(path));
        let outputs = Outputs::new(&args.files, args.force);
        match &path {
            None if io::stdout().is_terminal() => {
                let what = "a capture is not for a terminal: name a file, or use a pipe";
                return Err(Failure::Usage(what.to_owned()));
            }
            None => {}
            Some(path) => drop(outputs.place(path)?),
        }
        Ok(Self { path, outputs, writer: None, packet_count: 0 })
    }

    fn open(&self) -> Result<Writer, Failure> {
        let (file, out): (_, Box<dyn Write>) = match &self.path {
            None => (None, Box::new(io::stdout())),
            Some(path) => {
                let (file, out) = OutputFile::create(self.outputs.place(path)?)?;
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

    /// Ends the file; how many packets are in it.
    fn finish(self) -> Result<u64, Failure> {
        if let Some(Writer { pcapng, file }) = self.writer {
            pcapng.finish().map_err(|error| failure(file.as_ref(), &error))?;
            file.map_or(Ok(()), OutputFile::commit)?;
        }
        Ok(self.packet_count)
    }
}

/// What went wrong with a file, or with standard output.
fn failure(file: Option<&OutputFile>, error: &io::Error) -> Failure {
    file.map_or_else(|| Failure::writing("standard output", error), |file| file.failure(error))
}
