//! Prints the records of an interface until Ctrl-C.
//!
//! cargo run --example live --features live -- eth0

use flowgauge::{LiveConfig, LiveSource, Pipeline, Records, RunOptions, StopHandle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = std::env::args().nth(1).expect("usage: live INTERFACE");
    let options = RunOptions::default().stop(StopHandle::on_interrupt()?);
    let mut pipeline = Pipeline::builder().build(Records::new(|record| println!("{record}")))?;
    pipeline.run(&mut LiveSource::open(&device, LiveConfig::default())?, &options)?;
    Ok(())
}
