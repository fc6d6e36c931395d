//! The pass over captures that collects what the summary and the report show.

use std::path::PathBuf;

use clap::Args;
use flowgauge::pipeline::{TransactionSink, Transactions};
use flowgauge::{Builder, Filter, PipelineStats, Sessions, Standard};

use super::facts::Facts;
use super::finding::Finding;
use super::watch::{Frames, Watched};
use crate::args::{Pages, SharedArgs, check, parse_filter};
use crate::console::{Console, Failure};
use crate::escape;
use crate::input::Input;

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
    shared: SharedArgs,
}

/// What a pass collected.
pub(super) struct Pass<K> {
    pub(super) sink: K,
    pub(super) frames: Frames,
    pub(super) stats: PipelineStats,
}

impl PassArgs {
    /// Reads the captures. `is_terminal_free` states whether a progress bar may be shown. `None` if no capture can be read, which is
    /// reported.
    pub(super) fn read<K: TransactionSink>(
        &self,
        sink: K,
        is_terminal_free: bool,
        console: &mut Console,
    ) -> Result<Option<Pass<K>>, Failure> {
        let filter: Option<Filter> = self.filter.as_deref().map(parse_filter).transpose()?;
        let resources = self.shared.resources();
        let builder: Builder =
            self.shared.builder(&resources, filter.as_ref(), Pages::Huge).encapsulation(true);
        check::<Sessions<Standard>>(&builder)?;
        let Some(input) = Input::open(&self.files, &resources, console) else { return Ok(None) };
        let mut input = input.with_progress(!self.shared.quiet && is_terminal_free);
        let mut pipeline = builder.build(Transactions::new(sink))?;
        let mut frames = Frames::default();
        let stats = input.run_with(console, |source, options| {
            let mut watched = Watched::new(source, &resources)?;
            let outcome = pipeline.run(&mut watched, options);
            frames = watched.frames;
            outcome
        })?;
        let stats = stats.unwrap_or_else(|| pipeline.stats());
        Ok(Some(Pass { sink: pipeline.into_sink().into_inner(), frames, stats }))
    }

    /// Returns the findings, with commands that read the same packets.
    pub(super) fn findings(&self, facts: &Facts, frames: &Frames, stats: &PipelineStats) -> Vec<Finding> {
        let mut findings = facts.findings(frames, stats);
        let options = self.options();
        for command in findings.iter_mut().filter_map(|finding| finding.command.as_mut()) {
            command.add(self.filter.as_deref(), &options);
        }
        findings
    }

    /// Returns the names of the captures for people: up to three, or their number.
    pub(super) fn title(&self) -> String {
        match self.names() {
            names if names.len() > 3 => format!("{} files", names.len()),
            names => names.join(", "),
        }
    }

    /// Returns the names of the captures as arguments of a command.
    pub(super) fn arguments(&self) -> String {
        self.names().iter().map(|name| escape::shell_word(name)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the other options with which packets are read, for commands.
    fn options(&self) -> String {
        self.shared.reading_options()
    }

    /// Returns all options with which packets are read, for commands.
    pub(super) fn all_options(&self) -> String {
        let filter = self.filter.as_deref().map(|filter| format!("--filter {}", escape::shell_word(filter)));
        filter
            .into_iter()
            .chain([self.options()])
            .filter(|option| !option.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.display().to_string()).collect()
    }
}
