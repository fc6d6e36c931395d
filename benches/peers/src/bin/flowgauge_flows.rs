//! Tracks the flows of a capture with the library of flowgauge and a sink that does nothing, and prints the numbers of packets
//! and flows.

use std::env;
use std::error::Error;

use flowgauge::{FileSource, Pipeline, RunOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: flowgauge_flows CAPTURE")?;
    let mut pipeline = Pipeline::builder().build(())?;
    let stats = pipeline.run(&mut FileSource::open(path)?, &RunOptions::default())?.stats;
    println!("{} packets, {} flows", stats.frame_count, stats.tracker.started_count);
    Ok(())
}
