//! Runs with several outputs, or with logs.

use std::path::PathBuf;
use std::sync::Arc;

use flowgauge::pipeline::{RecordSink, Transactions, boxed};
use flowgauge::transaction::TransactionConfig;
use flowgauge::{Builder, Filter, PipelineStats, Sessions, Standard};

use crate::console::{Console, Failure};
use crate::input::Input;
use crate::output::Outputs;
use crate::records::RecordArgs;
use crate::rows::{Rows, Written};
use crate::write::Logged;

/// Writes the flows of an input to all outputs of the options. Returns the counters, and what was written, with the number of
/// rows if there are only logs.
pub(crate) fn write_flows(
    args: &RecordArgs,
    inputs: &[PathBuf],
    (builder, filter): (&Builder, Option<&Filter>),
    input: &mut Input,
    console: &mut Console,
) -> Result<(PipelineStats, Written), Failure> {
    let format = args.output.format().logs();
    let filter_of_rows = args.output.selection.filter()?;
    let outputs = Arc::new(Outputs::new(inputs, args.output.export.force));
    let is_stream = input.is_stream();
    let writers = args.written.open_records(&args.output, (inputs, &outputs))?;
    let has_logs = args.written.outputs().any(|(format, _)| format.logs().is_some());
    let mut records = Rows::several(writers, is_stream).beside(has_logs).selected(filter_of_rows.clone());
    let logs = args.written.open_logs(format, &outputs, (args.tunnels(), true))?;
    let sink = RecordSink::<Sessions<Standard>>::new(&mut records).with_filter(filter);
    let logged = Logged::new(sink, logs, (filter, &[]), is_stream).selected(filter_of_rows);
    let mut config = TransactionConfig::default();
    config.decodes = true;
    let mut sink = Transactions::new(logged).config(config);
    let run = input.run(builder.build(boxed(&mut sink))?, console);
    let (_, logged) = sink.into_inner().finish();
    // All outputs are completed, even if one of them failed.
    let written = records.finish();
    let (mut stats, outcome, mut written) = (run?, logged?, written?);
    stats.sessions.suppressed_message_count += outcome.omitted_count;
    if written.row_count == 0 {
        written.row_count = outcome.row_count;
    }
    Ok((stats, written))
}
