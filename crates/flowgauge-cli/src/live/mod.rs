//! `flowgauge live`: flow records of interfaces, mirror sessions and remote captures.

mod args;
mod monitor;
mod opening;
mod origin;
mod recorder;
#[cfg(feature = "view")]
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flowgauge::export::Format;
use flowgauge::pipeline::RecordSink;
use flowgauge::source::SourceStats;
use flowgauge::{Builder, ErrorPolicy, Filter, Flows, PipelineStats, Resources, Sessions, Stage, Standard};

use crate::args::{Pages, Timeout, check};
use crate::checkpoint::{self, Origin};
use crate::console::{Console, Failure, write_line};
use crate::human::plural;
use crate::input::Input;
use crate::interrupt;
use crate::joined::Named;
use crate::records::result;
use crate::several;
pub(crate) use args::LiveArgs;
use args::ViewChoice;
pub(crate) use monitor::Monitor;
use recorder::Recorder;

/// Default of `--active-timeout`: flows may continue for as long as the command runs.
const ACTIVE_TIMEOUT: Timeout = Timeout(Some(Duration::from_secs(1800)));

/// Runs the command `flowgauge live`.
pub(crate) fn run(args: &LiveArgs, console: &mut Console) -> Result<(), Failure> {
    args.records.check(true)?;
    let has_others = args.records.is_several()
        || args.records.written.frames().is_some()
        || args.records.series.is_used()
        || args.records.joined.is_wanted()
        || args.records.output.groups.is_used();
    let others = "--write, --features, --label, --server-name, --names, --geoip, groups and --time-series";
    args.checkpoint.check(args.records.output.format(), (others, has_others))?;
    let filter = args.records.filter()?;
    let resources = args.records.shared.resources();
    let is_view = cfg!(feature = "view")
        && args.view == ViewChoice::Auto
        && !args.records.has_rows()
        && args.records.output.format().library() == Some(Format::Table)
        && args.records.output.fields.is_none()
        && io::stdin().is_terminal()
        && io::stdout().is_terminal();
    // A record would begin the counts of a flow in the view again.
    let active_timeout = if is_view { Timeout(None) } else { ACTIVE_TIMEOUT };
    let builder = args.records.builder(&resources, filter.as_ref(), active_timeout, Pages::Ordinary);
    let flow_filter = filter.as_ref().filter(|filter| !filter.is_final());
    let run = Run { args, resources: &resources, filter: flow_filter, is_view };
    match args.records.sessions(is_view) {
        Some(config) => run.run::<Sessions<Standard>>(&builder.sessions(config), console),
        None => run.run::<Flows>(&builder, console),
    }
}

struct Run<'a> {
    args: &'a LiveArgs,
    resources: &'a Resources,
    /// The part of the filter expression that applies to complete flows.
    filter: Option<&'a Filter>,
    is_view: bool,
}

impl Run<'_> {
    fn run<G: Named>(&self, builder: &Builder, console: &mut Console) -> Result<(), Failure> {
        check::<G>(builder)?;
        let Self { args, is_view, .. } = *self;
        let is_quiet = args.records.shared.quiet;
        let source = args.open(self.resources)?;
        let recorder = Arc::new(Mutex::new(Recorder::open(args)?));
        let monitor = Monitor::new(source, Arc::clone(&recorder), is_quiet || is_view);
        if !is_quiet && !is_view {
            write_line(&format!("flowgauge: capturing on {}", args.origin()));
        }
        let started_at = Instant::now();
        if let Some(duration) = args.duration {
            interrupt::stop_after(duration);
        }
        let (stats, source_stats, result) = if is_view {
            self.show::<G>(builder, monitor, console)?
        } else {
            self.write_records::<G>(builder, monitor, console)?
        };
        let recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        recorder.map_or(Ok(()), Recorder::finish)?;
        if !is_quiet {
            args.records.summary.write(&stats, &source_stats, started_at.elapsed(), &result);
        }
        Ok(())
    }

    /// Shows the view until the end. Returns the counters, and a description of the output.
    #[cfg(feature = "view")]
    fn show<G: Named>(
        &self,
        builder: &Builder,
        mut monitor: Monitor,
        console: &mut Console,
    ) -> Result<(PipelineStats, SourceStats, String), Failure> {
        use flowgauge::Source as _;

        let view = view::View { origin: &self.args.origin(), resources: self.resources, filter: self.filter };
        let stats = view.run::<G>(builder, &mut monitor, console)?;
        let flows = plural(stats.tracker.started_count, "flow");
        Ok((stats, monitor.stats(), flows))
    }

    /// Writes records, because the program has no view.
    #[cfg(not(feature = "view"))]
    fn show<G: Named>(
        &self,
        builder: &Builder,
        monitor: Monitor,
        console: &mut Console,
    ) -> Result<(PipelineStats, SourceStats, String), Failure> {
        self.write_records::<G>(builder, monitor, console)
    }

    /// Continues the flows of a checkpoint until the end. Returns the counters, and a description of the output.
    fn continue_flows<G: Stage>(
        &self,
        builder: &Builder,
        monitor: Monitor,
        console: &mut Console,
    ) -> Result<(PipelineStats, SourceStats, String), Failure> {
        let mut rows = self.args.records.output.rows(&[], true)?;
        let run = checkpoint::Run { command: "live", args: &self.args.checkpoint, builder };
        let sink = RecordSink::<G>::new(&mut rows).with_filter(self.filter);
        let outcome = run.run(sink, Origin::Live(Box::new(monitor)), console);
        // The failure of the output is the first one.
        let written = rows.finish()?;
        let checkpoint::Outcome { stats, source, .. } = outcome?;
        let flows = plural(stats.tracker.started_count, "new flow");
        Ok((stats, source, format!("{flows}, {} written", plural(written.row_count, "record"))))
    }

    /// Writes records until the end. Returns the counters, and a description of the output.
    fn write_records<G: Named>(
        &self,
        builder: &Builder,
        monitor: Monitor,
        console: &mut Console,
    ) -> Result<(PipelineStats, SourceStats, String), Failure> {
        let records = &self.args.records;
        let monitor =
            if records.has_only_standard_output() { monitor.until_output_is_closed() } else { monitor };
        if self.args.checkpoint.is_used() {
            return self.continue_flows::<G>(builder, monitor, console);
        }
        let mut input = Input::new(Box::new(monitor), ErrorPolicy::End);
        if records.is_several() {
            let pipeline = (builder, self.filter);
            let (stats, written) = several::write_flows(records, &[], pipeline, &mut input, console)?;
            let result = result(&stats, &written);
            return Ok((stats, input.stats(), result));
        }
        if records.series.is_used() {
            let (target, rows) = (records.output.group_target()?, records.output.selection.filter()?);
            let pipeline = (builder, self.filter);
            let (stats, _) = records.series.run::<G>(target, rows, pipeline, &mut input, console)?;
            let result = plural(stats.tracker.started_count, "flow");
            return Ok((stats, input.stats(), result));
        }
        if records.joined.is_wanted() {
            let pipeline = (builder, self.filter);
            let (stats, written) = records.joined.run::<G>(&records.output, pipeline, &mut input, console)?;
            let result = result(&stats, &written);
            return Ok((stats, input.stats(), result));
        }
        let mut rows = records.output.rows(&[], true)?;
        let pipeline = builder.build(RecordSink::<G>::new(&mut rows).with_filter(self.filter))?;
        let stats = input.run(pipeline, console)?;
        let written = rows.finish()?;
        let result = result(&stats, &written);
        Ok((stats, input.stats(), result))
    }
}
