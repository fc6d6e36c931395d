//! A sink that makes records.

use crate::base::EndReason;
use crate::record::FlowRecord;
use crate::tracker::{Flow, FlowEvent, FlowSink, FlowView, Interest};

/// Calls a function with the record of each flow that ends, and of each active timeout.
///
/// A flow that was silent since its last active timeout leaves no further record.
#[derive(Clone, Copy, Debug)]
pub struct Records<F> {
    take: F,
}

impl<F: FnMut(FlowRecord)> Records<F> {
    /// A sink around a function.
    pub const fn new(take: F) -> Self {
        Self { take }
    }

    fn emit(&mut self, view: &FlowView<'_>, reason: EndReason) {
        if !view.is_empty() {
            (self.take)(view.record(reason));
        }
    }
}

impl<S, F: FnMut(FlowRecord)> FlowSink<S> for Records<F> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, S>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.emit(&flow.view, EndReason::ActiveTimeout);
        }
    }

    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, _state: S) {
        self.emit(flow, reason);
    }
}
