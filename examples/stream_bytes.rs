//! Prints the octets of TCP streams in order, and the gaps in them.
//!
//! cargo run --example stream_bytes -- examples/data/lossy.pcap

use flowgauge::{FileSource, Flow, Pipeline, RunOptions, Side, Sink, StreamEvent, Streams};
use std::ops::ControlFlow;

struct Print;

impl Sink for Print {
    type State = ();
    type Stage = Streams;

    fn stream(&mut self, flow: &mut Flow<'_, ()>, side: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        let sender = flow.view.address(side);
        match event {
            StreamEvent::Chunk(chunk) => println!("{sender} {} {}", chunk.offset, chunk.bytes.escape_ascii()),
            StreamEvent::Gap(gap) => println!("{sender} {} {} octets are missing", gap.offset, gap.len),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = std::env::args().nth(1).expect("usage: stream_bytes FILE");
    Pipeline::builder().build(Print)?.run(&mut FileSource::open(path)?, &RunOptions::default())?;
    Ok(())
}
