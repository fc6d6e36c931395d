//! Prints the record of each flow of a capture.
//!
//! cargo run --example flows -- examples/data/web.pcap

use std::env;
use std::error::Error;

use flowgauge::pipeline::{Pipeline, Records};
use flowgauge::source::{FileSource, Source};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: flows FILE")?;
    let mut source = FileSource::open(&path)?;
    let mut pipeline = Pipeline::default();
    let mut sink = Records::new(|record| {
        println!(
            "{} {}:{} -> {}:{} {} {} packets, {} octets",
            record.protocol(),
            record.source_address(),
            record.source_port(),
            record.destination_address(),
            record.destination_port(),
            record.conn_state,
            record.packet_count(),
            record.octet_count(),
        );
    });
    pipeline.run(&mut source, &mut sink)?;
    for warning in source.warnings() {
        eprintln!("{warning}");
    }
    for (reason, count) in pipeline.stats().skipped.reasons() {
        eprintln!("{count} frames skipped: {reason}");
    }
    Ok(())
}
