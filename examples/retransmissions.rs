//! Watches what TCP sends again: when, and which octets of the stream; and octets that differ from
//! those sent before.
//!
//! cargo run --example retransmissions -- examples/data/lossy.pcap

use std::env;
use std::error::Error;
use std::ops::ControlFlow;

use flowgauge::base::{EndReason, Side, Timestamp};
use flowgauge::extractor::Packet;
use flowgauge::pipeline::{Pipeline, StreamSink};
use flowgauge::reassembler::{ReassemblerConfig, StreamEvent};
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest, TrackerConfig};

/// What is kept per flow: the time of the packet at hand, and sums by side.
#[derive(Default)]
struct Watch {
    now: Timestamp,
    octet_counts: [u64; 2],
    repeated_octet_counts: [u64; 2],
}

struct Print;

impl FlowSink<Watch> for Print {
    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, Watch>, packet: &Packet<'_>) {
        flow.state.now = packet.timestamp;
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, watch: Watch) {
        for side in [Side::A, Side::B] {
            let (octets, again) =
                (watch.octet_counts[side.index()], watch.repeated_octet_counts[side.index()]);
            if again > 0 {
                let port = view.key().port(side);
                println!("{} port {port}: {again} octets again, {octets} of the stream", view.address(side));
            }
        }
    }
}

impl StreamSink<Watch> for Print {
    fn stream(&mut self, flow: &mut Flow<'_, Watch>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let (address, port) = (flow.view.address(side), flow.view.key().port(side));
        let now = flow.state.now;
        match *event {
            StreamEvent::Chunk(chunk) => flow.state.octet_counts[side.index()] = chunk.end(),
            StreamEvent::Gap(gap) => flow.state.octet_counts[side.index()] = gap.offset + gap.len,
            StreamEvent::Repeated { offset, len } => {
                flow.state.repeated_octet_counts[side.index()] += len;
                println!("{now} {address} port {port}: octets {offset} to {} again", offset + len);
            }
            StreamEvent::Conflict(conflict) => println!(
                "{now} {address} port {port}: octets from {} on differ from those of {}",
                conflict.offset, conflict.old.timestamp
            ),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: retransmissions FILE")?;
    let pipeline: Pipeline<_> = Pipeline::new(TrackerConfig::default())?;
    let mut config = ReassemblerConfig::default();
    config.compared_len = 1 << 16;
    let mut pipeline = pipeline.with_streams(config)?;
    pipeline.run(&mut FileSource::open(&path)?, &mut Print)?;
    Ok(())
}
