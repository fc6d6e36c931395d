//! `flowgauge slice`: the packets of chosen flows.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flowgauge::base::{EndReason, Frame};
use flowgauge::extractor::Packet;
use flowgauge::filter::Filter;
use flowgauge::fragment::PoolConfig;
use flowgauge::pipeline::{FragmentHandling, Pipeline};
use flowgauge::record::community_id;
use flowgauge::source::{Interface, PcapngWriter};
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest};

use crate::args::{SliceArgs, parse_filter};
use crate::console::{Console, Failure};
use crate::flows::is_wanted;
use crate::human::plural;
use crate::input::{Input, is_stdin};
use crate::summary;

/// Runs the command.
pub(crate) fn run(args: SliceArgs, console: &mut Console) -> Result<(), Failure> {
    let begun = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let mut output = Output::new(&args)?;
    let choice = match &filter {
        None => Choice::CommunityIds(args.community_id.iter().cloned().collect()),
        Some(filter) if filter.is_final() => Choice::All,
        Some(filter) => Choice::Numbers(choose(&args, filter)?),
    };
    let mut pipeline = pipeline(&args, filter.as_ref())?;
    let Some(mut input) = open(&args, console) else { return Ok(()) };
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

fn pipeline(args: &SliceArgs, filter: Option<&Filter>) -> Result<Pipeline<Mark>, Failure> {
    // A frame is written, or not, when it is read: it cannot wait for its datagram.
    let config = args.tracking.config();
    let budget = config.budget.clone();
    let pipeline = Pipeline::new(config)
        .and_then(|pipeline| pipeline.with_fragments(FragmentHandling::AsTheyCome, PoolConfig::default()))
        .and_then(|pipeline| args.dedup.apply(pipeline, &budget))
        .map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(match filter {
        Some(filter) => pipeline.with_filter(filter.clone()),
        None => pipeline,
    })
}

fn open(args: &SliceArgs, console: &mut Console) -> Option<Input> {
    let input = Input::open(&args.files, args.tracking.config().limits, console)?;
    Some(input.with_progress(!args.quiet))
}

/// Reads all input once to learn which flows a filter wants, by their numbers.
fn choose(args: &SliceArgs, filter: &Filter) -> Result<HashSet<u64>, Failure> {
    if let Some(path) = args.files.iter().find(|path| is_read_once(path)) {
        return Err(Failure::Usage(format!(
            "{}: can be read only once, but `src`, `dst` and `vlan` need the whole flow before its first packet can be \
             written: save the capture to a file first, or leave these words out",
            path.display()
        )));
    }
    let mut pipeline = pipeline(args, Some(filter))?;
    let mut chooser = Chooser { choice: Choice::Filter(filter.clone()), ..Chooser::default() };
    // What is wrong with the input is told in the second reading.
    if let Some(mut input) = open(args, &mut Console::silent()) {
        input.each_batch(&mut Console::silent(), |batch, _| {
            batch.iter().for_each(|frame| pipeline.frame(&frame, &mut chooser));
            Ok(())
        })?;
    }
    pipeline.finish(&mut chooser);
    Ok(chooser.numbers)
}

fn is_read_once(path: &Path) -> bool {
    is_stdin(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// What a flow carries: its number among all flows, in the order of their first packets, which is the same in every
/// reading; and whether it was chosen at its beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    number: u64,
    is_chosen: bool,
}

/// Which flows are wanted.
#[derive(Debug, Default)]
enum Choice {
    /// Whatever the pipeline's own filter lets pass.
    #[default]
    All,
    CommunityIds(HashSet<String>),
    /// Those of an earlier reading.
    Numbers(HashSet<u64>),
    /// Asked when the flow ends.
    Filter(Filter),
}

#[derive(Debug, Default)]
struct Chooser {
    choice: Choice,
    started_count: u64,
    chosen_count: u64,
    /// Whether the packet that was tracked last belongs to a chosen flow.
    takes_packet: bool,
    /// Flows that were chosen at their end.
    numbers: HashSet<u64>,
}

impl FlowSink<Mark> for Chooser {
    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::PACKETS
    }

    fn started(&mut self, flow: &mut Flow<'_, Mark>) {
        self.started_count += 1;
        let is_chosen = match &self.choice {
            Choice::All => true,
            Choice::CommunityIds(ids) => ids.contains(&community_id(flow.view.key(), 0)),
            Choice::Numbers(numbers) => numbers.contains(&self.started_count),
            Choice::Filter(_) => false,
        };
        self.chosen_count += u64::from(is_chosen);
        *flow.state = Mark { number: self.started_count, is_chosen };
    }

    fn packet(&mut self, flow: &mut Flow<'_, Mark>, _: &Packet<'_>) {
        self.takes_packet = flow.state.is_chosen;
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, mark: Mark) {
        if let Choice::Filter(filter) = &self.choice
            && is_wanted(filter, view)
        {
            self.numbers.insert(mark.number);
        }
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
