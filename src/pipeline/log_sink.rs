//! A sink that writes logs.

use std::io;
use std::ops::ControlFlow;

use super::sink::Sink;
use super::stage::Sessions;
use super::transactions::TransactionSink;
use crate::base::EndReason;
use crate::export::{FlowLog, LoggedFlow};
use crate::neighbor::Neighbor;
use crate::protocols::Standard;
use crate::session::SessionEvent;
use crate::tracker::{Flow, FlowEvent, FlowView, Interest};
use crate::transaction::Transaction;

/// A sink that writes all flows, transactions and anomalies to a [`FlowLog`]. After an error of the log, it ends the run.
/// [`zeek`](crate::export::zeek) and [`eve`](crate::export::eve) show examples.
pub struct LogSink {
    log: Box<dyn FlowLog + Send>,
    outcome: io::Result<()>,
    /// Memory of the states of open flows.
    states_len: usize,
}

impl LogSink {
    /// Creates a sink that writes to a log.
    pub fn new(log: impl FlowLog + Send + 'static) -> Self {
        Self { log: Box::new(log), outcome: Ok(()), states_len: 0 }
    }

    /// Completes the log. Returns the number of rows.
    ///
    /// # Errors
    ///
    /// The first error of the log.
    pub fn close(self) -> io::Result<u64> {
        let closed = self.log.close();
        self.outcome.and(closed)
    }

    /// Writes to the log unless there was an error.
    fn write(&mut self, write: impl FnOnce(&mut dyn FlowLog) -> io::Result<bool>) {
        if self.outcome.is_ok() {
            self.outcome = write(&mut *self.log).map(drop);
        }
    }
}

impl std::fmt::Debug for LogSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSink").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

impl Sink for LogSink {
    type State = LoggedFlow;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::STARTS | Interest::EVENTS | Interest::NEIGHBORS
    }

    fn started(&mut self, flow: &mut Flow<'_, LoggedFlow>) {
        self.log.started(&flow.view, flow.state);
    }

    fn event(&mut self, flow: &mut Flow<'_, LoggedFlow>, event: &FlowEvent) {
        if let FlowEvent::Anomaly(anomaly) = event {
            self.write(|log| log.anomaly(&flow.view, flow.state, *anomaly, &mut |_| true));
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, LoggedFlow>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognized { protocol, evidence } => {
                let before = flow.state.heap_len();
                flow.state.recognized(protocol.name(), *evidence);
                self.states_len += flow.state.heap_len() - before;
            }
            SessionEvent::Stopped { meta, fault, .. } => {
                let stop = (meta, fault.reason());
                self.write(|log| log.fault(&flow.view, flow.state, stop, &mut |_| true));
            }
            SessionEvent::Suppressed { .. } => {}
        }
    }

    fn record(&mut self, flow: &mut Flow<'_, LoggedFlow>, reason: EndReason) {
        self.write(|log| log.record(&flow.view, flow.state, reason, &mut |_| true));
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.write(|log| log.neighbor(neighbor, &mut |_| true));
    }

    fn restored(&mut self, flow: &mut LoggedFlow) {
        self.states_len += flow.heap_len();
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        self.states_len as u64 + self.log.held_bytes(left)
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, flow: LoggedFlow) {
        self.states_len -= flow.heap_len();
        self.write(|log| log.ended(view).map(|()| true));
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl TransactionSink for LogSink {
    fn transaction(&mut self, view: &FlowView<'_>, flow: &mut LoggedFlow, transaction: &Transaction) {
        self.write(|log| log.transaction(view, flow, transaction, &mut |_| true));
    }
}
