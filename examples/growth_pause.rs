//! Measures the longest pauses while a flow table grows to a million flows, with and without huge pages: times of
//! batches of 32 new flows. The time of a batch is the minimum of several runs with the same seeds, which excludes the
//! influence of other programs, and pauses that do not occur in each run: the maximum of the first run has them.
//!
//! cargo run --release --example growth_pause

use std::error::Error;
use std::time::Instant;

use flowgauge::base::{FlowKey, IpProtocol, Limits, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::decode::extractor::{Packet, Transport};
use flowgauge::tracker::{Tracker, TrackerConfig};

const BATCH_LEN: u32 = 32;
const RUN_COUNT: usize = 6;

fn segment(flow: u32) -> Packet<'static> {
    let [_, a, b, c] = flow.to_be_bytes();
    let ends = (([10, a, b, c].into(), 40_000), ([192, 0, 2, 1].into(), 443));
    let (key, side) = FlowKey::new(IpProtocol::TCP, ends.0, ends.1);
    let mut packet = Packet::new(key, side, Timestamp::ZERO, &[]);
    packet.transport = Transport::Tcp;
    (packet.tcp.seq, packet.tcp.flags) = (SeqNum(1), TcpFlags::ACK);
    packet
}

fn main() -> Result<(), Box<dyn Error>> {
    let batch_count = Limits::DEFAULT.flow_count_max / BATCH_LEN;
    println!("batches of {BATCH_LEN} new flows up to {} flows, in ns", batch_count * BATCH_LEN);
    for huge_pages in [false, true] {
        println!("\nhuge pages: {huge_pages}");
        measure(batch_count, huge_pages)?;
    }
    Ok(())
}

fn measure(batch_count: u32, huge_pages: bool) -> Result<(), Box<dyn Error>> {
    let resources = Resources::default().with_seeds([1, 2, 3, 4]);
    let mut config = TrackerConfig::default();
    config.huge_pages = huge_pages;
    let mut min_ns = vec![u128::MAX; batch_count as usize];
    let mut first_max_ns = 0;
    for run in 0..RUN_COUNT {
        let mut tracker: Tracker<()> = Tracker::new(config.clone(), &resources)?;
        for (batch, min_ns) in (0..batch_count).zip(&mut min_ns) {
            let started = Instant::now();
            for flow in 0..BATCH_LEN {
                tracker.track(&segment(batch * BATCH_LEN + flow), &mut ());
            }
            *min_ns = started.elapsed().as_nanos().min(*min_ns);
        }
        assert_eq!(tracker.len() as u32, batch_count * BATCH_LEN);
        if run == 0 {
            first_max_ns = min_ns.iter().copied().max().unwrap_or_default();
        }
    }
    min_ns.sort_unstable();
    let at = |share: f64| min_ns[((min_ns.len() - 1) as f64 * share) as usize];
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
        println!("{name:18} {:9}", at(share));
    }
    println!("{:18} {first_max_ns:9}", "max, first run");
    Ok(())
}
