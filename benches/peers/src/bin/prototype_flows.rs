//! A flow table without everything that makes flow records correct: what reading and counting by five-tuple cost at least.
//!
//! The file is mapped, and packets are processed in batches of 32: first the keys and their hashes, then the places in the
//! index, then the flows, so that cache misses overlap. A list keeps the flows in the order of their last packets. There
//! are no states of TCP, no timeouts, fragments, tunnels, link types other than Ethernet, and no output.

use std::env;
use std::error::Error;
use std::fs::File;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use memmap2::MmapOptions;

/// Number of packets that are processed together.
const BATCH_LEN: usize = 32;

/// Marks the end of the list, and a place of the index without a flow.
const NONE: u32 = u32::MAX;

/// Addresses, ports and protocol, the lower end first.
type Key = [u64; 5];

/// A flow: key, packets and octets, times of the first and the last packet, neighbors in the list.
struct Flow {
    key: Key,
    packet_counts: [u64; 2],
    octet_counts: [u64; 2],
    start: u64,
    end: u64,
    previous: u32,
    next: u32,
}

/// A packet with its key; `side` is the end that sent it.
#[derive(Clone, Copy, Default)]
struct Packet {
    key: Key,
    side: usize,
    len: u64,
    time: u64,
    hash: u64,
    place: usize,
}

#[derive(Default)]
struct Table {
    index: Vec<(u32, u32)>,
    flows: Vec<Flow>,
    first: u32,
    last: u32,
    hasher: RandomState,
}

impl Table {
    fn new() -> Self {
        Self { index: vec![(0, NONE); 1 << 16], first: NONE, last: NONE, ..Self::default() }
    }

    fn batch(&mut self, packets: &mut [Packet]) {
        if (self.flows.len() + packets.len()) * 2 > self.index.len() {
            self.grow();
        }
        let mask = self.index.len() - 1;
        for packet in &mut *packets {
            packet.hash = self.hasher.hash_one(packet.key);
            packet.place = packet.hash as usize & mask;
        }
        // Reads of one batch do not depend on each other.
        let mut sum = 0;
        for packet in &*packets {
            let (_, number) = self.index[packet.place];
            sum += self.flows.get(number as usize).map_or(0, |flow| flow.packet_counts[0]);
        }
        std::hint::black_box(sum);
        for packet in packets {
            let number = self.find(packet);
            self.touch(number);
            let flow = &mut self.flows[number as usize];
            flow.packet_counts[packet.side] += 1;
            flow.octet_counts[packet.side] += packet.len;
            flow.end = packet.time;
        }
    }

    fn find(&mut self, packet: &Packet) -> u32 {
        let mask = self.index.len() - 1;
        let tag = (packet.hash >> 32) as u32;
        let mut place = packet.place;
        loop {
            let (other, number) = self.index[place];
            if number == NONE {
                break;
            }
            if other == tag && self.flows[number as usize].key == packet.key {
                return number;
            }
            place = (place + 1) & mask;
        }
        let number = self.flows.len() as u32;
        self.index[place] = (tag, number);
        self.flows.push(Flow {
            key: packet.key,
            packet_counts: [0; 2],
            octet_counts: [0; 2],
            start: packet.time,
            end: packet.time,
            previous: self.last,
            next: NONE,
        });
        match self.flows.get_mut(self.last as usize) {
            Some(last) => last.next = number,
            None => self.first = number,
        }
        self.last = number;
        number
    }

    /// Moves a flow to the end of the list.
    fn touch(&mut self, number: u32) {
        if number == self.last {
            return;
        }
        let Flow { previous, next, .. } = self.flows[number as usize];
        self.flows[next as usize].previous = previous;
        match self.flows.get_mut(previous as usize) {
            Some(flow) => flow.next = next,
            None => self.first = next,
        }
        self.flows[self.last as usize].next = number;
        let flow = &mut self.flows[number as usize];
        (flow.previous, flow.next) = (self.last, NONE);
        self.last = number;
    }

    fn grow(&mut self) {
        let len = self.index.len() * 2;
        self.index = vec![(0, NONE); len];
        for (number, flow) in self.flows.iter().enumerate() {
            let hash = self.hasher.hash_one(flow.key);
            let mut place = hash as usize & (len - 1);
            while self.index[place].1 != NONE {
                place = (place + 1) & (len - 1);
            }
            self.index[place] = ((hash >> 32) as u32, number as u32);
        }
    }
}

/// Returns the key of an Ethernet frame with TCP or UDP, and the end that sent it.
fn key(frame: &[u8]) -> Option<(Key, usize)> {
    let be = |octets: &[u8]| octets.iter().fold(0, |value, octet| value << 8 | u64::from(*octet));
    let mut at = 12;
    while matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
        at += 4;
    }
    let packet = frame.get(at + 2..)?;
    let (protocol, header_len, [source, destination]) = match frame.get(at..at + 2)? {
        [8, 0] => {
            let addresses: &[u8; 8] = packet.get(12..)?.first_chunk()?;
            let address = |octets: &[u8]| [0, be(octets)];
            (
                *packet.get(9)?,
                usize::from(packet[0] & 0xf) * 4,
                [address(&addresses[..4]), address(&addresses[4..])],
            )
        }
        [0x86, 0xdd] => {
            let addresses: &[u8; 32] = packet.get(8..)?.first_chunk()?;
            let address = |octets: &[u8]| [be(&octets[..8]), be(&octets[8..])];
            (*packet.get(6)?, 40, [address(&addresses[..16]), address(&addresses[16..])])
        }
        _ => return None,
    };
    if !matches!(protocol, 6 | 17) {
        return None;
    }
    let ports: &[u8; 4] = packet.get(header_len..)?.first_chunk()?;
    let ends = [(source, be(&ports[..2])), (destination, be(&ports[2..]))];
    let side = usize::from(ends[0] > ends[1]);
    let (low, high) = (ends[side], ends[1 - side]);
    let rest = low.1 << 32 | high.1 << 16 | u64::from(protocol);
    Some(([low.0[0], low.0[1], high.0[0], high.0[1], rest], side))
}

#[expect(unsafe_code, reason = "a mapped file")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: prototype_flows CAPTURE")?;
    let file = File::open(path)?;
    // SAFETY: nobody changes the trace during the comparison. If it was truncated, the process would be terminated.
    let octets = unsafe { MmapOptions::new().populate().map(&file)? };
    let nanos_per_unit = match octets.first_chunk() {
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => 1000,
        Some([0x4d, 0x3c, 0xb2, 0xa1]) => 1,
        _ => return Err("not a little-endian pcap file".into()),
    };
    let mut table = Table::new();
    let mut batch = [Packet::default(); BATCH_LEN];
    let (mut batch_len, mut packet_count) = (0, 0_u64);
    let mut rest = octets.get(24..).unwrap_or_default();
    while let Some((header, after)) = rest.split_first_chunk::<16>() {
        let word = |index: usize| {
            let octets = header.as_chunks::<4>().0[index];
            u32::from_le_bytes(octets)
        };
        let Some((frame, after)) = after.split_at_checked(word(2) as usize) else { break };
        rest = after;
        packet_count += 1;
        let Some((key, side)) = key(frame) else { continue };
        let time = u64::from(word(0)) * 1_000_000_000 + u64::from(word(1)) * nanos_per_unit;
        batch[batch_len] = Packet { key, side, len: word(3).into(), time, hash: 0, place: 0 };
        batch_len += 1;
        if batch_len == BATCH_LEN {
            table.batch(&mut batch);
            batch_len = 0;
        }
    }
    table.batch(&mut batch[..batch_len]);
    let octet_count: u64 = table.flows.iter().map(|flow| flow.octet_counts[0] + flow.octet_counts[1]).sum();
    let time: u64 = table.flows.iter().map(|flow| flow.end.saturating_sub(flow.start)).sum();
    println!("{packet_count} packets, {} flows, {octet_count} octets, {time} ns", table.flows.len());
    Ok(())
}
