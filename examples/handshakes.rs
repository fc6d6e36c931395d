//! What happens on TCP flows while they live: handshakes with their round-trip time, refusals, odd segments.
//!
//! cargo run --example handshakes -- examples/data/web.pcap

use std::env;
use std::error::Error;

use flowgauge::pipeline::Pipeline;
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowEvent, FlowSink, Interest};

struct Watch;

impl FlowSink<()> for Watch {
    fn interest(&self) -> Interest {
        Interest::EVENTS
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        let key = flow.view.key();
        match event {
            FlowEvent::Established { handshake_rtt: Some(rtt) } => println!("{key} established in {rtt:?}"),
            FlowEvent::Established { handshake_rtt: None } => {
                println!("{key} established, its beginning unseen")
            }
            FlowEvent::StateChanged { to, .. } if to.is_closed() => println!("{key} {to}"),
            FlowEvent::Anomaly(anomaly) => println!("{key} {anomaly:?}"),
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: handshakes FILE")?;
    Pipeline::default().run(&mut FileSource::open(&path)?, &mut Watch)?;
    Ok(())
}
