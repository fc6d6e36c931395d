//! The sink that writes logs beside another output.

use std::io;
use std::ops::ControlFlow;

use flowgauge::export::{FlowLog, LoggedFlow};
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::TransactionSink;
use flowgauge::transaction::Transaction;
use flowgauge::{
    EndReason, Filter, Flow, FlowEvent, FlowView, Interest, Message, MessageMeta, Packet, SessionEvent,
    Sessions, Sink, Standard, Timestamp,
};

use crate::bound::Bound;
use crate::console::Failure;
use crate::formats::log_failure;
use flowgauge_condition::RowFilter;

/// A sink that passes all callbacks to another one, and writes flows, transactions and anomalies to logs.
pub(crate) struct Logged<'a, K> {
    inner: K,
    logs: Vec<Box<dyn FlowLog + Send>>,
    /// The part of a filter that applies to complete flows.
    filter: Option<&'a Filter>,
    /// Conditions on records.
    rows: RowFilter,
    /// Protocols whose transactions are written; all if empty.
    protocols: &'a [&'static str],
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    /// True if only some flows are selected, so that what belongs to no flow is not written.
    has_flows_only: bool,
    bound: Bound,
    omitted_count: u64,
    now: Timestamp,
    has_news: bool,
    outcome: io::Result<()>,
    /// Memory of the states of open flows.
    states_len: usize,
}

/// State of a flow: of the logs, and of the inner sink.
#[derive(Debug, Default)]
pub(crate) struct State<S> {
    flow: LoggedFlow,
    /// Octets of output of the flow.
    spent: u64,
    /// The inner sink does not want the flow.
    is_skipped: bool,
    inner: S,
}

/// What the logs of a run were.
pub(crate) struct Outcome {
    pub(crate) row_count: u64,
    pub(crate) omitted_count: u64,
}

impl<'a, K> Logged<'a, K> {
    pub(crate) fn new(
        inner: K,
        logs: Vec<Box<dyn FlowLog + Send>>,
        (filter, protocols): (Option<&'a Filter>, &'a [&'static str]),
        is_stream: bool,
    ) -> Self {
        Self {
            inner,
            logs,
            filter,
            rows: RowFilter::default(),
            protocols,
            is_stream,
            has_flows_only: false,
            bound: Bound::new(),
            omitted_count: 0,
            now: Timestamp::ZERO,
            has_news: false,
            outcome: Ok(()),
            states_len: 0,
        }
    }

    /// Restricts the rows of flows to those that meet conditions.
    pub(crate) fn selected(self, rows: RowFilter) -> Self {
        let has_flows_only = !rows.is_empty();
        Self { rows, has_flows_only, ..self }
    }

    /// Returns the sink without what belongs to no flow, if `has_flows_only`.
    pub(crate) fn of_flows_only(self, has_flows_only: bool) -> Self {
        Self { has_flows_only, ..self }
    }

    /// Completes the logs, even after a failed write. Returns the inner sink too.
    pub(crate) fn finish(self) -> (K, Result<Outcome, Failure>) {
        let Self { inner, logs, omitted_count, mut outcome, .. } = self;
        let mut row_count = 0;
        for log in logs {
            match log.close() {
                Ok(count) => row_count += count,
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        let outcome = outcome.map_err(|error| log_failure(&error));
        (inner, outcome.map(|()| Outcome { row_count, omitted_count }))
    }

    /// Writes rows of a flow with each log, unless they would exceed the bound on the output. `received_len` is the input of
    /// the flow so far.
    fn write<S>(
        &mut self,
        view: &FlowView<'_>,
        state: &mut State<S>,
        received_len: u64,
        mut row: impl FnMut(&mut dyn FlowLog, &mut LoggedFlow, &mut dyn FnMut(usize) -> bool) -> io::Result<bool>,
    ) {
        let is_unwanted = state.is_skipped || self.filter.is_some_and(|filter| !filter.matches_flow(view));
        if self.outcome.is_err() || is_unwanted {
            return;
        }
        let Self { logs, bound, omitted_count, .. } = self;
        for log in logs {
            let spent = &mut state.spent;
            let written =
                row(&mut **log, &mut state.flow, &mut |len| bound.permits(spent, received_len, len));
            match written {
                Ok(is_written) => *omitted_count += u64::from(!is_written),
                Err(error) => self.outcome = Err(error),
            }
        }
        self.has_news = true;
    }

    fn wants(&self, protocol: &str) -> bool {
        self.protocols.is_empty() || self.protocols.contains(&protocol)
    }
}

impl<K: Sink<Stage = Sessions<Standard>>> Sink for Logged<'_, K> {
    type State = State<K::State>;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        let own = Interest::STARTS | Interest::EVENTS | Interest::NEIGHBORS;
        self.inner.interest() | own | Interest::VARIES
    }

    fn started(&mut self, flow: &mut Flow<'_, Self::State>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.started(flow));
        flow.state.is_skipped = flow.is_muted();
        for log in &mut self.logs {
            log.started(&flow.view, &mut flow.state.flow);
        }
    }

    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.packet(flow, packet));
    }

    fn event(&mut self, flow: &mut Flow<'_, Self::State>, event: &FlowEvent) {
        flow.project(|state| &mut state.inner, |flow| self.inner.event(flow, event));
        if let FlowEvent::Anomaly(anomaly) = event
            && self.protocols.is_empty()
        {
            let received_len = flow.view.octet_count();
            self.write(&flow.view, flow.state, received_len, |log, logged, permits| {
                log.anomaly(&flow.view, logged, *anomaly, permits)
            });
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, Self::State>, meta: &MessageMeta, message: &Message<'_>) {
        flow.project(|state| &mut state.inner, |flow| self.inner.message(flow, meta, message));
    }

    fn session(&mut self, flow: &mut Flow<'_, Self::State>, event: &SessionEvent) {
        flow.project(|state| &mut state.inner, |flow| self.inner.session(flow, event));
        match event {
            SessionEvent::Recognized { protocol, evidence } => {
                let logged = &mut flow.state.flow;
                let before = logged.heap_len();
                logged.recognized(protocol.name(), *evidence);
                self.states_len += logged.heap_len() - before;
            }
            SessionEvent::Stopped { meta, fault, .. } if self.wants(meta.protocol.name()) => {
                self.write(&flow.view, flow.state, meta.received_len, |log, logged, permits| {
                    log.fault(&flow.view, logged, (meta, fault.reason()), permits)
                });
            }
            _ => {}
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, Self::State>, reason: EndReason) {
        flow.project(|state| &mut state.inner, |flow| self.inner.record(flow, reason));
        self.now = self.now.max(flow.view.end());
        let is_selected = self.rows.is_empty() || self.rows.matches(&flow.view.record(reason));
        if self.protocols.is_empty() && is_selected {
            // The number of these rows is bounded by that of packets.
            let received_len = u64::MAX;
            self.write(&flow.view, flow.state, received_len, |log, logged, permits| {
                log.record(&flow.view, logged, reason, permits)
            });
        }
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.inner.neighbor(neighbor);
        if self.has_flows_only || self.outcome.is_err() || !self.wants(neighbor.head.protocol) {
            return;
        }
        self.now = self.now.max(neighbor.head.timestamp);
        let Self { logs, bound, omitted_count, .. } = self;
        for log in logs {
            let mut permits = |len| bound.permits(&mut 0, neighbor.head.frame_len.into(), len);
            match log.neighbor(neighbor, &mut permits) {
                Ok(is_written) => *omitted_count += u64::from(!is_written),
                Err(error) => self.outcome = Err(error),
            }
        }
        self.has_news = true;
    }

    fn restored(&mut self, state: &mut Self::State) {
        self.states_len += state.flow.heap_len();
        self.inner.restored(&mut state.inner);
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        let logs: u64 = self.logs.iter_mut().map(|log| log.held_bytes(left)).sum();
        self.states_len as u64 + logs + self.inner.held_bytes(left)
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: Self::State) {
        self.states_len -= state.flow.heap_len();
        if self.outcome.is_ok() {
            self.outcome = self.logs.iter_mut().try_for_each(|log| log.ended(view));
        }
        self.inner.ended(view, reason, state.inner);
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && std::mem::take(&mut self.has_news) {
            self.outcome = self.logs.iter_mut().try_for_each(|log| {
                log.advance(self.now)?;
                log.flush()
            });
        }
        if self.outcome.is_err() {
            return ControlFlow::Break(());
        }
        self.inner.batch_ended()
    }
}

impl<K: TransactionSink> TransactionSink for Logged<'_, K> {
    fn transaction(&mut self, view: &FlowView<'_>, state: &mut Self::State, transaction: &Transaction) {
        self.inner.transaction(view, &mut state.inner, transaction);
        self.now = self.now.max(transaction.end());
        if self.wants(transaction.protocol().name()) {
            self.write(view, state, transaction.received_len(), |log, logged, permits| {
                log.transaction(view, logged, transaction, permits)
            });
        }
    }
}
