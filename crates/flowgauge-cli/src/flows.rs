//! `flowgauge flows`: converts captures to flow records.

mod sinks;

use std::io::{self, IsTerminal as _};
use std::time::Instant;

use flowgauge::decode::fragment::PoolConfig;
use flowgauge::{
    Builder, DriverConfig, Filter, FlowView, Flows, KeyPolicy, PipelineStats, Resources, Sessions, SortKey,
    Stage, Standard,
};

use crate::args::{Applications, FlowsArgs, Format, Timeout, Tunnels, check, parse_filter};
use crate::choice::matches;
use crate::console::{Console, Failure};
use crate::formats::Writer;
use crate::human::plural;
use crate::input::Input;
use crate::interrupt;
use crate::order::{Order, Sorted};
use crate::rows::Rows;
use crate::summary;
use sinks::{RowSink, SortedSink};

/// Runs the command `flowgauge flows`.
pub(crate) fn run(args: &FlowsArgs, console: &mut Console) -> Result<(), Failure> {
    if args.reverse && args.sort.is_none() && args.top.is_none() {
        return Err(Failure::Usage("--reverse requires --sort or --top".to_owned()));
    }
    if args.shards.get() > 1 && args.tunnels == Tunnels::Both {
        // Linked flows may belong to different shards.
        return Err(Failure::Usage("--tunnels both cannot be combined with --shards".to_owned()));
    }
    args.export.check(args.format)?;
    if args.format == Format::Ipfix && args.fields.is_some() {
        return Err(Failure::Usage("--fields cannot be combined with --format ipfix".to_owned()));
    }
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let resources = args.shared.resources();
    let builder = args.builder(&resources, filter.as_ref());
    // Most filters depend on the key alone and are applied before the flow table.
    let run = Run { args, resources, filter: filter.as_ref().filter(|filter| !filter.is_final()) };
    if args.names_applications() {
        let mut naming = DriverConfig::default();
        naming.is_naming_only = true;
        run.run::<Sessions<Standard>>(&builder.sessions(naming), console)
    } else {
        run.run::<Flows>(&builder, console)
    }
}

impl FlowsArgs {
    fn names_applications(&self) -> bool {
        match self.application {
            Applications::Always => true,
            Applications::Never => false,
            Applications::Auto => match &self.fields {
                Some(fields) => fields.have_application(),
                None => self.format != Format::Table,
            },
        }
    }

    fn builder(&self, resources: &Resources, filter: Option<&Filter>) -> Builder {
        let mut pool = PoolConfig::default();
        pool.policy = self.fragment_policy;
        let mut key_policy = KeyPolicy::DEFAULT;
        key_policy.decapsulation = self.tunnels.into();
        let builder = self.shared.builder(resources, filter);
        let builder = builder
            .key_policy(key_policy)
            .fragments(self.fragments.into())
            .fragment_pool(pool)
            .checksums(self.checksums.into())
            .encapsulation(self.encapsulation);
        // Flows of an interface may continue for as long as the command runs.
        #[cfg(feature = "live")]
        let default = self.interface.as_ref().map(|_| std::time::Duration::from_secs(1800));
        #[cfg(not(feature = "live"))]
        let default = None;
        match self.active_timeout.map_or(default, |Timeout(timeout)| timeout) {
            Some(timeout) => builder.active_timeout(timeout),
            None => builder,
        }
    }

    /// Returns an empty list for flows in the requested order; `None` if flows are written as they end.
    fn sorted(&self) -> Option<Sorted> {
        let limit = self.top.map_or(usize::MAX, std::num::NonZero::get);
        let is_wanted = self.sort.is_some() || self.top.is_some();
        let order = Order { key: self.sort.unwrap_or(SortKey::Octets), is_reversed: self.reverse };
        is_wanted.then(|| Sorted::new(order, limit))
    }
}

struct Run<'a> {
    args: &'a FlowsArgs,
    resources: Resources,
    /// The part of the filter expression that applies to complete flows.
    filter: Option<&'a Filter>,
}

impl Run<'_> {
    fn run<G: Stage>(&self, builder: &Builder, console: &mut Console) -> Result<(), Failure> {
        let started_at = Instant::now();
        check::<G>(builder)?;
        let Some(input) = self.open(console)? else { return Ok(()) };
        let (sorted, is_quiet) = (self.args.sorted(), self.args.shared.quiet);
        // A progress bar would interfere with rows that are written to the same terminal.
        let is_terminal_free = sorted.is_some() || !io::stdout().is_terminal();
        let mut input = input.with_progress(!is_quiet && is_terminal_free);
        let args = self.args;
        let writer = Writer::open(args.format, args.fields.as_ref(), &args.export, &args.files)?;
        let rows = Rows::new(writer, input.is_stream());
        let (stats, rows) = match (sorted, self.args.shards.get()) {
            (None, 1) => {
                let mut pipeline = builder.build(RowSink::<G>::new(rows, self.filter))?;
                (Some(input.run(&mut pipeline, console)?), pipeline.into_sink().into_rows())
            }
            (None, shard_count) => {
                let mut rows = rows;
                let stats = input.run_with(console, |source, options| {
                    let wants = |view: &FlowView<'_>| self.filter.is_none_or(|filter| matches(filter, view));
                    builder.run_records::<G>(shard_count, source, options, wants, |record| {
                        rows.write(&record);
                        if rows.flush_stream().is_break() {
                            interrupt::stop().stop();
                        }
                    })
                })?;
                (stats, rows)
            }
            (Some(sorted), 1) => {
                let mut pipeline = builder.build(SortedSink::<G>::new(sorted, self.filter))?;
                let stats = input.run(&mut pipeline, console)?;
                (Some(stats), rows.with_all(pipeline.into_sink().into_sorted().into_records()))
            }
            (Some(_), shard_count) => {
                let sorted = (0..shard_count).filter_map(|_| self.args.sorted());
                let mut sinks: Vec<_> =
                    sorted.map(|sorted| SortedSink::<G>::new(sorted, self.filter)).collect();
                let stats = input
                    .run_with(console, |source, options| builder.run_shards(&mut sinks, source, options))?;
                let sorted = sinks.into_iter().map(SortedSink::into_sorted).collect();
                (stats, rows.with_all(Sorted::merge(sorted)))
            }
        };
        let record_count = rows.finish()?;
        if let Some(stats) = stats.filter(|_| !is_quiet) {
            summary::write(&stats, &input.stats(), started_at.elapsed(), &result(&stats, record_count));
        }
        Ok(())
    }

    fn open(&self, console: &mut Console) -> Result<Option<Input>, Failure> {
        #[cfg(feature = "live")]
        if let Some(name) = &self.args.interface {
            return open_interface(name, self.args.duration).map(Some);
        }
        Ok(Input::open(&self.args.files, &self.resources, console))
    }
}

#[cfg(feature = "live")]
fn open_interface(name: &str, duration: Option<std::time::Duration>) -> Result<Input, Failure> {
    use flowgauge::{ErrorPolicy, LiveConfig, LiveSource};
    let source =
        LiveSource::open(name, LiveConfig::default()).map_err(|error| Failure::Other(error.to_string()))?;
    if let Some(duration) = duration {
        let stop = source.stop_handle();
        std::thread::spawn(move || {
            std::thread::sleep(duration);
            stop.stop();
        });
    }
    Ok(Input::new(Box::new(source), ErrorPolicy::End))
}

/// Returns the description of the run's output for the summary.
fn result(stats: &PipelineStats, record_count: u64) -> String {
    let flows = plural(stats.tracker.started_count, "flow");
    match (record_count, stats.tracker.started_count) {
        (written, started) if written == started => flows,
        (written, _) => format!("{flows}, {} written", plural(written, "record")),
    }
}
