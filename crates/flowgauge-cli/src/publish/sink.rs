//! Sinks of `flowgauge publish`: a selection of flows, and messages of application protocols.

use std::cell::Cell;
use std::ops::ControlFlow;

use flowgauge::export::{Style, write_json};
use flowgauge::record::CommunityId;
use flowgauge::row::Union as _;
use flowgauge::session::MessageHead;
use flowgauge::{
    EndReason, Filter, Flow, FlowEvent, Interest, Message, MessageMeta, Sessions, Sink, Stage, Standard,
};
use flowgauge_bus::{Line, PublishSink, Topic};

use crate::bound::Bound;
use crate::sessions::id;

/// Sink that publishes the records of flows that match a filter.
pub(super) struct Selected<'a, G> {
    sink: PublishSink<G>,
    filter: Option<&'a Filter>,
}

impl<'a, G> Selected<'a, G> {
    pub(super) const fn new(sink: PublishSink<G>, filter: Option<&'a Filter>) -> Self {
        Self { sink, filter }
    }

    fn selects<S>(&self, flow: &Flow<'_, S>) -> bool {
        self.filter.is_none_or(|filter| filter.matches_flow(&flow.view))
    }
}

impl<G: Stage> Sink for Selected<'_, G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        self.sink.interest()
    }

    fn started(&mut self, flow: &mut Flow<'_, ()>) {
        if self.selects(flow) {
            self.sink.started(flow);
        }
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        if self.selects(flow) {
            self.sink.event(flow, event);
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        if self.selects(flow) {
            self.sink.record(flow, reason);
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.sink.batch_ended()
    }
}

/// State of a flow: its Community ID once it was computed, the octets of its messages, and the state of the other sink.
#[derive(Debug, Default)]
pub(super) struct State {
    community_id: Option<CommunityId>,
    spent: u64,
    other: (),
}

/// Sink that publishes records and messages. Credentials in messages are omitted.
pub(super) struct WithMessages<'a> {
    records: Selected<'a, Sessions<Standard>>,
    line: Vec<u8>,
    bound: Bound,
    omitted_count: &'a Cell<u64>,
}

impl<'a> WithMessages<'a> {
    pub(super) const fn new(records: Selected<'a, Sessions<Standard>>, omitted_count: &'a Cell<u64>) -> Self {
        Self { records, line: Vec::new(), bound: Bound::new(), omitted_count }
    }
}

impl Sink for WithMessages<'_> {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        self.records.interest()
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        flow.project(|state| &mut state.other, |flow| self.records.started(flow));
    }

    fn event(&mut self, flow: &mut Flow<'_, State>, event: &FlowEvent) {
        flow.project(|state| &mut state.other, |flow| self.records.event(flow, event));
    }

    fn record(&mut self, flow: &mut Flow<'_, State>, reason: EndReason) {
        flow.project(|state| &mut state.other, |flow| self.records.record(flow, reason));
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        if message.is_content() || message.is_plain_end() || !self.records.selects(flow) {
            return;
        }
        let community_id = id(&mut flow.state.community_id, &flow.view);
        self.line.clear();
        let row = message.row();
        let head = MessageHead::new(&flow.view, community_id, meta, row.table);
        write_json(&mut self.line, &(head, row), Style::default());
        if self.bound.permits(&mut flow.state.spent, meta.received_len, self.line.len()) {
            let topic = Topic::session(meta.protocol.name());
            self.records.sink.publisher().publish(&topic, &Line(&self.line));
        } else {
            self.omitted_count.update(|count| count + 1);
        }
    }
}
