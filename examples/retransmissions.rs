//! Prints the time and the octets of TCP retransmissions, and octets that differ from those sent before.
//!
//! cargo run --example retransmissions -- examples/data/lossy.pcap

use std::env;
use std::ops::ControlFlow;

use flowgauge::{
    EndReason, FileSource, Flow, FlowView, Interest, Packet, Pipeline, ReassemblerConfig, RunOptions, Side,
    Sink, StreamEvent, Streams, Timestamp,
};

/// State of a flow: the time of the current packet, and sums by side.
#[derive(Default)]
struct FlowState {
    now: Timestamp,
    octet_counts: [u64; 2],
    repeated_octet_counts: [u64; 2],
}

struct Print;

impl Sink for Print {
    type State = FlowState;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, FlowState>, packet: &Packet<'_>) {
        flow.state.now = packet.timestamp;
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, state: FlowState) {
        for side in [Side::A, Side::B] {
            let (octets, repeated) =
                (state.octet_counts[side.index()], state.repeated_octet_counts[side.index()]);
            if repeated > 0 {
                let port = view.key().port(side).unwrap_or_default();
                println!(
                    "{} port {port}: {repeated} octets repeated, {octets} in the stream",
                    view.address(side)
                );
            }
        }
    }

    fn stream(
        &mut self,
        flow: &mut Flow<'_, FlowState>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let (address, port) = (flow.view.address(side), flow.view.key().port(side).unwrap_or_default());
        let now = flow.state.now;
        match *event {
            StreamEvent::Chunk(chunk) => flow.state.octet_counts[side.index()] = chunk.end(),
            StreamEvent::Gap(gap) => flow.state.octet_counts[side.index()] = gap.offset + gap.len,
            StreamEvent::Repeated { offset, len } => {
                flow.state.repeated_octet_counts[side.index()] += len;
                println!("{now} {address} port {port}: octets {offset} to {} repeated", offset + len);
            }
            StreamEvent::Conflict(conflict) => println!(
                "{now} {address} port {port}: octets from {} on differ from those sent at {}",
                conflict.offset, conflict.old.timestamp
            ),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = env::args().nth(1).expect("usage: retransmissions FILE");
    let mut config = ReassemblerConfig::default();
    config.compared_len = 1 << 16;
    let mut pipeline = Pipeline::builder().streams(config).build(Print)?;
    pipeline.run(&mut FileSource::open(path)?, &RunOptions::default())?;
    Ok(())
}
