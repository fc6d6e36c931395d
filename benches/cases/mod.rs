//! Inputs of benches, built in advance, and what they count.

#![allow(dead_code, reason = "each bench uses some of the functions")]

pub(crate) mod flow_records;
pub(crate) mod session;
pub(crate) mod sinks;
pub(crate) mod traffic;

use std::net::Ipv4Addr;

/// Offsets of fields in a frame of Ethernet, IPv4 and TCP without options.
pub(crate) const TCP_SOURCE_PORT: usize = 34;
pub(crate) const TCP_SEQ: usize = 38;
pub(crate) const TCP_FLAGS: usize = 47;

pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

const PSH_ACK: u8 = 0x18;

/// An Ethernet frame with an IPv4 header and a transport segment. All length fields are set.
fn ipv4(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00];
    let total_len = 20 + transport.len() as u16;
    frame.extend([0x45, 0]);
    frame.extend(total_len.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    frame.extend(transport);
    frame
}

/// A PSH+ACK segment with sequence number 1000 and acknowledgment number 2000.
pub(crate) fn tcp(source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let mut transport = Vec::new();
    transport.extend(source.1.to_be_bytes());
    transport.extend(destination.1.to_be_bytes());
    transport.extend(1000_u32.to_be_bytes());
    transport.extend(2000_u32.to_be_bytes());
    transport.extend([0x50, PSH_ACK, 0x20, 0x00, 0, 0, 0, 0]);
    transport.extend(payload);
    ipv4(6, source.0, destination.0, &transport)
}

/// A UDP datagram.
pub(crate) fn udp(source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    let mut transport = Vec::new();
    transport.extend(source.1.to_be_bytes());
    transport.extend(destination.1.to_be_bytes());
    transport.extend((8 + payload.len() as u16).to_be_bytes());
    transport.extend([0, 0]);
    transport.extend(payload);
    ipv4(17, source.0, destination.0, &transport)
}

/// Converts a frame from [`tcp`] or [`udp`] to IPv6 with the same transport. The client has the lower address.
pub(crate) fn in_ipv6(frame: &[u8]) -> Vec<u8> {
    let transport = &frame[34..];
    let mut out = frame[..12].to_vec();
    out.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    out.extend((transport.len() as u16).to_be_bytes());
    out.extend([frame[23], 64]);
    for address in [&frame[26..30], &frame[30..34]] {
        out.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend(address);
    }
    out.extend(transport);
    out
}

/// Sets the sequence number of a frame made by [`tcp`].
pub(crate) fn set_seq(frame: &mut [u8], seq: u32) {
    frame[TCP_SEQ..TCP_SEQ + 4].copy_from_slice(&seq.to_be_bytes());
}

/// Pseudorandom numbers that are the same in every run (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A random order of the numbers below `count`.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..count).collect();
        for position in (1..count).rev() {
            order.swap(position, self.next() as usize % (position + 1));
        }
        order
    }
}
