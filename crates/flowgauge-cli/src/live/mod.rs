//! `flowgauge live`: flow records of interfaces, mirror sessions and remote captures.

mod args;
mod monitor;
mod origin;
mod recorder;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flowgauge::{Builder, DriverConfig, ErrorPolicy, Filter, Flows, Resources, Sessions, Stage, Standard};

use crate::args::{Timeout, check};
use crate::console::{Console, Failure, write_line};
use crate::formats::Writer;
use crate::input::Input;
use crate::interrupt;
use crate::records::result;
use crate::rows::Rows;
use crate::sinks::RowSink;
use crate::summary;
pub(crate) use args::LiveArgs;
use monitor::Monitor;
use recorder::Recorder;

/// Default of `--active-timeout`: flows may continue for as long as the command runs.
const ACTIVE_TIMEOUT: Timeout = Timeout(Some(Duration::from_secs(1800)));

/// Runs the command `flowgauge live`.
pub(crate) fn run(args: &LiveArgs, console: &mut Console) -> Result<(), Failure> {
    args.records.check()?;
    let filter = args.records.filter()?;
    let resources = args.records.shared.resources();
    let builder = args.records.builder(&resources, filter.as_ref(), ACTIVE_TIMEOUT);
    let flow_filter = filter.as_ref().filter(|filter| !filter.is_final());
    let run = Run { args, resources: &resources, filter: flow_filter };
    if args.records.names_applications() {
        let mut naming = DriverConfig::default();
        naming.is_naming_only = true;
        run.run::<Sessions<Standard>>(&builder.sessions(naming), console)
    } else {
        run.run::<Flows>(&builder, console)
    }
}

struct Run<'a> {
    args: &'a LiveArgs,
    resources: &'a Resources,
    /// The part of the filter expression that applies to complete flows.
    filter: Option<&'a Filter>,
}

impl Run<'_> {
    fn run<G: Stage>(&self, builder: &Builder, console: &mut Console) -> Result<(), Failure> {
        check::<G>(builder)?;
        let Self { args, filter, .. } = *self;
        let records = &args.records;
        let source = args.open(self.resources)?;
        let recorder = Arc::new(Mutex::new(Recorder::open(args)?));
        let writer = Writer::open(records.format, records.fields.as_ref(), &records.export, &[])?;
        let monitor = Monitor::new(source, Arc::clone(&recorder), records.shared.quiet);
        let mut input = Input::new(Box::new(monitor), ErrorPolicy::End);
        if !records.shared.quiet {
            write_line(&format!("flowgauge: capturing on {}", args.origin()));
        }
        let started_at = Instant::now();
        if let Some(duration) = args.duration {
            stop_after(duration);
        }
        let mut pipeline = builder.build(RowSink::<G>::new(Rows::new(writer, true), filter))?;
        let stats = input.run(&mut pipeline, console)?;
        let record_count = pipeline.into_sink().into_rows().finish()?;
        let recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner).take();
        recorder.map_or(Ok(()), Recorder::finish)?;
        if !records.shared.quiet {
            summary::write(&stats, &input.stats(), started_at.elapsed(), &result(&stats, record_count));
        }
        Ok(())
    }
}

/// Ends the capture after a time.
fn stop_after(duration: Duration) {
    thread::spawn(move || {
        thread::sleep(duration);
        interrupt::stop().stop();
    });
}
