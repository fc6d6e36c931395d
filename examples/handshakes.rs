//! Prints the events of TCP flows: handshakes with their round-trip time, state changes, and anomalies.
//!
//! cargo run --example handshakes -- examples/data/web.pcap

use std::env;

use flowgauge::{FileSource, Flow, FlowEvent, Flows, Interest, Pipeline, RunOptions, Sink};

struct Watch;

impl Sink for Watch {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::EVENTS
    }

    fn event(&mut self, flow: &mut Flow<'_, ()>, event: &FlowEvent) {
        let key = flow.view.key();
        match event {
            FlowEvent::Established { handshake_rtt: Some(rtt) } => println!("{key} established in {rtt:?}"),
            FlowEvent::Established { handshake_rtt: None } => {
                println!("{key} established, the handshake was not captured")
            }
            FlowEvent::StateChanged { to, .. } if to.is_closed() => println!("{key} {to}"),
            FlowEvent::Anomaly(anomaly) => println!("{key} {anomaly:?}"),
            _ => {}
        }
    }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = env::args().nth(1).expect("usage: handshakes FILE");
    Pipeline::builder().build(Watch)?.run(&mut FileSource::open(&path)?, &RunOptions::default())?;
    Ok(())
}
