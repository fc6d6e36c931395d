//! Prints the first payload octets of each flow. The sink keeps a state per flow, and mutes the flow after these
//! octets, so that it is not called for further packets.
//!
//! cargo run --example first_bytes -- examples/data/mail.pcap

use std::env;

use flowgauge::{EndReason, FileSource, Flow, FlowView, Flows, Interest, Packet, Pipeline, RunOptions, Sink};

const LEN: usize = 48;

/// State of a flow.
#[derive(Default)]
struct FirstBytes(Vec<u8>);

struct Print;

impl Sink for Print {
    type State = FirstBytes;
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, FirstBytes>, packet: &Packet<'_>) {
        let FirstBytes(kept) = &mut *flow.state;
        let missing = LEN - kept.len();
        kept.extend(packet.payload().iter().take(missing));
        if kept.len() == LEN {
            flow.mute();
        }
    }

    fn ended(&mut self, flow: &FlowView<'_>, _reason: EndReason, FirstBytes(kept): FirstBytes) {
        println!("{}\n    {}", flow.key(), kept.escape_ascii());
    }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = env::args().nth(1).expect("usage: first_bytes FILE");
    Pipeline::builder().build(Print)?.run(&mut FileSource::open(&path)?, &RunOptions::default())?;
    Ok(())
}
