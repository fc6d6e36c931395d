//! The sink of a summary of the flows that a filter selects.

use std::ops::ControlFlow;

use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::TransactionSink;
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::transaction::Transaction;
use flowgauge::{EndReason, Flow, FlowEvent, FlowView, Interest, Message, Packet, Sessions, Sink, Standard};

use crate::choice::Choice;

/// Passes only selected flows to another sink.
#[derive(Debug)]
pub(super) struct Selected<K> {
    pub(super) inner: K,
    choice: Choice,
    started_count: u64,
    /// Number of selected flows.
    pub(super) flow_count: u64,
}

/// State of a flow.
#[derive(Debug, Default)]
pub(super) struct State<S> {
    is_selected: bool,
    inner: S,
}

impl<K> Selected<K> {
    /// Creates a sink that passes the flows of a choice.
    pub(super) const fn new(inner: K, choice: Choice) -> Self {
        Self { inner, choice, started_count: 0, flow_count: 0 }
    }
}

impl<K: Sink<Stage = Sessions<Standard>>> Sink for Selected<K> {
    type State = State<K::State>;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        self.inner.interest() | Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, Self::State>) {
        self.started_count += 1;
        flow.state.is_selected = self.choice.selects(&flow.view, self.started_count);
        if flow.state.is_selected {
            self.flow_count += 1;
            flow.project(|state| &mut state.inner, |flow| self.inner.started(flow));
        } else {
            flow.mute();
        }
    }

    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.packet(flow, packet));
    }

    fn event(&mut self, flow: &mut Flow<'_, Self::State>, event: &FlowEvent) {
        flow.project(|state| &mut state.inner, |flow| self.inner.event(flow, event));
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.inner.neighbor(neighbor);
    }

    fn message(&mut self, flow: &mut Flow<'_, Self::State>, meta: &MessageMeta, message: &Message<'_>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.message(flow, meta, message));
    }

    fn session(&mut self, flow: &mut Flow<'_, Self::State>, event: &SessionEvent) {
        flow.project(|state| &mut state.inner, |flow| self.inner.session(flow, event));
    }

    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        // Records of muted flows are delivered too.
        if flow.state.is_selected {
            flow.project(|state| &mut state.inner, |flow| self.inner.record(flow, reason));
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: Self::State) {
        self.inner.ended(view, reason, state.inner);
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        self.inner.held_bytes(left)
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.inner.batch_ended()
    }
}

impl<K: TransactionSink> TransactionSink for Selected<K> {
    fn transaction(&mut self, view: &FlowView<'_>, state: &mut Self::State, transaction: &Transaction) {
        self.inner.transaction(view, &mut state.inner, transaction);
    }

    #[inline]
    fn wants(&self, protocol: &'static flowgauge::Protocol) -> bool {
        self.inner.wants(protocol)
    }
}
