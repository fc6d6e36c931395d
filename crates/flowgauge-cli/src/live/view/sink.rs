//! The sink that counts flows that end for the view.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use flowgauge::{EndReason, FlowView, Interest, Sink, Stage};

use super::model::{Model, Seen};

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

impl<G: Stage> Sink for ViewSink<G> {
    type State = Seen;
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, seen: Seen) {
        self.model.borrow_mut().count(view, &seen);
    }
}
