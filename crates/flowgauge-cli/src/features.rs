//! Flow records with statistical features.

use std::io;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use flowgauge::export::{Format, Lines, RecordWriter, Selection};
use flowgauge::features::{FeatureSet, Features, FlowFeatures, Moment};
use flowgauge::row::Row as _;
use flowgauge::{Builder, EndReason, Filter, Flow, FlowRecord, Interest, Packet, PipelineStats, Sink, Stage};

use crate::choice::matches;
use crate::console::{Console, Failure};
use crate::formats::{OutputArgs, OutputFormat, stdout};
use crate::input::Input;

/// A record with its features.
type FeatureRow<'r> = (&'r FlowRecord, Features<'r>);

type Writer = Box<dyn for<'r> RecordWriter<FeatureRow<'r>> + Send>;

/// Writes the records of an input with features, as flows end. Returns the counters, and the number of records.
pub(crate) fn run<G: Stage>(
    (set, moment): (FeatureSet, Option<Moment>),
    output: &OutputArgs,
    (builder, filter): (&Builder, Option<&Filter>),
    input: &mut Input,
    console: &mut Console,
) -> Result<(PipelineStats, u64), Failure> {
    let sink = FeatureSink::<G> {
        set,
        moment,
        filter,
        writer: writer(set, output)?,
        is_stream: input.is_stream(),
        record_count: 0,
        flushed_count: 0,
        outcome: Ok(()),
        stage: PhantomData,
    };
    let mut pipeline = builder.build(sink)?;
    let stats = input.run(&mut pipeline, console)?;
    let FeatureSink { writer, record_count, outcome, .. } = pipeline.into_sink();
    outcome?;
    writer.finish()?;
    Ok((stats, record_count))
}

/// Returns a failure if rows of features cannot have the output format.
pub(crate) fn check(output: &OutputArgs) -> Result<(), Failure> {
    match output.format {
        OutputFormat::Library(Format::Ndjson | Format::Csv) | OutputFormat::Columns(_) => Ok(()),
        OutputFormat::Library(_) => {
            Err(Failure::Usage("--features requires --format ndjson, csv, parquet or arrow".to_owned()))
        }
    }
}

/// Creates the writer of the chosen fields of a record, followed by all columns of the features.
fn writer(set: FeatureSet, output: &OutputArgs) -> Result<Writer, Failure> {
    let fields = match &output.fields {
        Some(fields) => fields.columns().to_vec(),
        None => FlowRecord::columns(),
    };
    let names = fields.into_iter().chain(set.columns()).map(|column| column.name);
    let selection =
        Selection::of::<FeatureRow<'_>>(names).map_err(|name| Failure::Other(format!("column {name}")))?;
    let style = output.style.style();
    Ok(match output.format {
        OutputFormat::Library(Format::Csv) => Box::new(Lines::csv(stdout(), Some(selection), style)),
        #[cfg(feature = "arrow")]
        OutputFormat::Columns(format) => {
            output.check_terminal()?;
            let options = output.columns.options("features", Some(selection));
            Box::new(format.writer::<FeatureRow<'static>, _>(stdout(), options)?)
        }
        _ => Box::new(Lines::ndjson(stdout(), Some(selection), style)),
    })
}

/// Sink that counts features, and writes them with each record. The stage `G` determines whether a record contains the
/// application protocol.
struct FeatureSink<'a, G> {
    set: FeatureSet,
    /// When the row of a flow is written; if `None`, with each record.
    moment: Option<Moment>,
    filter: Option<&'a Filter>,
    writer: Writer,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    record_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
    stage: PhantomData<fn() -> G>,
}

/// State of a flow.
#[derive(Debug, Default)]
struct State {
    features: FlowFeatures,
    /// The row of the flow was written early.
    is_decided: bool,
}

impl<G> FeatureSink<'_, G> {
    /// Writes the record and the features of a flow, whose next record begins again.
    fn write(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        let features = std::mem::take(&mut flow.state.features);
        let is_selected = self.filter.is_none_or(|filter| matches(filter, &flow.view));
        if is_selected && self.outcome.is_ok() {
            let record = flow.view.record(reason);
            self.outcome =
                self.writer.write(&(&record, Features::new(&record, &features, Some(self.record_count))));
            self.record_count += 1;
        }
    }
}

impl<G: Stage> Sink for FeatureSink<'_, G> {
    type State = State;
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    #[inline]
    fn packet(&mut self, flow: &mut Flow<'_, State>, packet: &Packet<'_>) {
        let Some(moment) = self.moment else { return flow.state.features.count(&self.set, packet) };
        if flow.state.features.count_until(moment, &self.set, packet) {
            self.write(flow, EndReason::ActiveTimeout);
            flow.state.is_decided = true;
            flow.mute();
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        // A flow that is decided once has no records of its parts.
        let is_part = self.moment.is_some() && reason == EndReason::ActiveTimeout;
        if !flow.state.is_decided && !is_part {
            self.write(flow, reason);
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.record_count > self.flushed_count {
            self.flushed_count = self.record_count;
            self.outcome = self.writer.flush();
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
