//! Prints the encapsulation of the packets of a capture as a tree of link types, tags and tunnels, with the packets and
//! octets of each branch.
//!
//! cargo run --example encapsulation -- examples/data/vlan.pcapng

use std::collections::BTreeMap;
use std::env;
use std::error::Error;

use flowgauge::base::{Frame, FrameBatch, Limits};
use flowgauge::decode::link::{
    Decapsulated, Decapsulation, IpPacket, TunnelPorts, decapsulate, encapsulation,
};
use flowgauge::source::{FileSource, Next, Source};

/// Packets and octets with a given header, and the inner headers by name.
#[derive(Default)]
struct Branch {
    packet_count: u64,
    octet_count: u64,
    inside: BTreeMap<String, Branch>,
}

impl Branch {
    fn add(&mut self, path: &[String], octets: u64) {
        self.packet_count += 1;
        self.octet_count += octets;
        if let Some((first, rest)) = path.split_first() {
            self.inside.entry(first.clone()).or_default().add(rest, octets);
        }
    }

    fn print(&self, depth: usize) {
        for (name, branch) in &self.inside {
            let name = format!("{:indent$}{name}", "", indent = depth * 2);
            println!("{name:<40} {:>10} packets {:>12} octets", branch.packet_count, branch.octet_count);
            branch.print(depth + 1);
        }
    }
}

/// Returns the names of the headers around a packet, outermost first, and that of the packet.
fn path(frame: &Frame<'_>, packet: &IpPacket) -> Vec<String> {
    let around = encapsulation(frame, Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT);
    let mut path = Vec::new();
    for header in around.headers() {
        path.push(match header.id() {
            Some(id) => format!("{} {id}", header.kind),
            None => header.kind.to_string(),
        });
    }
    path.push(format!("{} {}", packet.ether_type, packet.ip.protocol));
    path
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("usage: encapsulation FILE")?;
    let mut source = FileSource::open(&file)?;
    let (mut batch, mut root) = (FrameBatch::new(), Branch::default());
    let (ports, limits) = (TunnelPorts::DEFAULT, Limits::DEFAULT);
    while source.next_batch(&mut batch)? == Next::Frames {
        for frame in batch.iter() {
            let mut headers = vec![frame.link_type.to_string()];
            match decapsulate(&frame, Decapsulation::Innermost, &ports, &limits) {
                Decapsulated::Packet(packet) => headers.extend(path(&frame, &packet)),
                Decapsulated::Unsupported(why) => headers.push(why.to_string()),
                Decapsulated::Truncated(_) => headers.push("truncated".to_owned()),
                _ => headers.push("malformed".to_owned()),
            }
            root.add(&headers, frame.wire_len.into());
        }
    }
    root.print(0);
    Ok(())
}
