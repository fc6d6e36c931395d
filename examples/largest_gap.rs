//! Prints the longest time between two packets of each flow, for which the sink keeps a state per flow.
//!
//! cargo run --example largest_gap -- examples/data/web.pcap

use flowgauge::{EndReason, FileSource, Flow, Flows, Packet, Pipeline, RunOptions, Sink, Timestamp};
use std::time::Duration;

struct LargestGap;

impl Sink for LargestGap {
    type State = (Option<Timestamp>, Duration);
    type Stage = Flows;

    fn packet(&mut self, flow: &mut Flow<'_, Self::State>, packet: &Packet<'_>) {
        let (last, largest) = flow.state;
        let gap = last.map_or(Duration::ZERO, |last| packet.timestamp.saturating_since(last));
        (*last, *largest) = (Some(packet.timestamp), gap.max(*largest));
    }

    fn record(&mut self, flow: &mut Flow<'_, Self::State>, _: EndReason) {
        println!("{} {:?}", flow.view.key(), flow.state.1);
    }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = std::env::args().nth(1).expect("usage: largest_gap FILE");
    Pipeline::builder().build(LargestGap)?.run(&mut FileSource::open(path)?, &RunOptions::default())?;
    Ok(())
}
