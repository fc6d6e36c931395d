//! The records of a tracker that runs without a pipeline.

use flowgauge::base::EndReason;
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Flow, FlowView, Interest, Observer};

/// Collects the records that a pipeline would emit: one for each active timeout and each end, unless the flow has no
/// packets.
#[derive(Debug, Default)]
pub(crate) struct RecordList(pub(crate) Vec<FlowRecord>);

impl RecordList {
    fn take(&mut self, flow: &FlowView<'_>, reason: EndReason) {
        if !flow.is_empty() {
            self.0.push(flow.record(reason));
        }
    }
}

impl<S> Observer<S> for RecordList {
    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, S>, reason: EndReason) {
        self.take(&flow.view, reason);
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _: S) {
        self.take(flow, reason);
    }
}
