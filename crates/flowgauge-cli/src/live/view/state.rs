//! State of a flow in the view, and the sink that counts flows that end.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;

use flowgauge::{EndReason, FlowView, Interest, Sink, Stage};

use super::model::Model;

/// Counts of a flow that are part of the totals of its hosts and its protocol.
#[derive(Debug, Default)]
pub(super) struct Seen {
    packet_count: Cell<u64>,
    octet_count: Cell<u64>,
}

impl Seen {
    /// Replaces the counts, and returns the previous ones.
    pub(super) fn replace(&self, packet_count: u64, octet_count: u64) -> (u64, u64) {
        (self.packet_count.replace(packet_count), self.octet_count.replace(octet_count))
    }
}

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
