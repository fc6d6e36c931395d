//! The application protocol of each flow of a capture, by the set of all protocols.

use std::path::Path;

use flowgauge::base::{EndReason, FlowKey};
use flowgauge::pipeline::{Pipeline, SessionPipeline, SessionSink};
use flowgauge::reassembler::ReassemblerConfig;
use flowgauge::session::{About, DriverConfig, Message, SessionEvent, Standard};
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest, Timeouts, TrackerConfig};

/// A flow, and what it was called.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: FlowKey,
    /// Name and evidence.
    pub(crate) application: Option<(&'static str, &'static str)>,
    /// The parser that gave up, and why.
    pub(crate) stopped: Option<(&'static str, &'static str)>,
    pub(crate) payload_octet_count: u64,
}

#[derive(Default)]
struct Of {
    application: Option<(&'static str, &'static str)>,
    stopped: Option<(&'static str, &'static str)>,
}

#[derive(Default)]
struct Collect(Vec<Named>);

impl FlowSink<Of> for Collect {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, of: Of) {
        let payload_octet_count = [flowgauge::base::Side::A, flowgauge::base::Side::B]
            .into_iter()
            .map(|side| view.counters(side).payload_octet_count)
            .sum();
        let Of { application, stopped } = of;
        self.0.push(Named { key: *view.key(), application, stopped, payload_octet_count });
    }
}

impl SessionSink<Standard, Of> for Collect {
    fn message(&mut self, _: &mut Flow<'_, Of>, _: &About, _: Message<'_>) {}

    fn session(&mut self, flow: &mut Flow<'_, Of>, event: &SessionEvent) {
        match event {
            SessionEvent::Recognised { protocol, evidence } => {
                flow.state.application.get_or_insert((protocol.name(), evidence.name()));
            }
            SessionEvent::Stopped { about, fault, .. } => {
                flow.state.stopped.get_or_insert((about.protocol.name(), fault.reason()));
            }
            _ => {}
        }
    }
}

/// The flows of a capture, in the order in which they ended, without timeouts.
///
/// # Panics
///
/// If the file cannot be read.
pub(crate) fn of(path: &Path) -> Vec<Named> {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    let pipeline = Pipeline::new(config).expect("a sound configuration");
    let pipeline = pipeline.with_streams(ReassemblerConfig::default()).expect("a sound configuration");
    let mut pipeline: SessionPipeline<Standard, Of> = pipeline.with_sessions(&DriverConfig::default());
    let mut sink = Collect::default();
    let mut source = FileSource::open(path).expect("a readable capture");
    pipeline.run(&mut source, &mut sink).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(pipeline.session_stats().held_bytes, 0, "{}", path.display());
    sink.0
}
