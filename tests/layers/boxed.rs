//! Sinks behind a pointer receive what sinks of a known type receive.

use std::ops::ControlFlow;

use flowgauge::pipeline::boxed;
use flowgauge::reassembler::StreamEvent;
use flowgauge::{
    EndReason, FileSource, Flow, FlowEvent, FlowView, Interest, Packet, Pipeline, RunOptions, Side, Sink,
    Streams,
};

/// What a sink keeps for a flow.
#[derive(Debug, Default)]
struct Counts {
    started_count: u64,
    packet_count: u64,
    event_count: u64,
    octets: Vec<u8>,
}

/// Writes all calls down.
#[derive(Debug, Default)]
struct Journal {
    lines: Vec<String>,
    /// Number of flows that have begun and not ended.
    open_count: u64,
}

impl Sink for Journal {
    type State = Counts;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::ALL
    }

    fn started(&mut self, flow: &mut Flow<'_, Counts>) {
        flow.state.started_count += 1;
        self.open_count += 1;
    }

    fn packet(&mut self, flow: &mut Flow<'_, Counts>, packet: &Packet<'_>) {
        flow.state.packet_count += 1;
        // Some flows are muted, which the pipeline has to learn.
        if packet.key.protocol().0 == 17 && flow.state.packet_count == 2 {
            flow.mute();
        }
    }

    fn event(&mut self, flow: &mut Flow<'_, Counts>, event: &FlowEvent) {
        flow.state.event_count += 1;
        self.lines.push(format!("{event:?}"));
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, Counts>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        if let StreamEvent::Chunk(chunk) = event {
            flow.state.octets.extend_from_slice(chunk.bytes);
        }
        if side == Side::A && flow.state.octets.len() > 4000 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn record(&mut self, flow: &mut Flow<'_, Counts>, reason: EndReason) {
        self.lines.push(format!("{:?}", flow.view.record(reason)));
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, state: Counts) {
        self.open_count -= 1;
        self.lines.push(format!("{:?} {reason:?} {state:?}", view.key()));
    }
}

fn run(path: &str, sink: impl Sink<Stage = Streams>) {
    let mut source = FileSource::open(path).unwrap();
    let summary = Pipeline::builder().build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
    assert!(summary.stats.tracker.started_count > 0);
}

#[test]
fn a_sink_behind_a_pointer_receives_the_same_calls() {
    for path in ["examples/data/web.pcap", "examples/data/dns.pcap"] {
        let (mut direct, mut pointed) = (Journal::default(), Journal::default());
        run(path, &mut direct);
        run(path, boxed(&mut pointed));
        assert!(direct.lines.len() > 2, "{path}");
        assert_eq!(direct.lines, pointed.lines, "{path}");
        assert_eq!((direct.open_count, pointed.open_count), (0, 0));
    }
}

/// The states that are allocated for open flows are charged, and released with the flows, except for at most 64 that later
/// flows use.
#[test]
fn allocated_states_are_held() {
    let mut journal = Journal::default();
    let mut sink = boxed(&mut journal);
    assert_eq!(sink.held_bytes(0), 0);
    let mut pipeline = Pipeline::builder().build(&mut sink).unwrap();
    let mut source = FileSource::open("examples/data/web.pcap").unwrap();
    pipeline.feed(&mut source, &RunOptions::default()).unwrap();
    let tracker = pipeline.stats().tracker;
    let open_count = tracker.started_count - tracker.ended_count();
    let held = pipeline.sink_mut().held_bytes(0);
    assert!(
        open_count > 0 && held >= open_count * size_of::<Counts>() as u64,
        "{open_count} flows hold {held}"
    );
    pipeline.finish();
    drop(pipeline);
    let spare_count = tracker.started_count.min(64);
    assert_eq!(sink.held_bytes(0), spare_count * held / open_count);
}
