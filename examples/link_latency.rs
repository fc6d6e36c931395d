//! Prints a table of the latencies of the conversion between an Ethernet frame and its IP packet in both directions.
//!
//! Reading the clock costs more than the measured call. Therefore each sample is the mean of a batch of 256 calls, and
//! the tail is that of a batch (interrupts, other programs), not of a single call. The frames are those of a capture,
//! or generated ones without an argument.
//!
//! cargo run --release --example link_latency -- examples/data/web.pcap

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use flowgauge::base::{FrameBatch, LinkType, VlanIds};
use flowgauge::source::{FileSource, Next, Source};
use flowgauge::tap::{EthernetHeader, NotIp, ethernet_to_ip, ip_to_ethernet};

const BATCH: usize = 256;
const SAMPLES: usize = 50_000;

/// A ring of frames with headroom, which each start at a cache line.
struct Ring {
    octets: Vec<u8>,
    /// Start and end of each frame.
    frames: Vec<(usize, usize)>,
}

impl Ring {
    fn new() -> Self {
        Self { octets: Vec::new(), frames: Vec::new() }
    }

    fn push(&mut self, frame: &[u8]) {
        let start = self.octets.len().next_multiple_of(64) + 64;
        self.octets.resize(start, 0);
        self.octets.extend_from_slice(frame);
        self.frames.push((start, start + frame.len()));
    }
}

fn from_capture(path: &str) -> Result<Ring, Box<dyn Error>> {
    let mut ring = Ring::new();
    let mut source = FileSource::open(path)?;
    let mut batch = FrameBatch::new();
    while source.next_batch(&mut batch)? == Next::Frames {
        let ethernet = batch.iter().filter(|frame| frame.link_type == LinkType::ETHERNET);
        ethernet.for_each(|frame| ring.push(frame.data));
    }
    Ok(ring)
}

/// Generates `count` frames of a given length.
fn generated(len: usize, count: usize) -> Ring {
    let mut ring = Ring::new();
    for number in 0..count {
        let mut frame = vec![number as u8; len];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..16].copy_from_slice(&[0x45, 0]);
        frame[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
        ring.push(&frame);
    }
    ring
}

/// Measures the nanoseconds per call and returns one value per batch, sorted.
fn samples(ring: &mut Ring, mut call: impl FnMut(&mut [u8])) -> Vec<f64> {
    let mut out = Vec::with_capacity(SAMPLES);
    let mut frames = ring.frames.iter().cycle();
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for (start, end) in frames.by_ref().take(BATCH) {
            call(black_box(&mut ring.octets[start - EthernetHeader::LEN_MAX..*end]));
        }
        out.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    out.sort_by(f64::total_cmp);
    out
}

fn row(name: &str, samples: &[f64]) {
    let at = |share: f64| samples[((samples.len() - 1) as f64 * share) as usize];
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let values = [at(0.0), mean, at(0.5), at(0.9), at(0.99), at(0.999), at(1.0)];
    print!("{name:<28}");
    values.iter().for_each(|value| print!("{value:>9.2}"));
    println!();
}

fn rows(name: &str, ring: &mut Ring) {
    let header = EthernetHeader::new([2; 6], [4; 6], VlanIds::NONE);
    let mut packet_len = 0;
    let mut other_count = 0_usize;
    let to_ip = samples(ring, |position| match ethernet_to_ip(&position[EthernetHeader::LEN_MAX..]) {
        Ok(packet) => packet_len += packet.len(),
        Err(NotIp::Unsupported(_)) => other_count += 1,
        Err(_) => {}
    });
    row(&format!("ethernet_to_ip {name}"), &to_ip);
    let to_ethernet = samples(ring, |position| {
        // After the original header of the frame, if it has no tags.
        let offset = EthernetHeader::LEN_MAX + 14;
        packet_len += ip_to_ethernet(position, offset, &header).map_or(0, |frame| frame.len());
    });
    row(&format!("ip_to_ethernet {name}"), &to_ethernet);
    black_box((packet_len, other_count));
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{SAMPLES} batches of {BATCH} calls each; nanoseconds per call");
    print!("{:<28}", "");
    ["min", "mean", "p50", "p90", "p99", "p99.9", "max"].iter().for_each(|name| print!("{name:>9}"));
    println!();
    match env::args().nth(1) {
        Some(path) => {
            let mut ring = from_capture(&path)?;
            if ring.frames.is_empty() {
                println!("{path}: no Ethernet frames");
                return Ok(());
            }
            rows("capture", &mut ring);
        }
        None => {
            rows("64 hot", &mut generated(64, 1));
            rows("1400 hot", &mut generated(1400, 1));
            rows("64 pool", &mut generated(64, 1 << 17));
            rows("1400 pool", &mut generated(1400, 1 << 13));
        }
    }
    Ok(())
}
