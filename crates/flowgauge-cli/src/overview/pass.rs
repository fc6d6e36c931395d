//! The pass over captures that collects what the summary and the report show.

use std::path::PathBuf;

use clap::Args;
use flowgauge::pipeline::{TransactionSink, Transactions, boxed};
use flowgauge::{Builder, Filter, Resources, Sessions, Sink, Source, Standard};
use flowgauge_summary::text::{shell_file, shell_word};
use flowgauge_summary::{Collector, Facts, Finding, Frames, Totals, Watch};

use super::continued::{Continued, Earlier};
use super::selected::Selected;
use crate::args::{Pages, SharedArgs, ShiftArgs, check, parse_filter};
use crate::checkpoint::{self, CheckpointArgs};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::input::Input;
use crate::interrupt;

/// Captures, and how they are read.
#[derive(Debug, Args)]
pub(super) struct PassArgs {
    /// Capture files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,

    /// Show only packets that match an expression, as in pcap-filter(7)
    #[arg(long, short = 'F', value_name = "EXPR")]
    filter: Option<String>,

    #[command(flatten)]
    shift: ShiftArgs,

    #[command(flatten)]
    shared: SharedArgs,
}

/// What a pass collected.
pub(super) struct Pass<K> {
    pub(super) sink: K,
    pub(super) frames: Frames,
    pub(super) totals: Totals,
}

/// How captures are read.
struct Run {
    builder: Builder,
    resources: Resources,
    is_terminal_free: bool,
}

impl PassArgs {
    /// Reads the captures, twice if the filter needs complete flows. `is_terminal_free` states whether a progress bar may be
    /// shown. `None` if no capture can be read, which is reported.
    pub(super) fn read<K: TransactionSink>(
        &self,
        sink: K,
        is_terminal_free: bool,
        console: &mut Console,
    ) -> Result<Option<Pass<K>>, Failure>
    where
        K::State: 'static,
    {
        let (run, choice) = self.prepared(is_terminal_free)?;
        if matches!(choice, Choice::All) {
            let mut sink = Transactions::new(sink);
            let counts = self.run(boxed(&mut sink), &run, console)?;
            return Ok(counts.map(|(frames, totals)| Pass { sink: sink.into_inner(), frames, totals }));
        }
        self.read_selected(sink, choice, &run, console)
    }

    /// Reads the captures as [`read`](Self::read) does, for a summary. The pipeline is that which also continues from a
    /// checkpoint, so that this most frequent pass calls its sink directly.
    pub(super) fn collect(
        &self,
        is_terminal_free: bool,
        console: &mut Console,
    ) -> Result<Option<Pass<Collector>>, Failure> {
        let (run, choice) = self.prepared(is_terminal_free)?;
        if matches!(choice, Choice::All) {
            let mut sink = Transactions::new(Continued::default());
            let counts = self.run(&mut sink, &run, console)?;
            return Ok(counts.map(|(frames, totals)| {
                let sink = sink.into_inner().collector;
                Pass { sink, frames, totals }
            }));
        }
        self.read_selected(Collector::default(), choice, &run, console)
    }

    /// Reads the flows that a filter selects.
    fn read_selected<K: TransactionSink>(
        &self,
        sink: K,
        choice: Choice,
        run: &Run,
        console: &mut Console,
    ) -> Result<Option<Pass<K>>, Failure>
    where
        K::State: 'static,
    {
        let mut sink = Transactions::new(Selected::new(sink, choice));
        let counts = self.run(boxed(&mut sink), run, console)?;
        Ok(counts.map(|(frames, mut totals)| {
            let Selected { inner, flow_count, .. } = sink.into_inner();
            totals.flow_count = flow_count;
            Pass { sink: inner, frames, totals }
        }))
    }

    /// Returns how the captures are read, and which of their flows.
    fn prepared(&self, is_terminal_free: bool) -> Result<(Run, Choice), Failure> {
        let filter: Option<Filter> = self.filter.as_deref().map(parse_filter).transpose()?;
        let resources = self.shared.resources();
        let builder = self.builder(&resources, filter.as_ref())?;
        let choice =
            Choice::new(&[], filter.as_ref(), (&self.files, Some(&self.shift)), (&builder, &resources))?;
        Ok((Run { builder, resources, is_terminal_free }, choice))
    }

    /// Reads the captures once. Returns what their frames are, and what the pipeline counted.
    fn run<K: Sink<Stage = Sessions<Standard>>>(
        &self,
        sink: K,
        Run { builder, resources, is_terminal_free }: &Run,
        console: &mut Console,
    ) -> Result<Option<(Frames, Totals)>, Failure> {
        let Some(input) = Input::open(&self.files, resources, console) else { return Ok(None) };
        let mut input = input.shifted(&self.shift).with_progress(!self.shared.quiet && *is_terminal_free);
        let mut pipeline = builder.build(sink)?;
        let watch = Watch::new(resources)?;
        let stats = input.run_with(console, |source, options| {
            let source: &mut dyn Source = &mut watch.source(source);
            pipeline.run(source, options)
        })?;
        let mut totals = Totals::default();
        totals.add(&stats.unwrap_or_else(|| pipeline.stats()));
        Ok(Some((watch.frames(), totals)))
    }

    /// Reads the captures without the packets that are in a checkpoint, which is replaced. Returns the facts of all runs, and
    /// what they counted; flows that are open in the checkpoint have ended in these.
    pub(super) fn continued(
        &self,
        args: &CheckpointArgs,
        is_terminal_free: bool,
        console: &mut Console,
    ) -> Result<(Facts, Earlier), Failure> {
        self.shift.exclude("--checkpoint", true)?;
        let filter: Option<Filter> = self.filter.as_deref().map(parse_filter).transpose()?;
        if filter.as_ref().is_some_and(|filter| !filter.is_final()) {
            let usage =
                "--checkpoint requires a filter without src, dst and vlan, which apply to whole flows";
            return Err(Failure::Usage(usage.to_owned()));
        }
        let resources = self.shared.resources();
        let builder = self.builder(&resources, filter.as_ref())?;
        let watch = Watch::new(&resources)?;
        let mut sink = Transactions::new(Continued::new(watch.clone(), self.names()));
        let has_bar = !self.shared.quiet && is_terminal_free;
        let origin = checkpoint::Origin::Within(
            &self.files,
            &resources,
            has_bar,
            Box::new(move |source| Box::new(watch.source(source))),
        );
        let run = checkpoint::Run { command: "summary", args, builder: &builder };
        let mut outcome = run.run(&mut sink, origin, console)?;
        let mut copy = Transactions::new(Continued::default());
        if let Some(stats) = run.ended(&outcome, &mut copy)? {
            (sink, outcome.stats) = (copy, stats);
        }
        let counted = sink.inner().counted(&outcome.stats);
        Ok((sink.into_inner().collector.facts, counted))
    }

    fn builder(&self, resources: &Resources, filter: Option<&Filter>) -> Result<Builder, Failure> {
        let builder = self.shared.builder(resources, filter, Pages::Huge).encapsulation(true);
        check::<Sessions<Standard>>(&builder)?;
        Ok(builder)
    }

    /// Returns the findings, with commands that read the same packets.
    pub(super) fn findings(&self, facts: &Facts, frames: &Frames, totals: &Totals) -> Vec<Finding> {
        let mut findings = facts.findings(frames, totals);
        let options = self.options();
        for command in findings.iter_mut().filter_map(|finding| finding.command.as_mut()) {
            command.add(self.filter.as_deref(), &options);
        }
        findings
    }

    /// Returns the other options with which packets are read, for commands.
    fn options(&self) -> String {
        self.shared.reading_options()
    }

    /// Returns all options with which packets are read, for commands.
    pub(super) fn all_options(&self) -> String {
        let filter = self.filter.as_deref().map(|filter| format!("--filter {}", shell_word(filter)));
        filter
            .into_iter()
            .chain([self.options()])
            .filter(|option| !option.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns whether packets are selected by a filter.
    pub(super) const fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Returns whether only results are wanted.
    pub(super) const fn is_quiet(&self) -> bool {
        self.shared.quiet
    }

    /// Returns the names of the captures.
    pub(super) fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.display().to_string()).collect()
    }
}

/// Returns why not all input was read, for people; `None` if it was.
pub(super) fn lack(console: &Console) -> Option<String> {
    let problem = console.first_problem().map(|(problem, other_count)| match other_count {
        0 => format!("Incomplete: {problem}"),
        count => format!("Incomplete, for this and {count} more: {problem}"),
    });
    let interruption =
        interrupt::code().map(|_| "Interrupted: the rest of the input was not read".to_owned());
    match (interruption, problem) {
        (Some(interruption), Some(problem)) => Some(format!("{interruption}. {problem}")),
        (interruption, problem) => interruption.or(problem),
    }
}

/// Returns the names of captures for people: up to three, or their number.
pub(super) fn title(names: &[String]) -> String {
    if names.len() > 3 { format!("{} files", names.len()) } else { names.join(", ") }
}

/// Returns the names of captures as arguments of a command.
pub(super) fn arguments(names: &[String]) -> String {
    names.iter().map(|name| shell_file(name)).collect::<Vec<_>>().join(" ")
}
