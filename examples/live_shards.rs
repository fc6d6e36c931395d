//! Prints the records of an interface until Ctrl-C, on two shards.
//!
//! cargo run --example live_shards --features live -- eth0

use flowgauge::{Flows, LiveConfig, LiveSource, Pipeline, RunOptions, StopHandle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = std::env::args().nth(1).expect("usage: live_shards INTERFACE");
    let options = RunOptions::default().stop(StopHandle::on_interrupt()?);
    let mut source = LiveSource::open(&device, LiveConfig::default())?;
    let print = |record| println!("{record}");
    Pipeline::builder().run_records::<Flows>(2, &mut source, &options, |_| true, print)?;
    Ok(())
}
