//! What benches count.

use std::ops::ControlFlow;

use flowgauge::base::{EndReason, Side};
use flowgauge::tracker::{Flow, FlowView, Interest, Observer};
use flowgauge::{Sink, StreamEvent, Streams};

/// Counts the flows that end and their packets. Requests no other events.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) flow_count: u64,
    pub(crate) packet_count: u64,
}

impl Observer<()> for Ends {
    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn ended(&mut self, flow: &FlowView<'_>, _: EndReason, (): ()) {
        self.flow_count += 1;
        self.packet_count += flow.packet_count();
    }
}

/// Counts the octets of streams.
#[derive(Debug, Default)]
pub(crate) struct Octets(pub(crate) u64);

impl Sink for Octets {
    type State = ();
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    #[inline]
    fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        if let StreamEvent::Chunk(chunk) = event {
            self.0 += chunk.bytes.len() as u64;
        }
        ControlFlow::Continue(())
    }
}
