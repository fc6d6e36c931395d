//! `flowgauge streams`: writes the octets of TCP connections.

mod args;
mod index;
mod name;

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use flowgauge::export::{Nulls, Style, write_json};
use flowgauge::pipeline::boxed;
use flowgauge::{EndReason, Flow, FlowView, Interest, IpProtocol, Side, Sink, StreamEvent, Streams};

pub(crate) use args::StreamsArgs;
use args::{Gaps, Sides};
use index::{DirectionState, Line};
use name::Pattern;

use crate::args::{Pages, check, parse_filter};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::files::Files;
use crate::human::plural;
use crate::input::Input;
use crate::output::{OutputFile, Outputs};
use crate::standard::StandardOutput;

/// Maximum number of gaps and conflicts that are listed for all open flows together.
const LISTED_COUNT_MAX: usize = 1 << 20;

/// Part of the memory that the lists of gaps and conflicts may have.
const MEMORY_PART: usize = 4;

/// Memory in bytes of the properties of a connection with octets, beside its lists.
const SIDES_LEN: usize = size_of::<[DirectionState; 2]>() + 16;

/// Maximum number of zeros that are written for the missing octets of a direction: an attacker can easily forge distant
/// sequence numbers.
const FILLED_OCTET_COUNT_MAX: u64 = 1 << 32;

/// Name of the index file in the output folder.
const INDEX: &str = "index.ndjson";

/// Runs the command `flowgauge streams`.
pub(crate) fn run(args: &StreamsArgs, console: &mut Console) -> Result<(), Failure> {
    let started_at = Instant::now();
    if args.out.is_none() && io::stdout().is_terminal() {
        let what = "standard output is a terminal, which untrusted octets could control; use a pipe or redirect the output";
        return Err(Failure::Usage(what.to_owned()));
    }
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let mut resources = args.shared.resources();
    resources.limits.stream_side_bytes_max = args.max_held;
    let flows =
        args.shared.builder(&resources, filter.as_ref(), Pages::Huge).checksums(args.checksums.into());
    let builder = flows.clone().streams(args.reassembler());
    check::<Streams>(&builder)?;
    let choice = Choice::new(
        &args.community_id,
        filter.as_ref(),
        (&args.files, Some(&args.grace.shift)),
        (&flows, &resources),
    )?;
    let Some(input) = Input::open(&args.files, &resources, console) else { return Ok(()) };
    let mut input = input.shifted(&args.grace.shift).with_progress(!args.shared.quiet);
    let mut sink = OctetSink::new(choice, args)?;
    let stats = input.run(builder.build(boxed(&mut sink))?, console)?;
    // The index lists everything that was written, even after a failure.
    let result = sink.finish()?;
    if let Some(problem) = sink.problem() {
        console.problem(problem);
    }
    if !args.shared.quiet {
        args.summary.write(&stats, &input.stats(), started_at.elapsed(), &result);
    }
    Ok(())
}

/// State of a flow that the sink keeps.
#[derive(Debug, Default)]
struct State {
    /// Number of the flow among all flows in the order of first packets, starting at one.
    number: u64,
    /// True for a TCP connection that was selected for the output.
    is_wanted: bool,
    /// Properties of the streams of sides A and B; `None` before the first octets.
    sides: Option<Box<[DirectionState; 2]>>,
}

/// Destination of the stream octets.
enum Output {
    Folder { files: Box<Files>, index: Index, pattern: Pattern, gaps: Gaps },
    Stdout { out: BufWriter<StandardOutput>, sides: Sides, gaps: Gaps, chosen: Option<Chosen> },
}

/// The index file while it is written.
struct Index {
    writer: BufWriter<std::fs::File>,
    /// The index file, to be renamed to its final name; `None` once it is complete.
    file: Option<OutputFile>,
}

/// The connection that is written to standard output: the first selected one that has octets.
#[derive(Clone, Copy)]
struct Chosen {
    number: u64,
    /// Initiator of the connection as determined at its first octet.
    initiator: Side,
}

struct OctetSink {
    choice: Choice,
    output: Output,
    started_count: u64,
    listable_count: usize,
    /// Number of open connections with octets.
    open_count: usize,
    /// Memory in bytes of the lists of open connections, and how much they may have.
    lists_len: usize,
    lists_len_max: usize,
    stream_count: u64,
    octet_count: u64,
    gap_count: u64,
    gap_octet_count: u64,
    conflict_count: u64,
    /// Number of selected connections that were not written, because another one is written to standard output.
    other_count: u64,
    /// Failure that ended the output early, if there was one.
    failure: Option<Failure>,
}

impl OctetSink {
    fn new(choice: Choice, args: &StreamsArgs) -> Result<Self, Failure> {
        let output = match (&args.out, args.to_stdout) {
            (Some(folder), _) => {
                let files = Files::new(folder, Outputs::new(&args.files, args.force))?;
                let (file, index) = files.create(INDEX)?;
                let index = Index { writer: BufWriter::new(index), file: Some(file) };
                Output::Folder { files: Box::new(files), index, pattern: args.name.clone(), gaps: args.gaps }
            }
            (None, sides) => {
                let out = BufWriter::with_capacity(1 << 16, StandardOutput);
                let sides = sides.unwrap_or(Sides::Both);
                Output::Stdout { out, sides, gaps: args.gaps, chosen: None }
            }
        };
        Ok(Self {
            choice,
            output,
            started_count: 0,
            listable_count: LISTED_COUNT_MAX,
            open_count: 0,
            lists_len: 0,
            lists_len_max: 0,
            stream_count: 0,
            octet_count: 0,
            gap_count: 0,
            gap_octet_count: 0,
            conflict_count: 0,
            other_count: 0,
            failure: None,
        })
    }

    /// Flushes all output. Returns a summary of it.
    fn finish(&mut self) -> Result<String, Failure> {
        let flushed = match &mut self.output {
            Output::Folder { index, .. } => {
                let flushed = index.writer.flush().map_err(|error| Failure::writing(INDEX, &error));
                // An incomplete index is removed.
                let file = index.file.take();
                flushed.and_then(|()| file.map_or(Ok(()), OutputFile::commit))
            }
            Output::Stdout { out, .. } => out.flush().map_err(Failure::from),
        };
        self.note(flushed);
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut result = format!(
            "{} of {} written",
            plural(self.octet_count, "octet"),
            plural(self.stream_count, "stream")
        );
        if self.gap_count > 0 {
            let (gaps, octets) = (plural(self.gap_count, "gap"), plural(self.gap_octet_count, "octet"));
            result.push_str(&format!(", {gaps} of {octets}"));
        }
        if self.conflict_count > 0 {
            result.push_str(&format!(", {}", plural(self.conflict_count, "conflict")));
        }
        Ok(result)
    }

    const fn is_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Keeps the failure of an outcome, unless there was a failure before.
    fn note(&mut self, outcome: Result<(), Failure>) {
        if let (None, Err(failure)) = (&self.failure, outcome) {
            self.failure = Some(failure);
        }
    }

    /// Returns the problem that the exit status must report, if there is one.
    fn problem(&self) -> Option<String> {
        match &self.output {
            Output::Stdout { chosen: None, .. } => {
                Some("no selected connection has octets; nothing was written".to_owned())
            }
            Output::Stdout { .. } if self.other_count > 0 => Some(format!(
                "only the first connection was written, without {}; select one with --community-id or --filter, \
                 or write all with --out",
                plural(self.other_count, "other connection")
            )),
            _ => None,
        }
    }
}

/// Writes the octets of a stream event. `direction` contains the properties of the direction before the event.
fn write(
    output: &mut Output,
    (view, number, side): (&FlowView<'_>, u64, Side),
    direction: &mut DirectionState,
    event: &StreamEvent<'_>,
) -> Result<(), Failure> {
    match (output, event) {
        (Output::Folder { files, pattern, .. }, StreamEvent::Chunk(chunk)) => {
            let position = direction.octet_count + direction.filled_octet_count;
            let name = pattern.name(view, number, side);
            if !direction.has_file && name == pattern.name(view, number, side.other()) {
                return Err(Failure::Usage(format!(
                    "--name: both directions of a connection have the file name {name}; add {{side}} to the pattern"
                )));
            }
            files.write(&name, !direction.has_file, position, chunk.bytes)?;
            direction.has_file = true;
            Ok(())
        }
        (Output::Stdout { out, .. }, StreamEvent::Chunk(chunk)) => Ok(out.write_all(chunk.bytes)?),
        (
            output @ (Output::Folder { gaps: Gaps::Zero, .. } | Output::Stdout { gaps: Gaps::Zero, .. }),
            StreamEvent::Gap(gap),
        ) if direction.filled_octet_count.saturating_add(gap.len) <= FILLED_OCTET_COUNT_MAX => {
            direction.filled_octet_count += gap.len;
            if let Output::Stdout { out, .. } = output {
                io::copy(&mut io::Read::take(io::repeat(0), gap.len), out)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

impl OctetSink {
    /// Returns whether a side of a flow is written to the output.
    fn selects(&mut self, view: &FlowView<'_>, number: u64, side: Side, event: &StreamEvent<'_>) -> bool {
        let Output::Stdout { sides, chosen, .. } = &mut self.output else { return true };
        if chosen.is_none() && matches!(event, StreamEvent::Chunk(_) | StreamEvent::Gap(_)) {
            *chosen = Some(Chosen { number, initiator: view.initiator() });
        }
        let Some(chosen) = chosen.filter(|chosen| chosen.number == number) else { return false };
        match sides {
            Sides::Both => true,
            Sides::Initiator => side == chosen.initiator,
            Sides::Responder => side != chosen.initiator,
        }
    }

    fn end_side(
        &mut self,
        view: &FlowView<'_>,
        number: u64,
        (side, direction): (Side, &DirectionState),
        reason: EndReason,
    ) -> Result<(), Failure> {
        self.listable_count += direction.listed_count();
        let (gap_count, conflict_count) = direction.counts();
        self.stream_count += u64::from(direction.octet_count > 0);
        self.octet_count += direction.octet_count;
        self.gap_count += gap_count;
        self.gap_octet_count += direction.gap_octet_count();
        self.conflict_count += conflict_count;
        let Output::Folder { files, index, pattern, .. } = &mut self.output else { return Ok(()) };
        let name = direction.has_file.then(|| pattern.name(view, number, side));
        let len = direction.octet_count + direction.filled_octet_count;
        let closed = name.as_ref().map_or(Ok(()), |name| files.close(name, len));
        // The index also lists a stream whose file could not be written.
        let name = name.filter(|_| closed.is_ok());
        let mut style = Style::default();
        style.nulls = Nulls::Null;
        let mut line = Vec::new();
        write_json(&mut line, &Line { view, number, side, direction, reason, file: name.as_deref() }, style);
        line.push(b'\n');
        let written = index.writer.write_all(&line);
        let written = written.map_err(|error| {
            // An index without this line would be incomplete, so it is removed.
            index.file = None;
            Failure::writing(INDEX, &error)
        });
        closed.and(written)
    }
}

impl Sink for OctetSink {
    type State = State;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        self.started_count += 1;
        let is_tcp = flow.view.key().protocol() == IpProtocol::TCP;
        if is_tcp && self.choice.selects(&flow.view, self.started_count) {
            (flow.state.number, flow.state.is_wanted) = (self.started_count, true);
        } else {
            flow.mute();
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: State) {
        if !state.is_wanted {
            return;
        }
        self.open_count -= usize::from(state.sides.is_some());
        let sides = state.sides.unwrap_or_default();
        self.lists_len -= sides.iter().map(DirectionState::heap_len).sum::<usize>();
        let initiator = view.initiator();
        for side in [initiator, initiator.other()] {
            let ended = self.end_side(view, state.number, (side, &sides[side.index()]), reason);
            self.note(ended);
        }
        if let Output::Stdout { chosen: Some(chosen), .. } = &self.output
            && chosen.number != state.number
            && sides.iter().any(|direction| direction.is_left_out)
        {
            self.other_count += 1;
        }
    }

    fn stream(&mut self, flow: &mut Flow<'_, State>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let number = flow.state.number;
        let is_taken = self.selects(&flow.view, number, side, event);
        self.open_count += usize::from(flow.state.sides.is_none());
        let direction = &mut flow.state.sides.get_or_insert_default()[side.index()];
        if !is_taken {
            direction.is_left_out |= matches!(event, StreamEvent::Chunk(_));
            return if direction.is_left_out { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        if self.is_failed() {
            return ControlFlow::Break(());
        }
        let written = write(&mut self.output, (&flow.view, number, side), direction, event);
        if let Err(failure) = written {
            self.failure = Some(failure);
            return ControlFlow::Break(());
        }
        let before = direction.heap_len();
        let has_memory = self.lists_len < self.lists_len_max;
        let mut none = 0;
        direction.note(event, if has_memory { &mut self.listable_count } else { &mut none });
        self.lists_len += direction.heap_len() - before;
        ControlFlow::Continue(())
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        self.lists_len_max = self.lists_len.saturating_add(left) / MEMORY_PART;
        (self.open_count * SIDES_LEN + self.lists_len) as u64
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.is_failed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use etherparse::PacketBuilder;
    use flowgauge::{Frame, Pipeline, Timestamp};

    use super::*;
    use crate::heap::{UNCOUNTED_LEN, peak_of};

    const LIMIT: u64 = 4 << 20;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        streams: StreamsArgs,
    }

    /// Segments of a client, of which each second octet is lost, and the acknowledgment of all of them.
    fn connection(number: u32, octet_count: u32) -> Vec<Vec<u8>> {
        let [_, a, b, c] = number.to_be_bytes();
        let frame = |is_client: bool, seq: u32, ack: Option<u32>, payload: &[u8]| {
            let mut ends = [([10, a, b, c], 40_000), ([192, 0, 2, 1], 9999)];
            if !is_client {
                ends.reverse();
            }
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(ends[0].0, ends[1].0, 64);
            let builder = builder.tcp(ends[0].1, ends[1].1, seq, 1000);
            let builder = if seq == 0 { builder.syn() } else { builder };
            let builder = if let Some(ack) = ack { builder.ack(ack) } else { builder };
            let mut frame = Vec::new();
            builder.write(&mut frame, payload).unwrap();
            frame
        };
        let mut frames = vec![frame(true, 0, None, b""), frame(false, 0, Some(1), b"")];
        frames.extend((0..octet_count).map(|octet| frame(true, 2 + 2 * octet, Some(1), b"x")));
        frames.push(frame(false, 1, Some(2 + 2 * octet_count), b"y"));
        frames
    }

    #[test]
    fn allocated_memory_is_within_the_budget() {
        for (name, connection_count, octet_count) in [("gaps", 100, 500), ("connections", 8000, 1)] {
            let out = std::env::temp_dir().join(format!("flowgauge-streams-{}-{name}", std::process::id()));
            let line = ["", "-", "--out", out.to_str().unwrap(), "--memory", &LIMIT.to_string()];
            let Line { streams: args } = Line::try_parse_from(line).unwrap();
            let sink = OctetSink::new(Choice::All, &args).unwrap();
            let mut time_ns = 0;
            let (peak, (held_max, mut sink)) = peak_of(|| {
                let mut builder = Pipeline::builder().resources(args.shared.resources());
                builder = builder.streams(args.reassembler());
                let mut pipeline = builder.build(sink).unwrap();
                let (mut lists_max, mut open_max) = (0, 0);
                for number in 0..connection_count {
                    for frame in connection(number, octet_count) {
                        time_ns += 100_000;
                        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(time_ns), &frame));
                        lists_max = lists_max.max(pipeline.sink().lists_len);
                        open_max = open_max.max(pipeline.sink().open_count);
                    }
                }
                pipeline.finish();
                ((lists_max, open_max), pipeline.into_sink())
            });
            let result = sink.finish().unwrap();
            println!("{name}: {peak} bytes, at most {held_max:?} bytes of lists and connections, {result}");
            assert!(peak <= LIMIT as usize + UNCOUNTED_LEN, "{name}: {peak} bytes");
            assert_eq!((sink.lists_len, sink.open_count), (0, 0), "{name}: what is freed is not charged");
            assert_eq!(sink.gap_count, u64::from(connection_count * octet_count), "{name}: gaps are counted");
            assert!(if name == "gaps" { held_max.0 > 300_000 } else { held_max.1 > 1000 }, "{name}");
            drop(sink);
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}
