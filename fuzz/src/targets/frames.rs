//! Frames from a structured input: conversations with valid headers, encapsulated in tunnels, fragmented, and then
//! damaged.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::{Frame, LinkType, Timestamp};

use super::input::Octets;
use super::phrases::PHRASES;

/// Link types of raw frames.
pub const LINK_TYPES: [LinkType; 16] = [
    LinkType::ETHERNET,
    LinkType::RAW,
    LinkType::LINUX_SLL,
    LinkType::LINUX_SLL2,
    LinkType::NULL,
    LinkType::LOOP,
    LinkType::PPP,
    LinkType::PPP_HDLC,
    LinkType::C_HDLC,
    LinkType::FRELAY,
    LinkType::IEEE802_11_RADIOTAP,
    LinkType::NFLOG,
    LinkType::ATM_RFC1483,
    LinkType::PPI,
    LinkType::MPLS,
    LinkType::IEEE802_5,
];

/// Ports of servers: of all protocols with a parser, and of some protocols that are only recognized or unknown.
const PORTS: [u16; 16] =
    [80, 443, 53, 25, 22, 21, 8080, 5353, 5355, 587, 4433, 123, 3306, 1194, 40_001, 5060];

/// A packet of a conversation.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Host pair in bits 0 and 1, IPv6 in bit 2, UDP in bit 3, port of the server in bits 4 to 7.
    pub conversation: u8,
    /// Sent by the server in bit 0, no handshake before the packet in bit 1, another transport in bits 2 and 3, control
    /// flags in bits 4 to 6, no acknowledgment in bit 7.
    pub how: u8,
    /// Difference of the sequence number from the expected one, in octets; 127 and -128 are far jumps.
    pub shift: i8,
    /// Wait before the packet; see [`Clock::wait`].
    pub wait: u8,
    /// Tunnels: the outer one in the high nibble, the inner one in the low nibble.
    pub tunnels: u8,
    /// Fragment length in units of eight octets, 0 for no fragmentation; reverse order in bit 7.
    pub fragment: u8,
    /// Damage: zero for none, otherwise the position of a changed octet of the headers.
    pub damage_offset: u8,
    pub damage: u8,
    /// Number of octets truncated by a snap length.
    pub truncated: u8,
    pub payload: Payload<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    Octets(Octets<'a>),
    Phrase(u8),
}

impl<'a> Arbitrary<'a> for Payload<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        match u8::arbitrary(u)? {
            0 => Ok(Self::Octets(Octets::arbitrary(u)?)),
            number => Ok(Self::Phrase(number - 1)),
        }
    }
}

impl<'a> Payload<'a> {
    pub fn octets(self) -> &'a [u8] {
        match self {
            Self::Octets(Octets(octets)) => octets,
            Self::Phrase(number) => PHRASES[usize::from(number) % PHRASES.len()],
        }
    }
}

impl<'a> Arbitrary<'a> for Packet<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self {
            conversation: u8::arbitrary(u)?,
            how: u8::arbitrary(u)?,
            shift: i8::arbitrary(u)?,
            wait: u8::arbitrary(u)?,
            tunnels: u8::arbitrary(u)?,
            fragment: u8::arbitrary(u)?,
            damage_offset: u8::arbitrary(u)?,
            damage: u8::arbitrary(u)?,
            truncated: u8::arbitrary(u)?,
            payload: Payload::arbitrary(u)?,
        })
    }
}

/// Time of a script, which mostly advances in small steps, and sometimes jumps or goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock(u64);

const SECOND: u64 = 1_000_000_000;

impl Default for Clock {
    fn default() -> Self {
        Self(1_000_000 * SECOND)
    }
}

impl Clock {
    /// Advances the time: up to 127 in tenths of milliseconds, 128 to 223 in seconds, 224 to 247 in minutes. Larger
    /// values go back.
    pub fn wait(&mut self, wait: u8) -> Timestamp {
        let wait_ns = u64::from(wait);
        self.0 = match wait {
            0..128 => self.0 + wait_ns * SECOND / 10_000,
            128..224 => self.0 + (wait_ns - 127) * SECOND,
            224..248 => self.0 + (wait_ns - 223) * 60 * SECOND,
            248.. => self.0 - (wait_ns - 247) * SECOND / 2,
        };
        Timestamp::from_nanos(self.0)
    }
}

/// A frame that owns its octets.
#[derive(Clone, Debug)]
pub struct Captured {
    pub timestamp: Timestamp,
    pub link_type: LinkType,
    pub octets: Vec<u8>,
    pub wire_len: u32,
    pub interface: u32,
}

impl Captured {
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            timestamp: self.timestamp,
            link_type: self.link_type,
            data: &self.octets,
            wire_len: self.wire_len,
            interface: self.interface,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Connection {
    /// Next sequence numbers of client and server.
    next: [u32; 2],
    has_begun: bool,
}

/// Creates the frames of packets, and keeps the state of their conversations.
#[derive(Default)]
pub struct Maker {
    clock: Clock,
    connections: HashMap<u8, Connection>,
    identification: u16,
}

#[derive(Clone, Copy)]
struct Ends {
    is_ipv6: bool,
    /// Returns the last octets of the addresses.
    hosts: [u8; 2],
    ports: [u16; 2],
}

impl Ends {
    fn reversed(self) -> Self {
        let ([a, b], [c, d]) = (self.hosts, self.ports);
        Self { hosts: [b, a], ports: [d, c], ..self }
    }
}

struct Tcp {
    seq: u32,
    ack: u32,
    flags: u8,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

impl Maker {
    pub fn wait(&mut self, wait: u8) -> Timestamp {
        self.clock.wait(wait)
    }

    /// Creates a frame of arbitrary octets.
    pub fn raw(&mut self, link: u8, wait: u8, octets: &[u8]) -> Captured {
        Captured {
            timestamp: self.wait(wait),
            link_type: LINK_TYPES[usize::from(link & 15)],
            octets: octets.to_vec(),
            wire_len: octets.len() as u32 + if link & 64 == 0 { 0 } else { 700 },
            interface: u32::from(link >> 7),
        }
    }

    /// Creates the frames of a packet: one or its fragments, after a handshake if the connection has not begun.
    pub fn packet(&mut self, packet: &Packet<'_>) -> Vec<Captured> {
        let server_port = PORTS[usize::from(packet.conversation >> 4)];
        let client = packet.conversation & 3;
        let ends = Ends {
            is_ipv6: packet.conversation & 4 != 0,
            hosts: [1 + client, 9 + (client & 1)],
            ports: [40_000 + u16::from(client), server_port],
        };
        let is_server = packet.how & 1 != 0;
        let ends = if is_server { ends.reversed() } else { ends };
        let is_udp = packet.conversation & 8 != 0;
        let (protocol, segments) = match (packet.how >> 2 & 3, is_udp) {
            (2, _) => (if ends.is_ipv6 { 58 } else { 1 }, vec![(ends, packet.payload.octets().to_vec())]),
            (3, _) => (132, vec![(ends, sctp(ends.ports, packet.payload.octets()))]),
            (_, true) => (17, vec![(ends, udp(ends.ports, packet.payload.octets()))]),
            (_, false) => (6, self.segments(packet, ends, is_server)),
        };
        let timestamp = self.wait(packet.wait);
        let mut frames = Vec::new();
        let last = segments.len() - 1;
        for (number, (ends, transport)) in segments.into_iter().enumerate() {
            self.identification = self.identification.wrapping_add(1);
            let ip = ip(ends, protocol, self.identification, &transport);
            let mut parts =
                if number == last { fragments(&ip, packet.fragment, self.identification) } else { vec![ip] };
            if packet.fragment & 128 != 0 {
                parts.reverse();
            }
            frames.extend(parts.into_iter().map(|part| self.wrapped(packet, part, timestamp)));
        }
        if let Some(frame) = frames.last_mut() {
            if packet.damage != 0 {
                let position = usize::from(packet.damage_offset);
                if let Some(octet) = frame.octets.get_mut(position) {
                    *octet ^= packet.damage;
                }
            }
            let kept_len = frame.octets.len().saturating_sub(usize::from(packet.truncated));
            frame.octets.truncate(kept_len);
        }
        frames
    }

    /// Creates the TCP segments of a packet.
    fn segments(&mut self, packet: &Packet<'_>, ends: Ends, is_server: bool) -> Vec<(Ends, Vec<u8>)> {
        let connection = self.connections.entry(packet.conversation).or_default();
        let own = usize::from(is_server);
        let mut segments = Vec::new();
        if !connection.has_begun {
            connection.has_begun = true;
            connection.next = [1000, 0_u32.wrapping_sub(700)];
            if packet.how & 2 == 0 {
                let client = if is_server { ends.reversed() } else { ends };
                let [seq, ack] = connection.next;
                let syn = Tcp { seq: seq.wrapping_sub(1), ack: 0, flags: SYN };
                let syn_ack = Tcp { seq: ack.wrapping_sub(1), ack: seq, flags: SYN | ACK };
                segments.push((client, syn.segment(client.ports, &[])));
                let server = client.reversed();
                segments.push((server, syn_ack.segment(server.ports, &[])));
            }
        }
        let control = packet.how >> 4 & 7;
        let acknowledged = if packet.how & 128 == 0 { ACK } else { 0 };
        let flags = match control {
            1 => FIN | ACK,
            2 => RST | acknowledged,
            3 => SYN | if is_server { ACK } else { 0 },
            _ => acknowledged,
        };
        let octets = if control == 2 { &[] } else { packet.payload.octets() };
        let shift = match packet.shift {
            127 => 100_000,
            -128 => i32::MIN,
            shift => i32::from(shift),
        };
        let expected = connection.next[own];
        let seq = expected.wrapping_add_signed(shift);
        let ack_beyond = if control == 4 { 500 } else { 0 };
        let ack = connection.next[1 - own].wrapping_add(ack_beyond);
        if shift == 0 || control == 5 {
            let control_len = u32::from(flags & (SYN | FIN) != 0);
            connection.next[own] = seq.wrapping_add(octets.len() as u32 + control_len);
        }
        segments.push((ends, Tcp { seq, ack, flags }.segment(ends.ports, octets)));
        segments
    }

    fn wrapped(&self, packet: &Packet<'_>, ip: Vec<u8>, timestamp: Timestamp) -> Captured {
        let inner = tunnel(packet.tunnels & 15, ip, self.identification);
        let outer = tunnel(packet.tunnels >> 4, inner, self.identification);
        let octets = ethernet(packet.tunnels, &outer);
        Captured {
            timestamp,
            link_type: LinkType::ETHERNET,
            wire_len: octets.len() as u32,
            octets,
            interface: u32::from(packet.how >> 1 & 1),
        }
    }
}

impl Tcp {
    fn segment(&self, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let [source, destination] = ports.map(u16::to_be_bytes);
        // A SYN has a window scale option, so that options are read.
        let options: &[u8] = if self.flags & SYN == 0 { &[] } else { &[3, 3, 7, 1] };
        let header_len = ((20 + options.len()) as u8) << 2;
        [
            &source[..],
            &destination,
            &self.seq.to_be_bytes(),
            &self.ack.to_be_bytes(),
            &[header_len, self.flags, 0xff, 0xff, 0, 0, 0, 0],
            options,
            payload,
        ]
        .concat()
    }
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ports.map(u16::to_be_bytes);
    let len = (8 + payload.len() as u16).to_be_bytes();
    [&source[..], &destination, &len, &[0, 0], payload].concat()
}

fn sctp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ports.map(u16::to_be_bytes);
    [&source[..], &destination, &[0; 8], payload].concat()
}

fn ip(ends: Ends, protocol: u8, identification: u16, payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ends.hosts;
    if ends.is_ipv6 {
        let [high, low] = (payload.len() as u16).to_be_bytes();
        let address = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        let header = [0x60, 0, 0, 0, high, low, protocol, 64];
        return [&header[..], &address(source), &address(destination), payload].concat();
    }
    ipv4([[10, 0, 0, source], [10, 0, 0, destination]], protocol, (identification, 0), payload)
}

/// Creates an IPv4 packet with an identification, and with flags and offset of a fragment.
fn ipv4(ends: [[u8; 4]; 2], protocol: u8, (identification, position): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let [id_high, id_low] = identification.to_be_bytes();
    let [flags, offset] = position.to_be_bytes();
    let mut header = [0x45, 0, high, low, id_high, id_low, flags, offset, 64, protocol, 0, 0].to_vec();
    header.extend(ends.concat());
    let checksum = checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    header.extend(payload);
    header
}

/// Returns the checksum of RFC 1071 over an even number of octets.
fn checksum(octets: &[u8]) -> u16 {
    let mut sum: u32 =
        octets.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// Splits a packet into fragments with a payload of `unit_count & 127` units of eight octets, or returns it unchanged.
fn fragments(packet: &[u8], unit_count: u8, identification: u16) -> Vec<Vec<u8>> {
    let part_len = usize::from(unit_count & 127) * 8;
    if part_len == 0 {
        return vec![packet.to_vec()];
    }
    let is_ipv6 = packet[0] >> 4 == 6;
    let (header, payload) = packet.split_at(if is_ipv6 { 40 } else { 20 });
    let count = payload.len().div_ceil(part_len).max(1);
    (0..count)
        .map(|number| {
            let part = &payload[number * part_len..payload.len().min((number + 1) * part_len)];
            let (units, more) = ((number * part_len / 8) as u16, u16::from(number + 1 < count));
            if is_ipv6 {
                let [high, low] = (8 + part.len() as u16).to_be_bytes();
                let [place_high, place_low] = (units << 3 | more).to_be_bytes();
                let [id_high, id_low] = identification.to_be_bytes();
                let fragment = [header[6], 0, place_high, place_low, 0, 0, id_high, id_low];
                [&header[..4], &[high, low, 44, 64], &header[8..], &fragment, part].concat()
            } else {
                let address = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
                let position = (identification, units | more << 13);
                ipv4([address(12), address(16)], header[9], position, part)
            }
        })
        .collect()
}

const TUNNEL_ENDS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];

/// Encapsulates a packet in the tunnel with a given number.
fn tunnel(kind: u8, packet: Vec<u8>, identification: u16) -> Vec<u8> {
    let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let ether_type = if is_ipv6 { [0x86, 0xdd] } else { [8, 0] };
    let around = |protocol, payload: Vec<u8>| ipv4(TUNNEL_ENDS, protocol, (identification, 0), &payload);
    let in_udp =
        |port, header: &[u8], inner: Vec<u8>| around(17, udp([50_000, port], &[header, &inner].concat()));
    let in_ethernet = |packet: Vec<u8>| [&[2; 12][..], &ether_type, &packet].concat();
    match kind {
        1 => around(if is_ipv6 { 41 } else { 4 }, packet),
        2 => around(47, [&[0, 0], &ether_type[..], &packet].concat()),
        3 => in_udp(4789, &[8, 0, 0, 0, 0, 0, 7, 0], in_ethernet(packet)),
        4 => {
            let [high, low] = (packet.len() as u16).to_be_bytes();
            in_udp(2152, &[0x30, 0xff, high, low, 0, 0, 0, 9], packet)
        }
        5 => in_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 7, 0], in_ethernet(packet)),
        6 if is_ipv6 => in_udp(3544, &[], packet),
        7 => {
            let protocol = if is_ipv6 { [0, 0x57] } else { [0, 0x21] };
            in_udp(1701, &[0, 2, 0, 5, 0, 6, 0xff, 3, protocol[0], protocol[1]], packet)
        }
        8 => in_udp(6635, &[0, 0, 0x11, 64], packet),
        9 => around(47, [&[0x20, 0, 0x65, 0x58, 0, 0, 7, 0][..], &in_ethernet(packet)].concat()),
        10 => {
            // A tunnel in IPv6 after a destination options header.
            let [high, low] = (8 + packet.len() as u16).to_be_bytes();
            let next = if is_ipv6 { 41 } else { 4 };
            [&[0x60, 0, 0, 0, high, low, 60, 64][..], &[0xfd; 32], &[next, 0, 1, 4, 0, 0, 0, 0], &packet]
                .concat()
        }
        11 => {
            // ERSPAN type II.
            let gre = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 5, 0, 9, 0, 0, 0, 0];
            around(47, [&gre[..], &in_ethernet(packet)].concat())
        }
        12 => around(51, [&[if is_ipv6 { 41 } else { 4 }, 4, 0, 0][..], &[0; 20], &packet].concat()),
        13 => around(97, [&[0x30, 0][..], &in_ethernet(packet)].concat()),
        14 => {
            // The outer packet in two fragments.
            let outer = around(47, [&[0, 0], &ether_type[..], &packet].concat());
            fragments(&outer, 127, identification).swap_remove(0)
        }
        _ => packet,
    }
}

/// Encapsulates a packet in Ethernet, with VLAN tags or labels selected by the same number as its tunnels.
fn ethernet(choice: u8, packet: &[u8]) -> Vec<u8> {
    let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let ether_type: &[u8] = if is_ipv6 { &[0x86, 0xdd] } else { &[8, 0] };
    let macs = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let between: &[u8] = match choice {
        0x0f => &[0x81, 0, 0, 5],
        0x1f => &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6],
        0x2f => return [&macs[..], &[0x88, 0x47, 0, 0x01, 0x01, 64], packet].concat(),
        0x3f => {
            let [high, low] = (2 + packet.len() as u16).to_be_bytes();
            let protocol = if is_ipv6 { 0x57 } else { 0x21 };
            let session = [0x88, 0x64, 0x11, 0, 0, 1, high, low, 0, protocol];
            return [&macs[..], &session, packet].concat();
        }
        0x4f => return [&macs[..], &[0, 0, 0xaa, 0xaa, 3, 0, 0, 0], ether_type, packet].concat(),
        _ => &[],
    };
    [&macs[..], between, ether_type, packet].concat()
}
