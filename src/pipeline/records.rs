//! Sinks that make records.

use super::sessions::SessionSink;
use crate::base::{Application, EndReason};
use crate::record::FlowRecord;
use crate::session::{About, Protocols, SessionEvent};
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

/// The same for a [`SessionPipeline`](super::SessionPipeline): records that name what is spoken. Messages are not looked at.
#[derive(Clone, Copy, Debug)]
pub struct NamedRecords<F> {
    take: F,
}

impl<F: FnMut(FlowRecord)> NamedRecords<F> {
    /// A sink around a function.
    pub const fn new(take: F) -> Self {
        Self { take }
    }

    fn emit(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        if !view.is_empty() {
            (self.take)(view.record(reason).with_application(application));
        }
    }
}

impl<F: FnMut(FlowRecord)> FlowSink<Option<Application>> for NamedRecords<F> {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn event(&mut self, flow: &mut Flow<'_, Option<Application>>, event: &FlowEvent) {
        if *event == FlowEvent::ActiveTimeout {
            self.emit(&flow.view, EndReason::ActiveTimeout, *flow.state);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, application: Option<Application>) {
        self.emit(view, reason, application);
    }
}

impl<P: Protocols, F: FnMut(FlowRecord)> SessionSink<P, Option<Application>> for NamedRecords<F> {
    fn message(&mut self, _: &mut Flow<'_, Option<Application>>, _: &About, _: P::Message<'_>) {}

    fn session(&mut self, flow: &mut Flow<'_, Option<Application>>, event: &SessionEvent) {
        note(flow.state, event);
    }
}

/// Keeps the first protocol that was recognised.
pub(super) fn note(known: &mut Option<Application>, event: &SessionEvent) {
    *known = known.or(event.application());
}
