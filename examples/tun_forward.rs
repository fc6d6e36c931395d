//! Forwards packets between two TUN devices and prints their flows at the end.
//!
//! ```text
//! tun_forward LEFT RIGHT [--offload] [--channel] [--async] [--seconds N]
//! ```
//!
//! The three options give the eight configurations of the published benchmark of tun-rs. The devices are created without
//! addresses; the line `ready` on standard output means that they exist and can be moved to a network namespace.
//! `benches/tun/run.sh` shows how, and compares the bit rates. Needs root or the capability `CAP_NET_ADMIN`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use flowgauge::pipeline::{DeviceSide, Forwarder};
use flowgauge::source::{TunConfig, TunDevice};
use flowgauge::{Pipeline, Records, StopHandle};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let [left, right, ..] = &*arguments else {
        return Err("usage: tun_forward LEFT RIGHT [--offload] [--channel] [--async] [--seconds N]".into());
    };
    let seconds = arguments.iter().skip_while(|argument| *argument != "--seconds").nth(1);
    let seconds: u64 = seconds.map_or(Ok(10), |text| text.parse())?;

    let mut config = TunConfig::default();
    config.offload = has("--offload");
    let pipeline = Pipeline::builder().build(Records::new(|record| {
        println!("{} {} packets {} octets", record.key, record.packet_count(), record.octet_count());
    }))?;
    let (left, right) = (TunDevice::open(left, config)?, TunDevice::open(right, config)?);
    let mut forwarder = Forwarder::new(pipeline, (), left, right)?
        .channel(has("--channel").then_some(128))
        // For the benchmark, which measures the cost of tracking.
        .tracking(!has("--no-tracking"));

    let stop = StopHandle::new();
    let timer = stop.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(seconds));
        timer.stop();
    });
    println!("ready");
    if has("--async") {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(forwarder.run_async(&stop))?;
    } else {
        forwarder.run(&stop)?;
    }
    for side in [DeviceSide::Left, DeviceSide::Right] {
        println!("{side:?}: {:?}", forwarder.stats(side));
    }
    Ok(())
}
