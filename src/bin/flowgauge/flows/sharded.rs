//! The same on several threads.

use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use flowgauge::base::{Application, EndReason};
use flowgauge::filter::Filter;
use flowgauge::pipeline::{Pipeline, PipelineStats, Shards};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{FlowView, TrackerConfig};

use super::tracking::{NamedPipeline, Take, Taking, is_naming, named};
use super::{pipeline, result, sorted, usage};
use crate::args::FlowsArgs;
use crate::choice::is_wanted;
use crate::console::{Console, Failure};
use crate::formats::Writer;
use crate::input::{Input, Reading};
use crate::order::Sorted;
use crate::summary;

/// Runs the command on as many threads as are asked for, and one that reads.
pub(super) fn run(
    args: &FlowsArgs,
    filter: Option<Filter>,
    config: &TrackerConfig,
    console: &mut Console,
) -> Result<(), Failure> {
    if is_naming(args) {
        let make = || named(args, filter.as_ref(), config);
        let shards = NamedPipeline::shards(args.shards, make).map_err(usage)?;
        return run_with(shards, args, filter.as_ref(), config, console);
    }
    let make = || pipeline(args, filter.as_ref(), config);
    let shards = Pipeline::shards(args.shards, make).map_err(usage)?;
    run_with(shards, args, filter.as_ref(), config, console)
}

/// What shards of either pipeline can.
trait Run {
    fn sort(&mut self, reading: &mut Reading<'_>, sinks: &mut [Taking<Sorting<'_>>]);
    fn merge(
        &mut self,
        reading: &mut Reading<'_>,
        wants: impl Fn(&FlowView<'_>) -> bool + Sync,
        take: impl FnMut(FlowRecord) + Send,
    );
    fn stats(&self) -> PipelineStats;
}

// Nothing is an error for this source.
macro_rules! run {
    ($Pipeline:ty) => {
        impl Run for Shards<$Pipeline> {
            fn sort(&mut self, reading: &mut Reading<'_>, sinks: &mut [Taking<Sorting<'_>>]) {
                let _ = self.run(reading, sinks);
            }

            fn merge(
                &mut self,
                reading: &mut Reading<'_>,
                wants: impl Fn(&FlowView<'_>) -> bool + Sync,
                take: impl FnMut(FlowRecord) + Send,
            ) {
                let _ = self.run_records(reading, wants, take);
            }

            fn stats(&self) -> PipelineStats {
                self.stats()
            }
        }
    };
}

run!(Pipeline<()>);
run!(NamedPipeline);

fn run_with(
    mut shards: impl Run,
    args: &FlowsArgs,
    filter: Option<&Filter>,
    config: &TrackerConfig,
    console: &mut Console,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let Some(input) = Input::open(&args.files, config, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.quiet);
    let mut writer = Writer::new(args.format, Box::new(BufWriter::with_capacity(1 << 16, io::stdout())))?;
    let late_filter = filter.filter(|filter| !filter.is_final());
    let mut record_count = 0;
    let mut outcome = Ok(());
    let is_over = AtomicBool::new(false);
    // What comes as somebody sends it is not held back.
    let is_stream = input.is_stream();
    let mut take = |record| {
        if outcome.is_ok() {
            outcome = writer.write(&record);
            record_count += 1;
            if outcome.is_ok() && is_stream {
                outcome = writer.flush();
            }
            is_over.store(outcome.is_err(), Relaxed);
        }
    };
    let mut reading = input.reading(console, &is_over);
    if sorted(args).is_some() {
        let sinks = (0..args.shards.get()).filter_map(|_| sorted(args));
        let mut sinks: Vec<_> = sinks.map(|sorted| Taking(Sorting { filter: late_filter, sorted })).collect();
        shards.sort(&mut reading, &mut sinks);
        Sorted::merge(sinks.into_iter().map(|sink| sink.0.sorted).collect()).for_each(take);
    } else {
        let wants = |view: &FlowView<'_>| late_filter.is_none_or(|filter| is_wanted(filter, view));
        shards.merge(&mut reading, wants, &mut take);
    }
    reading.end();
    outcome?;
    writer.flush()?;
    if !args.quiet {
        let stats = shards.stats();
        summary::write(&stats, &input.stats(), begun.elapsed(), &result(&stats, record_count));
    }
    Ok(())
}

/// Keeps the flows of a shard that come first.
struct Sorting<'a> {
    filter: Option<&'a Filter>,
    sorted: Sorted,
}

impl Take for Sorting<'_> {
    fn take(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        let Some(rank) = self.sorted.candidate(view) else { return };
        if !view.is_empty() && self.filter.is_none_or(|filter| is_wanted(filter, view)) {
            self.sorted.take(rank, view.record(reason).with_application(application));
        }
    }
}
