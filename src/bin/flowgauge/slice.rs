//! `flowgauge slice`: the packets of chosen flows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::PathBuf;
use std::time::Instant;

use flowgauge::base::Frame;
use flowgauge::extractor::Packet;
use flowgauge::filter::Filter;
use flowgauge::fragment::PoolConfig;
use flowgauge::pipeline::{FragmentHandling, Pipeline};
use flowgauge::source::{Interface, PcapngWriter};
use flowgauge::tracker::{Flow, FlowSink, Interest};

use crate::args::{SliceArgs, parse_filter};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::{Input, is_stdin};
use crate::summary;

/// Runs the command.
pub(crate) fn run(args: SliceArgs, console: &mut Console) -> Result<(), Failure> {
    let begun = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let mut output = Output::new(&args)?;
    let limits = args.tracking.config().limits;
    let input = (&args.files[..], limits);
    let choice =
        Choice::new(&args.community_id, filter.as_ref(), input, || pipeline(&args, filter.as_ref()))?;
    let mut pipeline = pipeline(&args, filter.as_ref())?;
    let Some(input) = Input::open(&args.files, limits, console) else { return Ok(()) };
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

fn pipeline<S: Default>(args: &SliceArgs, filter: Option<&Filter>) -> Result<Pipeline<S>, Failure> {
    // A frame is written, or not, when it is read: it cannot wait for its datagram, nor for another one that confirms its time.
    let config = args.tracking.config();
    let budget = config.budget.clone();
    let pipeline = Pipeline::new(config)
        .and_then(|pipeline| pipeline.with_fragments(FragmentHandling::AsTheyCome, PoolConfig::default()))
        .and_then(|pipeline| args.dedup.apply(pipeline, &budget))
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
    path: PathBuf,
    may_overwrite: bool,
    writer: Option<PcapngWriter<BufWriter<Box<dyn Write>>>>,
    packet_count: u64,
}

impl Output {
    /// Looks whether the output may be written.
    fn new(args: &SliceArgs) -> Result<Self, Failure> {
        let path = args.write.clone();
        let is_stdout = is_stdin(&path);
        if is_stdout && io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "a capture is not for a terminal: name a file, or use a pipe".to_owned(),
            ));
        }
        let same = |input: &PathBuf| {
            fs::canonicalize(input).ok().zip(fs::canonicalize(&path).ok()).is_some_and(|(a, b)| a == b)
        };
        let is_file = !is_stdout && fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if is_file && args.files.iter().any(same) {
            return Err(Failure::Other(format!(
                "{}: is an input, and cannot be the output too",
                path.display()
            )));
        }
        if is_file && !args.force {
            return Err(Failure::Other(format!("{}: exists; --force overwrites it", path.display())));
        }
        Ok(Self { path, may_overwrite: args.force, writer: None, packet_count: 0 })
    }

    fn open(&self) -> io::Result<Box<dyn Write>> {
        if is_stdin(&self.path) {
            return Ok(Box::new(io::stdout()));
        }
        let is_new = !self.may_overwrite && !self.path.exists();
        let file: File =
            OpenOptions::new().write(true).create(true).create_new(is_new).truncate(true).open(&self.path)?;
        Ok(Box::new(file))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        if is_stdin(&self.path) {
            Failure::writing("standard output", error)
        } else {
            Failure::writing(self.path.display(), error)
        }
    }

    fn write(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) -> Result<(), Failure> {
        self.packet_count += 1;
        self.try_write(frame, interfaces).map_err(|error| self.failure(&error))
    }

    fn try_write(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) -> io::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let out = BufWriter::with_capacity(1 << 16, self.open()?);
                self.writer.insert(PcapngWriter::new(out)?)
            }
        };
        writer.write(frame, interfaces)
    }

    /// Ends the file; how many packets are in it.
    fn finish(mut self) -> Result<u64, Failure> {
        match self.writer.take().map(PcapngWriter::finish) {
            Some(Err(error)) => Err(self.failure(&error)),
            _ => Ok(self.packet_count),
        }
    }
}
