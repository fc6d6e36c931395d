//! The application protocol of each flow in a capture, with the set of all protocols.

use std::path::Path;

use flowgauge::base::{EndReason, FlowKey};
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::Standard;
use flowgauge::session::SessionEvent;
use flowgauge::tracker::{Flow, FlowView, Interest};

use super::support::run_without_timeouts;

/// A flow and its application protocol.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: FlowKey,
    /// Name and evidence of the application protocol.
    pub(crate) application: Option<(&'static str, &'static str)>,
    /// The parser that stopped, and the reason.
    pub(crate) stopped: Option<(&'static str, &'static str)>,
    pub(crate) payload_octet_count: u64,
}

#[derive(Default)]
struct FlowState {
    application: Option<(&'static str, &'static str)>,
    stopped: Option<(&'static str, &'static str)>,
}

#[derive(Default)]
struct Collect(Vec<Named>);

impl Sink for Collect {
    type State = FlowState;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, state: FlowState) {
        let payload_octet_count = [flowgauge::base::Side::A, flowgauge::base::Side::B]
            .into_iter()
            .map(|side| view.counters(side).payload_octet_count)
            .sum();
        let FlowState { application, stopped } = state;
        self.0.push(Named { key: *view.key(), application, stopped, payload_octet_count });
    }

    fn session(&mut self, flow: &mut Flow<'_, FlowState>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognized { protocol, evidence } => {
                flow.state.application.get_or_insert((protocol.name(), evidence.name()));
            }
            SessionEvent::Stopped { meta, fault, .. } => {
                flow.state.stopped.get_or_insert((meta.protocol.name(), fault.reason()));
            }
            _ => {}
        }
    }
}

/// Returns the flows of a capture in the order in which they ended. Flows do not time out.
///
/// # Panics
///
/// If the file cannot be read.
pub(crate) fn of(path: &Path) -> Vec<Named> {
    let sink = run_without_timeouts(path, Collect::default());
    sink.0
}
