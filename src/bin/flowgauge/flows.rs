//! `flowgauge flows`: from captures to records.

mod sharded;
mod tracking;

use std::io::{self, BufWriter, IsTerminal as _};
use std::time::Instant;

use flowgauge::base::{Application, EndReason};
use flowgauge::filter::Filter;
use flowgauge::fragment::PoolConfig;
use flowgauge::pipeline::{ConfigError, Pipeline, PipelineStats};
use flowgauge::tracker::{FlowView, TrackerConfig};

use crate::args::{FlowsArgs, SortField, Timeout, parse_filter};
use crate::choice::is_wanted;
use crate::console::{Console, Failure};
use crate::formats::Writer;
use crate::human::plural;
use crate::input::Input;
use crate::order::{Order, Sorted};
use crate::summary;
use tracking::{Take, Taking, Tracking};

/// Runs the command.
pub(crate) fn run(args: FlowsArgs, console: &mut Console) -> Result<(), Failure> {
    if args.reverse && args.sort.is_none() && args.top.is_none() {
        return Err(Failure::Usage("--reverse goes with --sort or --top".to_owned()));
    }
    let begun = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let config = config(&args);
    if args.shards.get() > 1 {
        return sharded::run(&args, filter, &config, console);
    }
    let mut pipeline = Tracking::new(&args, filter.as_ref(), &config).map_err(usage)?;
    #[cfg(feature = "live")]
    let opened = match &args.interface {
        Some(name) => Some(listen(name, args.duration)?),
        None => Input::open(&args.files, &config, console),
    };
    #[cfg(not(feature = "live"))]
    let opened = Input::open(&args.files, &config, console);
    let Some(opened) = opened else { return Ok(()) };
    let out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut sink = Taking(RecordSink {
        filter: filter.filter(|filter| !filter.is_final()),
        sorted: sorted(&args),
        writer: Writer::new(args.format, Box::new(out))?,
        record_count: 0,
        flushed_count: 0,
        outcome: Ok(()),
    });
    // Rows that are written meanwhile to the same terminal would get in the way of a bar.
    let is_quiet_meanwhile = sink.0.sorted.is_some() || !io::stdout().is_terminal();
    let mut input = opened.with_progress(!args.quiet && is_quiet_meanwhile);
    let is_stream = input.is_stream();

    input.each_batch(console, |batch, _interfaces| {
        pipeline.batch(batch, &mut sink);
        #[cfg(feature = "live")]
        if args.interface.is_some() && batch.is_empty() {
            pipeline.advance(now(), &mut sink);
        }
        sink.0.check(is_stream)
    })?;
    pipeline.finish(&mut sink);
    let record_count = sink.0.finish()?;
    if !args.quiet {
        let stats = pipeline.stats();
        summary::write(&stats, &input.stats(), begun.elapsed(), &result(&stats, record_count));
    }
    Ok(())
}

/// What came of it, for the summary.
fn result(stats: &PipelineStats, record_count: u64) -> String {
    let flows = plural(stats.tracker.started_count, "flow");
    match (record_count, stats.tracker.started_count) {
        (written, started) if written == started => flows,
        (written, _) => format!("{flows}, {} written", plural(written, "record")),
    }
}

/// A mistake in what was asked for.
fn usage(error: ConfigError) -> Failure {
    Failure::Usage(error.to_string())
}

/// A pipeline as asked for. All that are made with clones of a configuration have one account of memory.
fn pipeline<S: Default>(
    args: &FlowsArgs,
    filter: Option<&Filter>,
    config: &TrackerConfig,
) -> Result<Pipeline<S>, ConfigError> {
    let pipeline =
        Pipeline::new(config.clone())?.with_fragments(args.fragments.into(), pool(args, config))?;
    let pipeline = args.dedup.apply(pipeline, &config.budget)?;
    let pipeline = pipeline.with_checksums(args.checksums.into()).with_encapsulation(args.encapsulation);
    Ok(match filter {
        Some(filter) => pipeline.with_filter(filter.clone()),
        None => pipeline,
    })
}

fn config(args: &FlowsArgs) -> TrackerConfig {
    let mut config = args.tracking.config();
    config.key_policy.decapsulation = args.tunnels.into();
    #[cfg(feature = "live")]
    if args.interface.is_some() {
        config.active_timeout = Some(std::time::Duration::from_secs(1800));
    }
    if let Some(Timeout(timeout)) = args.active_timeout {
        config.active_timeout = timeout;
    }
    config
}

fn pool(args: &FlowsArgs, config: &TrackerConfig) -> PoolConfig {
    let mut pool = PoolConfig::default();
    (pool.limits, pool.budget) = (config.limits, config.budget.clone());
    pool.policy = args.fragment_policy;
    pool
}

fn sorted(args: &FlowsArgs) -> Option<Sorted> {
    let limit = args.top.map_or(usize::MAX, std::num::NonZero::get);
    let is_wanted = args.sort.is_some() || args.top.is_some();
    let order = Order { field: args.sort.unwrap_or(SortField::Octets), is_reversed: args.reverse };
    is_wanted.then(|| Sorted::new(order, limit))
}

#[cfg(feature = "live")]
fn listen(name: &str, duration: Option<std::time::Duration>) -> Result<Input, Failure> {
    use flowgauge::source::{LiveConfig, LiveSource};
    let source =
        LiveSource::open(name, LiveConfig::default()).map_err(|error| Failure::Other(error.to_string()))?;
    if let Some(duration) = duration {
        let stop = source.stop_handle();
        std::thread::spawn(move || {
            std::thread::sleep(duration);
            stop.stop();
        });
    }
    Ok(Input::of(Box::new(source), false))
}

/// The time of day, for flows to end while no packet comes.
#[cfg(feature = "live")]
fn now() -> flowgauge::base::Timestamp {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    flowgauge::base::Timestamp::from_parts(since.as_secs(), since.subsec_nanos().into())
}

/// Writes flows as they end, or keeps them to be put in order.
struct RecordSink {
    /// What the key alone does not decide.
    filter: Option<Filter>,
    sorted: Option<Sorted>,
    writer: Writer,
    record_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
}

impl Take for RecordSink {
    #[inline]
    fn take(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        // Of most flows that are not among the first nothing else is looked at, and it need not be in cache.
        let rank = match self.sorted.as_ref().map(|sorted| sorted.candidate(view)) {
            None => 0,
            Some(Some(rank)) => rank,
            Some(None) => return,
        };
        if view.is_empty() || self.filter.as_ref().is_some_and(|filter| !is_wanted(filter, view)) {
            return;
        }
        let record = || view.record(reason).with_application(application);
        match &mut self.sorted {
            Some(sorted) => sorted.take(rank, record()),
            None if self.outcome.is_ok() => {
                self.record_count += 1;
                self.outcome = self.writer.write(&record());
            }
            None => {}
        }
    }
}

impl RecordSink {
    /// Whether to go on after a batch. What came from a stream is not held back.
    fn check(&mut self, is_stream: bool) -> Result<(), Failure> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        if is_stream && self.record_count > self.flushed_count {
            self.flushed_count = self.record_count;
            self.writer.flush()?;
        }
        Ok(())
    }

    /// Writes what is left; how many records there were.
    fn finish(mut self) -> io::Result<u64> {
        self.outcome?;
        if let Some(sorted) = self.sorted {
            for record in sorted.into_records() {
                self.writer.write(&record)?;
                self.record_count += 1;
            }
        }
        self.writer.flush()?;
        Ok(self.record_count)
    }
}
