//! A sink that checks the calls of a pipeline: each flow starts once and ends once, there are no calls for a muted flow
//! or for a stopped direction, and the octets of a direction are contiguous.

use std::ops::ControlFlow;

use super::dialogue::json;
use flowgauge::base::{EndReason, Side};
use flowgauge::decode::extractor::Packet;
use flowgauge::pipeline::{Flows, Sessions, Sink, Streams};
use flowgauge::protocols::{Message, Standard};
use flowgauge::reassembler::StreamEvent;
use flowgauge::record::FlowRecord;
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::tracker::{Flow, FlowEvent, FlowView, Interest};

/// Maximum length of the text of a message relative to the octets that the parsers may keep, so that the output is
/// bounded.
const TEXT_LEN_MAX: usize = 64 << 20;

/// State of a flow.
#[derive(Debug, Default)]
pub struct Log {
    has_started: bool,
    is_muted: bool,
    /// For each side: number of delivered octets, and whether it has ended or was stopped.
    offsets: [u64; 2],
    is_over: [bool; 2],
    is_stopped: [bool; 2],
    /// Messages and events of the session if the observer keeps them.
    pub lines: Vec<String>,
}

/// Sums of the records of an observer.
#[derive(Debug, Default)]
pub struct Totals {
    pub started_count: u64,
    pub ended_count: u64,
    pub packet_count: u64,
    pub octet_count: u64,
    /// Packets and octets that flows carried for inner flows.
    pub carried_packet_count: u64,
    pub carried_octet_count: u64,
    pub message_count: u64,
}

#[derive(Debug, Default)]
pub struct Observer {
    pub totals: Totals,
    /// Mutes the flow of the next callback.
    pub mutes_next: bool,
    /// Stops the direction of the next stream event.
    pub stops_next: bool,
    /// Keeps lines and records.
    pub keeps: bool,
    pub ended: Vec<(FlowRecord, Vec<String>)>,
}

impl Observer {
    /// Creates an observer that keeps all reports for comparison.
    pub fn with_reports() -> Self {
        Self { keeps: true, ..Self::default() }
    }

    fn check_call(&mut self, flow: &mut Flow<'_, Log>) {
        assert!(flow.state.has_started, "a call for a flow that has not started");
        assert!(!flow.state.is_muted, "a call for a muted flow");
        if std::mem::take(&mut self.mutes_next) {
            flow.state.is_muted = true;
            flow.mute();
        }
    }

    fn add_record(&mut self, record: FlowRecord, lines: Vec<String>) {
        self.totals.packet_count += record.packet_count();
        self.totals.octet_count += record.octet_count();
        if let Some(part) = &record.encapsulation {
            self.totals.carried_packet_count += part.carried_packet_count;
            self.totals.carried_octet_count += part.carried_octet_count;
        }
        if self.keeps {
            self.ended.push((record, lines));
        }
    }
}

/// Functions of the sinks below.
impl Observer {
    fn started(&mut self, flow: &mut Flow<'_, Log>) {
        assert!(!std::mem::replace(&mut flow.state.has_started, true), "a flow started twice");
        self.totals.started_count += 1;
        self.check_call(flow);
    }

    fn packet(&mut self, flow: &mut Flow<'_, Log>, packet: &Packet<'_>) {
        assert_eq!(*flow.view.key(), packet.key);
        self.check_call(flow);
    }

    /// Called for muted flows too. The last record is kept with its lines when the flow ends.
    fn record(&mut self, flow: &mut Flow<'_, Log>, reason: EndReason) {
        assert!(!flow.view.is_empty(), "a record without packets");
        if reason == EndReason::ActiveTimeout {
            self.add_record(flow.view.record(reason), Vec::new());
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, log: Log) {
        assert!(log.has_started, "a flow ended that had not started");
        self.totals.ended_count += 1;
        let record = view.record(reason);
        assert!(record.end >= record.start || record.packet_count() == 0);
        self.add_record(record, log.lines);
    }

    fn stream(&mut self, flow: &mut Flow<'_, Log>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let log = &mut *flow.state;
        let number = side.index();
        assert!(!log.is_stopped[number], "a call for a stopped direction");
        assert!(
            !log.is_over[number] || !matches!(event, StreamEvent::Chunk(_)),
            "octets after the end of a direction"
        );
        let offset = &mut log.offsets[number];
        match event {
            StreamEvent::Chunk(chunk) => {
                assert_eq!(chunk.offset, *offset);
                assert!(!chunk.bytes.is_empty());
                *offset += chunk.bytes.len() as u64;
            }
            StreamEvent::Gap(gap) => {
                assert_eq!(gap.offset, *offset);
                assert!(gap.len > 0);
                *offset += gap.len;
                if gap.reason.name() == "resynchronized" {
                    log.is_over[number] = false;
                }
            }
            StreamEvent::Fin { offset: end, .. } => {
                assert_eq!(end, offset);
                log.is_over[number] = true;
            }
            StreamEvent::Poisoned { .. } => log.is_over[number] = true,
            _ => {}
        }
        if self.keeps {
            log.lines.push(format!("{side:?} {event:?}"));
        }
        self.check_call(flow);
        if std::mem::take(&mut self.stops_next) {
            flow.state.is_stopped[number] = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn message(&mut self, flow: &mut Flow<'_, Log>, meta: &MessageMeta, message: &Message<'_>) {
        self.totals.message_count += 1;
        let json = json(message);
        assert!(json.len() < TEXT_LEN_MAX);
        if self.keeps {
            // The timestamp of octets held after a hole depends on the call in which the hole became due.
            flow.state.lines.push(format!("{} {} {message:.0?}", meta.protocol, meta.from.name()));
        }
        self.check_call(flow);
    }

    fn session(&mut self, flow: &mut Flow<'_, Log>, event: &SessionEvent) {
        if self.keeps {
            flow.state.lines.push(match event {
                SessionEvent::Recognized { protocol, evidence } => {
                    format!("{protocol} by {}", evidence.name())
                }
                SessionEvent::Stopped { meta, fault, .. } => format!("{} stopped: {fault}", meta.protocol),
                _ => String::from("another event"),
            });
        }
        self.check_call(flow);
    }
}

/// Access to the observer of a pipeline.
pub trait Observing: Sink<State = Log> {
    fn observer(&self) -> &Observer;
    fn observer_mut(&mut self) -> &mut Observer;
}

macro_rules! observing {
    ($(#[$doc:meta])* $Name:ident, $Stage:ty { $($method:item)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $Name(pub Observer);

        impl Sink for $Name {
            type State = Log;
            type Stage = $Stage;

            fn interest(&self) -> Interest {
                Interest::ALL
            }

            fn started(&mut self, flow: &mut Flow<'_, Log>) {
                self.0.started(flow);
            }

            fn packet(&mut self, flow: &mut Flow<'_, Log>, packet: &Packet<'_>) {
                self.0.packet(flow, packet);
            }

            fn event(&mut self, flow: &mut Flow<'_, Log>, _: &FlowEvent) {
                self.0.check_call(flow);
            }

            fn record(&mut self, flow: &mut Flow<'_, Log>, reason: EndReason) {
                self.0.record(flow, reason);
            }

            fn neighbor(&mut self, neighbor: &flowgauge::neighbor::Neighbor<'_>) {
                // All values can be written.
                let _ = format!("{:?}", flowgauge::row::Union::row(&neighbor.message));
            }

            fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, log: Log) {
                self.0.ended(view, reason, log);
            }

            $($method)*
        }

        impl Observing for $Name {
            fn observer(&self) -> &Observer {
                &self.0
            }

            fn observer_mut(&mut self) -> &mut Observer {
                &mut self.0
            }
        }
    };
}

observing! {
    /// Observes flows.
    FlowObserver, Flows {}
}

observing! {
    /// Observes flows and streams.
    StreamObserver, Streams {
        fn stream(
            &mut self,
            flow: &mut Flow<'_, Log>,
            side: Side,
            event: &StreamEvent<'_>,
        ) -> ControlFlow<()> {
            self.0.stream(flow, side, event)
        }
    }
}

observing! {
    /// Observes flows and sessions.
    SessionObserver, Sessions<Standard> {
        fn message(&mut self, flow: &mut Flow<'_, Log>, meta: &MessageMeta, message: &Message<'_>) {
            self.0.message(flow, meta, message);
        }

        fn session(&mut self, flow: &mut Flow<'_, Log>, event: &SessionEvent) {
            self.0.session(flow, event);
        }
    }
}
