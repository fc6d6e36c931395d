//! A sink with a state of its own: the first payload octets of each flow, after which the flow is muted, so that its
//! other packets cost no call.
//!
//! cargo run --example first_bytes -- examples/data/mail.pcap

use std::env;
use std::error::Error;

use flowgauge::base::EndReason;
use flowgauge::extractor::Packet;
use flowgauge::pipeline::Pipeline;
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest, TrackerConfig};

const WANTED: usize = 48;

/// What is kept per flow.
#[derive(Default)]
struct FirstBytes(Vec<u8>);

struct Print;

impl FlowSink<FirstBytes> for Print {
    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, FirstBytes>, packet: &Packet<'_>) {
        let FirstBytes(kept) = &mut *flow.state;
        let missing = WANTED - kept.len();
        kept.extend(packet.payload().iter().take(missing));
        if kept.len() == WANTED {
            flow.mute();
        }
    }

    fn ended(&mut self, flow: &FlowView<'_>, _reason: EndReason, FirstBytes(kept): FirstBytes) {
        println!("{}\n    {}", flow.key(), kept.escape_ascii());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: first_bytes FILE")?;
    let mut pipeline: Pipeline<FirstBytes> = Pipeline::new(TrackerConfig::default())?;
    pipeline.run(&mut FileSource::open(&path)?, &mut Print)?;
    Ok(())
}
