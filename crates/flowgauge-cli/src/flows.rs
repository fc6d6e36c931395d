//! `flowgauge flows`: converts captures to flow records.

use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use flowgauge::pipeline::RecordSink;
use flowgauge::{Builder, Filter, FlowView, Flows, Resources, Sessions, Stage, Standard};

use crate::args::{Pages, ShiftArgs, Timeout, Tunnels, check, parse_count};
use crate::checkpoint::{self, CheckpointArgs};
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::{Input, InputParts, is_stdin};
use crate::interrupt;
use crate::joined::Named;
use crate::order::{MEMORY_PART, Sorted};
use crate::records::{RecordArgs, result};
use crate::several;
use flowgauge_condition::RowFilter;

/// Print one record per bidirectional flow.
///
/// Reads pcap and pcapng files, uncompressed or compressed with gzip or zstd, and merges several files in time order.
/// A flow ends when its protocol closes it, when it is idle for too long, or at the end of the input, and its record
/// is written then. `--sort` and `--top` write the records at the end of the input instead. With `--sort`, memory
/// grows with the number of flows.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge flows day1.pcap day2.pcap.gz
  flowgauge flows capture.pcap --top 10 --sort packets
  flowgauge flows capture.pcap --filter 'tcp dst port 80 or 443 and not net 10.0.0.0/8'
  flowgauge flows capture.pcap --format ipfix --to udp://192.0.2.1:4739
  flowgauge flows capture.pcap --format ndjson | jq -c 'select(.conn_state == \"S0\")'
  ssh host tcpdump -U -w - | flowgauge flows -
  flowgauge flows --checkpoint state capture*.pcap --format ndjson >> flows.ndjson

Exit status:
  0  All input was read.
  1  Some input could not be read, the output could not be written, or the memory limit omitted sorted records.
  2  The command line is invalid.")]
pub(crate) struct FlowsArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "finish")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    records: RecordArgs,

    /// Number of threads that track flows
    ///
    /// Each thread tracks a part of the flows, and one more thread reads the input. The records are the same as with
    /// one thread, but flows that end at the same time may be written in another order. Cannot be combined with
    /// `--tunnels both`.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_shards)]
    shards: NonZeroUsize,

    /// Number of threads that track parts of one uncompressed file
    ///
    /// Each thread reads and tracks a part of the octets of the file; flows that are open between two parts are tracked
    /// again there, so that the records are the same as with one thread. On many cores it is faster than `--shards`, which
    /// has one thread for reading, if most flows are short. Records are written part by part. Cannot be combined with
    /// other outputs than one list of records, `--checksums`, `--tunnels both`, and messages.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_shards)]
    #[arg(conflicts_with = "shards")]
    jobs: NonZeroUsize,

    #[command(flatten)]
    shift: ShiftArgs,

    #[command(flatten)]
    checkpoint: CheckpointArgs,
}

fn parse_shards(text: &str) -> Result<NonZeroUsize, String> {
    let count: NonZeroUsize = parse_count(text)?;
    if count.get() <= 256 { Ok(count) } else { Err("must be at most 256".to_owned()) }
}

/// Runs the command `flowgauge flows`.
pub(crate) fn run(args: &FlowsArgs, console: &mut Console) -> Result<(), Failure> {
    let is_sorted = args.records.output.is_sorted(args.records.series.is_used())?;
    args.records.joined.check_threads(args.shards.get() > 1)?;
    args.records.check(false)?;
    if args.records.is_several() && (args.shards.get() > 1 || is_sorted) {
        let usage = "--write and the formats zeek, zeek-json and eve cannot be combined with --sort, --top or --shards";
        return Err(Failure::Usage(usage.to_owned()));
    }
    if args.records.series.is_used() && args.shards.get() > 1 {
        return Err(Failure::Usage("--time-series cannot be combined with --shards".to_owned()));
    }
    if args.shards.get() > 1 && args.records.tunnels() == Tunnels::Both {
        // Linked flows may belong to different shards.
        return Err(Failure::Usage("--tunnels both cannot be combined with --shards".to_owned()));
    }
    let has_others = is_sorted
        || args.shards.get() > 1
        || args.records.is_several()
        || args.records.series.is_used()
        || args.records.joined.is_wanted()
        || args.records.output.groups.is_used();
    let others = "--sort, --top, --shards, --write, --features, --label, --server-name, --names, --geoip, groups and --time-series";
    args.checkpoint.check(args.records.output.format(), (others, has_others))?;
    args.shift.exclude("--checkpoint", args.checkpoint.is_used())?;
    args.shift.exclude("--jobs", args.jobs.get() > 1)?;
    if args.jobs.get() > 1 {
        args.check_jobs(has_others)?;
    }
    let filter = args.records.filter()?;
    let resources = args.records.shared.resources();
    let pages = if args.shards.get().max(args.jobs.get()) == 1 { Pages::Huge } else { Pages::Ordinary };
    let builder = args.records.builder(&resources, filter.as_ref(), Timeout(None), pages);
    // Most filters depend on the key alone and are applied before the flow table.
    let run = Run { args, resources, filter: filter.as_ref().filter(|filter| !filter.is_final()) };
    match args.records.sessions(false) {
        Some(config) => run.run::<Sessions<Standard>>(&builder.sessions(config), console),
        None => run.run::<Flows>(&builder, console),
    }
}

impl FlowsArgs {
    /// Returns an error if the options or the files exclude `--jobs`.
    fn check_jobs(&self, has_others: bool) -> Result<(), Failure> {
        let refuse = |reason: &str| Err(Failure::Usage(format!("--jobs {reason}")));
        if has_others {
            return refuse(
                "cannot be combined with --sort, --top, --write, --features, --label, --server-name, --names, --geoip, groups and \
                 --time-series",
            );
        }
        if self.checkpoint.is_used() {
            return refuse("cannot be combined with --checkpoint");
        }
        if self.records.tunnels() == Tunnels::Both {
            return refuse(
                "cannot be combined with --tunnels both, because linked flows may belong to different parts",
            );
        }
        if self.records.shared.dedup.dedup.is_some() {
            return refuse("cannot be combined with --dedup, because duplicates may be in different parts");
        }
        if self.records.verifies_checksums() {
            return refuse("cannot be combined with --checksums");
        }
        if self.records.sessions(false).is_some_and(|config| !config.is_naming_only) {
            return refuse("cannot be combined with output that needs messages");
        }
        match self.files.as_slice() {
            [file] if !is_stdin(file) => Ok(()),
            _ => refuse("requires one file"),
        }
    }
}

struct Run<'a> {
    args: &'a FlowsArgs,
    resources: Resources,
    /// The part of the filter expression that applies to complete flows.
    filter: Option<&'a Filter>,
}

impl Run<'_> {
    /// Continues the flows of a checkpoint.
    fn continue_flows<G: Stage>(
        &self,
        builder: &Builder,
        started_at: Instant,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let (records, files) = (&self.args.records, self.args.files.as_slice());
        let mut rows = records.output.rows(files, false)?;
        let (command, args) = ("flows", &self.args.checkpoint);
        let has_bar = !records.shared.quiet && !io::stdout().is_terminal();
        let origin = checkpoint::Origin::Files(files, &self.resources, has_bar);
        let run = checkpoint::Run { command, args, builder };
        let outcome = run.run(RecordSink::<G>::new(&mut rows).with_filter(self.filter), origin, console);
        // The failure of the output is the first one.
        let written = rows.finish()?;
        let outcome = outcome?;
        let (stats, source) = (&outcome.stats, &outcome.source);
        if !records.shared.quiet {
            let flows = plural(stats.tracker.started_count, "new flow");
            let written = format!("{} written{}", plural(written.row_count, "record"), written.note());
            let result = outcome.describe(format!("{flows}, {written}"));
            records.summary.write(stats, source, started_at.elapsed(), &result);
        }
        Ok(())
    }

    /// Tracks the flows of a file in parts.
    fn track_parts<G: Stage>(
        &self,
        builder: &Builder,
        started_at: Instant,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let (records, files) = (&self.args.records, self.args.files.as_slice());
        let Some(path) = files.first() else { return Ok(()) };
        let Some(input) = InputParts::open(path, &self.resources, console) else { return Ok(()) };
        let is_quiet = records.shared.quiet;
        let mut input = input.with_progress(!is_quiet && !io::stdout().is_terminal());
        let mut rows = records.output.rows(files, false)?;
        let stats = input.run_with(console, |parts, options| {
            let wants = |view: &FlowView<'_>| self.filter.is_none_or(|filter| filter.matches_flow(view));
            builder.run_parts::<G>(self.args.jobs.get(), parts, options, wants, |record| {
                rows.write(&record);
                if rows.flush_stream().is_break() {
                    interrupt::stop().stop();
                }
            })
        })?;
        let written = rows.finish()?;
        if let Some(stats) = stats.filter(|_| !is_quiet) {
            let result = result(&stats, &written);
            records.summary.write(&stats, &input.stats(), started_at.elapsed(), &result);
        }
        Ok(())
    }

    fn run<G: Named>(&self, builder: &Builder, console: &mut Console) -> Result<(), Failure> {
        let started_at = Instant::now();
        check::<G>(builder)?;
        let records = &self.args.records;
        let has_own = records.joined.is_wanted();
        let rows_filter = if has_own { RowFilter::default() } else { records.output.selection.filter()? };
        // Refused before anything is read.
        let sorted: Option<Sorted> = self.args.records.output.sorted(&rows_filter)?;
        let files = &self.args.files;
        if self.args.checkpoint.is_used() {
            return self.continue_flows::<G>(builder, started_at, console);
        }
        if self.args.jobs.get() > 1 {
            return self.track_parts::<G>(builder, started_at, console);
        }
        let Some(input) = Input::open(files, &self.resources, console) else { return Ok(()) };
        let is_quiet = self.args.records.shared.quiet;
        // A progress bar would interfere with rows that are written to the same terminal.
        let is_terminal_free = sorted.is_some() || !io::stdout().is_terminal();
        let mut input = input.shifted(&self.args.shift).with_progress(!is_quiet && is_terminal_free);
        let args = &self.args.records;
        if args.is_several() {
            let pipeline = (builder, self.filter);
            let (stats, written) = several::write_flows(args, files, pipeline, &mut input, console)?;
            if !is_quiet {
                records.summary.write(
                    &stats,
                    &input.stats(),
                    started_at.elapsed(),
                    &result(&stats, &written),
                );
            }
            return Ok(());
        }
        if args.series.is_used() {
            let (target, pipeline) = (args.output.group_target()?, (builder, self.filter));
            let (stats, _) = args.series.run::<G>(target, rows_filter, pipeline, &mut input, console)?;
            if !is_quiet {
                let flows = plural(stats.tracker.started_count, "flow");
                records.summary.write(&stats, &input.stats(), started_at.elapsed(), &flows);
            }
            return Ok(());
        }
        if args.joined.is_wanted() {
            let pipeline = (builder, self.filter);
            let (stats, written) = args.joined.run::<G>(&args.output, pipeline, &mut input, console)?;
            if !is_quiet {
                records.summary.write(
                    &stats,
                    &input.stats(),
                    started_at.elapsed(),
                    &result(&stats, &written),
                );
            }
            return Ok(());
        }
        let mut rows = args.output.rows(files, input.is_stream())?;
        let stats = match (sorted, self.args.shards.get()) {
            // Rows of long input are written on a thread of their own, even if only one thread tracks flows.
            (None, shard_count) if shard_count > 1 || input.is_long() => {
                input.run_with(console, |source, options| {
                    let wants =
                        |view: &FlowView<'_>| self.filter.is_none_or(|filter| filter.matches_flow(view));
                    builder.run_records::<G>(shard_count, source, options, wants, |record| {
                        rows.write(&record);
                        if rows.flush_stream().is_break() {
                            interrupt::stop().stop();
                        }
                    })
                })?
            }
            (None, _) => {
                let pipeline = builder.build(RecordSink::<G>::new(&mut rows).with_filter(self.filter))?;
                Some(input.run(pipeline, console)?)
            }
            (Some(mut sorted), 1) => {
                sorted.set_held_max(self.resources.limits.total_bytes_max / MEMORY_PART);
                let pipeline = builder.build(RecordSink::<G>::new(&mut sorted).with_filter(self.filter))?;
                let stats = input.run(pipeline, console)?;
                rows.unmatched_before(sorted.unmatched());
                Sorted::problem([&sorted].into_iter())
                    .into_iter()
                    .for_each(|problem| console.problem(problem));
                rows.write_all(sorted.into_records());
                Some(stats)
            }
            (Some(_), shard_count) => {
                let mut all: Vec<Sorted> = (0..shard_count)
                    .filter_map(|_| self.args.records.output.sorted(&rows_filter).ok().flatten())
                    .collect();
                let held_max = self.resources.limits.total_bytes_max / MEMORY_PART / all.len().max(1) as u64;
                all.iter_mut().for_each(|sorted| sorted.set_held_max(held_max));
                let sinks =
                    all.iter_mut().map(|sorted| RecordSink::<G>::new(sorted).with_filter(self.filter));
                let stats =
                    input.run_with(console, |source, options| builder.run_shards(sinks, source, options))?;
                Sorted::problem(all.iter()).into_iter().for_each(|problem| console.problem(problem));
                rows.write_all(Sorted::merge(all));
                stats
            }
        };
        let written = rows.finish()?;
        if let Some(stats) = stats.filter(|_| !is_quiet) {
            records.summary.write(&stats, &input.stats(), started_at.elapsed(), &result(&stats, &written));
        }
        Ok(())
    }
}
