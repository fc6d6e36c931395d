//! Prints the balance of shards for the flows of a capture: the packets of the fullest shard divided by the mean per
//! shard. No hash can distribute the packets of a few large flows evenly.
//!
//! cargo run --release --example shard_balance -- examples/data/web.pcap

use std::env;
use std::error::Error;
use std::hash::{BuildHasher as _, RandomState};

use flowgauge::{FileSource, FlowRecord, records};

const SEED_COUNT: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: shard_balance FILE")?;
    let packets_of = |record: FlowRecord| (record.key, record.packet_count());
    let flows: Vec<_> =
        records(FileSource::open(&path)?).map(|record| record.map(packets_of)).collect::<Result<_, _>>()?;
    let packet_count: u64 = flows.iter().map(|(_, count)| count).sum();
    let largest = flows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    println!("{} flows, {packet_count} packets, {largest} packets in the largest flow", flows.len());
    println!("shards  median  worst of {SEED_COUNT} seeds");
    for shard_count in [2_u64, 4, 8, 16, 32, 64] {
        let mut ratios: Vec<f64> = (0..SEED_COUNT)
            .map(|_| {
                let seeds = RandomState::new();
                let mut packets = vec![0; shard_count as usize];
                for (key, count) in &flows {
                    let spread = u128::from(seeds.hash_one(key)) * u128::from(shard_count);
                    packets[(spread >> 64) as usize] += count;
                }
                let fullest = packets.iter().max().copied().unwrap_or(0);
                fullest as f64 * shard_count as f64 / packet_count as f64
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        println!("{shard_count:6}  {:6.2}  {:6.2}", ratios[SEED_COUNT / 2], ratios[SEED_COUNT - 1]);
    }
    Ok(())
}
