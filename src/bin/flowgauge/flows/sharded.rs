//! The same on several threads.

use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use flowgauge::base::EndReason;
use flowgauge::filter::Filter;
use flowgauge::pipeline::Pipeline;
use flowgauge::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest, TrackerConfig};

use super::{pipeline, result, sorted, usage};
use crate::args::FlowsArgs;
use crate::choice::is_wanted;
use crate::console::{Console, Failure};
use crate::formats::Writer;
use crate::input::Input;
use crate::order::Sorted;
use crate::summary;

/// Runs the command on as many threads as are asked for, and one that reads.
pub(super) fn run(
    args: &FlowsArgs,
    filter: Option<Filter>,
    config: &TrackerConfig,
    console: &mut Console,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let make = || pipeline(args, filter.as_ref(), config);
    let mut shards = Pipeline::shards(args.shards, make).map_err(usage)?;
    let Some(input) = Input::open(&args.files, config.limits, console) else { return Ok(()) };
    let mut input = input.with_progress(!args.quiet);
    let mut writer = Writer::new(args.format, Box::new(BufWriter::with_capacity(1 << 16, io::stdout())))?;
    let late_filter = filter.as_ref().filter(|filter| !filter.is_final());
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
    // Nothing is an error for this source.
    if sorted(args).is_some() {
        let sinks = (0..args.shards.get()).filter_map(|_| sorted(args));
        let mut sinks: Vec<_> = sinks.map(|sorted| Sorting { filter: late_filter, sorted }).collect();
        let _ = shards.run(&mut reading, &mut sinks);
        Sorted::merge(sinks.into_iter().map(|sink| sink.sorted).collect()).for_each(take);
    } else {
        let wants = |view: &FlowView<'_>| late_filter.is_none_or(|filter| is_wanted(filter, view));
        let _ = shards.run_records(&mut reading, wants, &mut take);
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

impl Sorting<'_> {
    fn take(&mut self, view: &FlowView<'_>, reason: EndReason) {
        let Some(rank) = self.sorted.candidate(view) else { return };
        if !view.is_empty() && self.filter.is_none_or(|filter| is_wanted(filter, view)) {
            self.sorted.take(rank, view.record(reason));
        }
    }
}

impl FlowSink<()> for Sorting<'_> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.take(&flow.view, EndReason::ActiveTimeout);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, (): ()) {
        self.take(view, reason);
    }
}
