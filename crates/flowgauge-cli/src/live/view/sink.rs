//! The sink that counts flows that end, and takes messages, for the view.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use flowgauge::{EndReason, Flow, FlowView, Interest, MessageMeta, MessageOf, Sink};

use super::model::{Model, Seen};
use crate::joined::Named;

/// Sink that counts the traffic of flows when they end. The traffic of open flows is counted at each refresh.
pub(super) struct ViewSink<G> {
    model: Rc<RefCell<Model>>,
    stage: PhantomData<fn() -> G>,
}

impl<G> ViewSink<G> {
    pub(super) fn new(model: Rc<RefCell<Model>>) -> Self {
        Self { model, stage: PhantomData }
    }
}

impl<G: Named> Sink for ViewSink<G> {
    type State = Seen;
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, flow: &mut Flow<'_, Seen>, meta: &MessageMeta, message: &MessageOf<'_, Self>) {
        if let Some(message) = G::standard(message) {
            self.model.borrow_mut().message(&flow.view, flow.state, meta, message);
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, Seen>, reason: EndReason) {
        if reason == EndReason::ActiveTimeout {
            self.model.borrow_mut().record_ended(&flow.view, flow.state);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, seen: Seen) {
        self.model.borrow_mut().flow_ended(view, &seen, reason);
    }
}
