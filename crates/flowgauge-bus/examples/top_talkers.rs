//! Prints the ten hosts with the most octets among the flows that ended, every second.
//!
//! ```sh
//! flowgauge publish -i eth0 --bind tcp://127.0.0.1:5556 &
//! cargo run -p flowgauge-bus --example top_talkers -- tcp://127.0.0.1:5556
//! ```

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use flowgauge_bus::Subscriber;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint = std::env::args().nth(1).ok_or("usage: top_talkers ENDPOINT")?;
    let mut subscriber = Subscriber::connect(&endpoint)?.subscribe("flow.end")?;
    let mut octets: HashMap<IpAddr, u64> = HashMap::new();
    let mut next_print = Instant::now() + Duration::from_secs(1);
    while !subscriber.has_ended() {
        if let Some(batch) = subscriber.recv(Duration::from_millis(100))? {
            for record in batch.records() {
                let record = record?;
                let (source, destination) = record.addresses();
                *octets.entry(source).or_default() += record.octet_count();
                *octets.entry(destination).or_default() += record.reverse_octet_count();
            }
        }
        if Instant::now() >= next_print || subscriber.has_ended() {
            next_print += Duration::from_secs(1);
            print_top(&octets);
        }
    }
    let stats = subscriber.stats();
    println!("{} records, {} lost", stats.record_count, stats.lost_count);
    Ok(())
}

fn print_top(octets: &HashMap<IpAddr, u64>) {
    let mut hosts: Vec<_> = octets.iter().collect();
    hosts.sort_by_key(|(address, octets)| (std::cmp::Reverse(**octets), **address));
    println!("{:>15}  host", "octets sent");
    for (address, octets) in hosts.into_iter().take(10) {
        println!("{octets:>15}  {address}");
    }
}
