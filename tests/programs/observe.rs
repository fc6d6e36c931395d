//! The messages of a capture as JSON objects.

use crate::message_json::as_json;
use std::path::Path;

use flowgauge::base::{EndReason, Timestamp};
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::{Message, Standard};
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::tracker::{Flow, FlowView, TrackerConfig};
use serde_json::Value;

use crate::support::run_capture;

/// The messages of a flow.
#[derive(Debug, Default)]
pub(crate) struct Dialogue {
    /// Destination port of the first packet.
    pub(crate) server_port: u16,
    /// Protocols in the order of recognition, each with its evidence.
    pub(crate) recognized: Vec<(&'static str, &'static str)>,
    /// Faults with which parsers stopped.
    pub(crate) faults: Vec<String>,
    /// Messages with the additional members `protocol` and `from`.
    pub(crate) messages: Vec<Value>,
}

impl Dialogue {
    /// Returns all messages of a kind.
    pub(crate) fn all(&self, protocol: &str, message: &str) -> Vec<&Value> {
        let is = |value: &&Value| value["protocol"] == protocol && value["message"] == message;
        self.messages.iter().filter(is).collect()
    }

    /// Returns the only message of a kind.
    pub(crate) fn only(&self, protocol: &str, message: &str) -> &Value {
        let all = self.all(protocol, message);
        assert_eq!(all.len(), 1, "{protocol} {message} in {self:#?}");
        all[0]
    }

    /// Returns the only message of a kind that comes from `from`.
    pub(crate) fn of<'a>(&'a self, from: &str, protocol: &str, message: &str) -> &'a Value {
        let all: Vec<_> =
            self.all(protocol, message).into_iter().filter(|value| value["from"] == from).collect();
        assert_eq!(all.len(), 1, "{protocol} {message} of {from} in {self:#?}");
        all[0]
    }
}

#[derive(Default)]
struct Collect(Vec<(Timestamp, Dialogue)>);

impl Sink for Collect {
    type State = Dialogue;
    type Stage = Sessions<Standard>;

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, dialogue: Dialogue) {
        let server_port = view.key().port(view.initiator().other()).expect("a port");
        self.0.push((view.start(), Dialogue { server_port, ..dialogue }));
    }

    fn message(&mut self, flow: &mut Flow<'_, Dialogue>, meta: &MessageMeta, message: &Message<'_>) {
        let mut value = serde_json::from_str::<Value>(&as_json(message)).expect("an object");
        value["protocol"] = meta.protocol.name().into();
        value["from"] = meta.from.name().into();
        flow.state.messages.push(value);
    }

    fn session(&mut self, flow: &mut Flow<'_, Dialogue>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognized { protocol, evidence } => {
                flow.state.recognized.push((protocol.name(), evidence.name()));
            }
            SessionEvent::Stopped { meta, fault, .. } => {
                flow.state.faults.push(format!("{}: {fault}", meta.protocol));
            }
            _ => {}
        }
    }
}

/// Returns the flows of a capture in the order of their start times. No parser may have stopped.
pub(crate) fn dialogues(capture: &Path) -> Vec<Dialogue> {
    let (sink, _) = run_capture(capture, TrackerConfig::default(), Collect::default());
    let mut dialogues = sink.0;
    dialogues.sort_by_key(|(start, _)| *start);
    let dialogues: Vec<_> = dialogues.into_iter().map(|(_, dialogue)| dialogue).collect();
    for dialogue in &dialogues {
        assert_eq!(dialogue.faults, [""; 0], "{dialogue:#?}");
    }
    dialogues
}

/// Returns the flows to a server port.
pub(crate) fn to_port(capture: &Path, port: u16) -> Vec<Dialogue> {
    dialogues(capture).into_iter().filter(|dialogue| dialogue.server_port == port).collect()
}
