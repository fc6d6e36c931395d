//! Tracks the flows of a capture with flowscope by five-tuple and prints the numbers of packets in flows and of flows.

use std::env;
use std::error::Error;

use flowscope::FlowEvent;
use flowscope::extract::FiveTuple;
use flowscope::pcap::PcapFlowSource;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: flowscope_flows CAPTURE")?;
    let (mut packet_count, mut flow_count) = (0_u64, 0_u64);
    for event in PcapFlowSource::open(path)?.with_extractor(FiveTuple::bidirectional()) {
        match event? {
            FlowEvent::Packet { .. } => packet_count += 1,
            FlowEvent::Ended { .. } => flow_count += 1,
            _ => {}
        }
    }
    println!("{packet_count} packets, {flow_count} flows");
    Ok(())
}
