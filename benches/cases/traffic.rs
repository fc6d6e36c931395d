//! Traffic that resembles captures: complete connections in the order of a trace, unusual packets, and frames with the
//! distribution of kinds in `frame_kinds.tsv`.

#![allow(dead_code, reason = "each bench uses some of the functions")]

use std::net::Ipv4Addr;

use flowgauge::base::{Frame, FrameBatch, LinkType, Timestamp};

use super::{Random, SERVER, TCP_FLAGS, TCP_SEQ, set_seq, tcp, udp};

const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;
const PSH_ACK: u8 = 0x18;
const FIN_ACK: u8 = 0x11;
const RST_ACK: u8 = 0x14;

/// A segment of a connection: whether the client sends it, control bits, payload length, and relative sequence and
/// acknowledgment numbers.
pub(crate) type Step = (bool, u8, usize, u32, u32);

/// A connection with a request and a response.
pub(crate) const DIALOGUE: [Step; 10] = [
    (true, SYN, 0, 0, 0),
    (false, SYN_ACK, 0, 0, 1),
    (true, ACK, 0, 1, 1),
    (true, PSH_ACK, 300, 1, 1),
    (false, ACK, 1400, 1, 301),
    (false, PSH_ACK, 900, 1401, 301),
    (true, ACK, 0, 301, 2301),
    (true, FIN_ACK, 0, 301, 2301),
    (false, FIN_ACK, 0, 2301, 302),
    (true, ACK, 0, 302, 2302),
];

/// A connection that its server resets after the response.
const RESET: [Step; 7] = [
    (true, SYN, 0, 0, 0),
    (false, SYN_ACK, 0, 0, 1),
    (true, ACK, 0, 1, 1),
    (true, PSH_ACK, 300, 1, 1),
    (false, PSH_ACK, 900, 1, 301),
    (true, FIN_ACK, 0, 301, 901),
    (false, RST_ACK, 0, 901, 302),
];

/// A connection that its client resets after the handshake, as a port scanner does.
const PROBE: [Step; 4] =
    [(true, SYN, 0, 0, 0), (false, SYN_ACK, 0, 0, 1), (true, ACK, 0, 1, 1), (true, RST_ACK, 0, 1, 1)];

/// Address and port of the client of a flow.
pub(crate) fn client(flow: usize) -> (Ipv4Addr, u16) {
    let [_, a, b, c] = (flow as u32 / 50_000).to_be_bytes();
    let address = Ipv4Addr::new(10, a, b.wrapping_add(1), c.wrapping_add(1));
    (address, 10_000 + (flow % 50_000) as u16)
}

/// Segment of a connection to a port of the server.
pub(crate) fn segment(flow: usize, step: Step, server_port: u16) -> Vec<u8> {
    let (is_client, flags, payload_len, seq, ack) = step;
    let (client, server) = (client(flow), (SERVER, server_port));
    let (source, destination) = if is_client { (client, server) } else { (server, client) };
    let mut frame = tcp(source, destination, &vec![0; payload_len]);
    let isn = flow as u32;
    set_seq(&mut frame, isn.wrapping_add(seq));
    frame[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&isn.wrapping_add(ack).to_be_bytes());
    frame[TCP_FLAGS] = flags;
    frame
}

/// Calls `each` with the index of a flow and of its next step, in random order; `open_count` flows are open at a time.
/// `len` is the number of steps of a flow.
pub(crate) fn interleave(
    flow_count: usize,
    open_count: usize,
    len: impl Fn(usize) -> usize,
    mut each: impl FnMut(usize, usize),
) {
    let mut random = Random(11);
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut next_flow = 0;
    while next_flow < flow_count || !open.is_empty() {
        if open.len() < open_count && next_flow < flow_count {
            open.push((next_flow, 0));
            next_flow += 1;
        }
        let position = random.next() as usize % open.len();
        let (flow, step) = open[position];
        each(flow, step);
        open[position].1 += 1;
        if open[position].1 == len(flow) {
            open.swap_remove(position);
        }
    }
}

/// Whole flows of four to ten packets, of which `open_count` are open at a time: TCP connections that are closed, reset
/// or probed, and UDP requests with responses. The octets behind the headers are not captured.
pub(crate) fn short_flows(flow_count: usize, open_count: usize) -> FrameBatch {
    let steps = |flow: usize| match flow % 4 {
        0 => Some(&DIALOGUE[..]),
        1 => Some(&RESET[..]),
        2 => Some(&PROBE[..]),
        _ => None,
    };
    let mut batch = FrameBatch::new();
    let mut nanos = 1_700_000_000_000_000_000;
    interleave(
        flow_count,
        open_count,
        |flow| steps(flow).map_or(4, <[Step]>::len),
        |flow, step| {
            let frame = match steps(flow) {
                Some(steps) => segment(flow, steps[step], 443),
                None if step % 2 == 0 => udp(client(flow), (SERVER, 53), &[7; 40]),
                None => udp((SERVER, 53), client(flow), &[7; 120]),
            };
            nanos += 2000;
            push(&mut batch, nanos, &frame);
        },
    );
    batch
}

/// TCP connections of `len` packets each, of which `open_count` are open at a time: a handshake, then a download with an
/// acknowledgment after every two segments, and both FINs. The octets behind the headers are not captured.
pub(crate) fn long_flows(flow_count: usize, open_count: usize, len: usize) -> FrameBatch {
    const MSS: u32 = 1448;
    let step = |number: usize| -> Step {
        // Number of segments with payload before this step.
        let data_count = (number.saturating_sub(3) - number.saturating_sub(3) / 3) as u32;
        let end = 1 + data_count * MSS;
        match number {
            0 => (true, SYN, 0, 0, 0),
            1 => (false, SYN_ACK, 0, 0, 1),
            2 => (true, ACK, 0, 1, 1),
            _ if number + 2 == len => (false, FIN_ACK, 0, end, 1),
            _ if number + 1 == len => (true, FIN_ACK, 0, 1, end + 1),
            _ if number % 3 == 2 => (true, ACK, 0, 1, end),
            _ => (false, ACK, MSS as usize, end, 1),
        }
    };
    let mut batch = FrameBatch::new();
    let mut nanos = 1_700_000_000_000_000_000;
    interleave(
        flow_count,
        open_count,
        |_| len,
        |flow, number| {
            nanos += 2000;
            push(&mut batch, nanos, &segment(flow, step(number), 443));
        },
    );
    batch
}

/// Number of octets of a frame that are captured, which includes all headers.
const SNAP_LEN: usize = 160;

fn push(batch: &mut FrameBatch, nanos: u64, frame: &[u8]) {
    batch.push(&Frame {
        timestamp: Timestamp::from_nanos(nanos),
        link_type: LinkType::ETHERNET,
        data: &frame[..frame.len().min(SNAP_LEN)],
        wire_len: frame.len() as u32,
        interface: 0,
    });
}

/// Established connections, and an unusual packet of each: those that senders repeat, that networks reorder, or that
/// hosts send in answer to errors. Returns the frames that open the connections, and the unusual ones.
pub(crate) fn odd_packets(flow_count: usize) -> [Vec<Vec<u8>>; 2] {
    let known =
        (0..flow_count).flat_map(|flow| DIALOGUE[..6].iter().map(move |step| segment(flow, *step, 443)));
    [known.collect(), (0..flow_count).map(odd_packet).collect()]
}

fn odd_packet(flow: usize) -> Vec<u8> {
    const WINDOW: usize = 48;
    let with = |step: Step| segment(flow, step, 443);
    match flow % 8 {
        // The last segment again, a keep-alive (RFC 9293 section 3.8.4), a window probe, a segment behind a gap.
        0 => with((false, PSH_ACK, 900, 1401, 301)),
        1 => with((true, ACK, 0, 300, 2301)),
        2 => {
            let mut frame = with((true, ACK, 0, 301, 2301));
            frame[WINDOW..WINDOW + 2].fill(0);
            frame
        }
        3 => with((true, PSH_ACK, 100, 1301, 2301)),
        // The SYN again, and a reset for another connection.
        4 => with((true, SYN, 0, 0, 0)),
        5 => with((false, RST_ACK, 0, 0x4000_0000, 301)),
        // An IPv4 header with options.
        6 => {
            let mut frame = with((true, ACK, 0, 301, 2301));
            frame.splice(34..34, [1, 1, 1, 1]);
            frame[14] = 0x46;
            frame[17] += 4;
            frame
        }
        // ICMP: port unreachable, with the start of a packet of the flow.
        _ => {
            let quoted = with((false, ACK, 0, 2301, 301));
            let mut frame = udp((client(flow).0, 0), (SERVER, 0), &[]);
            frame.truncate(34);
            frame[23] = 1;
            frame.extend([3, 3, 0, 0, 0, 0, 0, 0]);
            frame.extend(&quoted[14..42]);
            frame[17] = (frame.len() - 14) as u8;
            frame
        }
    }
}

/// Packets per flow in equal shares of all flows, as in the captures of `frame_kinds.tsv`: half of the flows have at most
/// two packets, and few have most of the packets.
const TCP_LENS: [usize; 20] = [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4, 6, 8, 9, 12, 20, 39, 240];
const OTHER_LENS: [usize; 20] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 6, 9, 14, 40];

/// Time between the first and the last flow of [`real_mix`], and mean time between two packets of a flow, in nanoseconds.
const DURATION: u64 = 120_000_000_000;
const GAP: u64 = 50_000_000;

/// Frames with the kinds of `frame_kinds.tsv` in batches as a source returns them, and the numbers of flows and of packets in them.
pub(crate) struct RealMix {
    pub(crate) batches: Vec<FrameBatch>,
    pub(crate) frame_count: u64,
    pub(crate) packet_count: u64,
    pub(crate) flow_count: u64,
}

/// Creates about `frame_count` frames.
pub(crate) fn real_mix(frame_count: usize) -> RealMix {
    const BATCH_LEN: usize = 2000;
    let mut random = Random(5);
    let mut frames: Vec<(u64, Vec<u8>)> = Vec::new();
    let (mut flow_count, mut packet_count) = (0, 0);
    for line in include_str!("frame_kinds.tsv").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<_> = line.split('\t').collect();
        let [share, len, path] = fields[..] else { panic!("a line with three fields: {line}") };
        let path: Vec<_> = path.split('/').collect();
        let len: usize = len.parse().expect("a length");
        // Headers take about 60 octets. Half of the segments of TCP have no payload.
        let payload_len = match path.ends_with(&["tcp"]) {
            true => (2 * len.saturating_sub(60)).min(1400),
            false => len.saturating_sub(60).min(1400),
        };
        let lens = if path.ends_with(&["tcp"]) { &TCP_LENS } else { &OTHER_LENS };
        let mut left = frame_count * share.parse::<usize>().expect("a share") / 10_000;
        while left > 0 {
            let count = left.min(lens[random.next() as usize % lens.len()]);
            let start = 1_700_000_000_000_000_000 + random.next() % DURATION;
            let mut nanos = start;
            for step in 0..count {
                let turn = Turn::new(step, count, payload_len);
                frames.push((nanos, frame_of(&path, flow_count as usize, turn)));
                nanos += random.next() % (2 * GAP);
            }
            // ARP has no flow.
            flow_count += u64::from(path.last() != Some(&"arp"));
            packet_count += if path.last() == Some(&"arp") { 0 } else { count as u64 };
            left -= count;
        }
    }
    frames.sort_by_key(|(nanos, _)| *nanos);
    let mut batches = vec![FrameBatch::new()];
    for (nanos, frame) in &frames {
        if batches.last().is_none_or(|batch| batch.len() == BATCH_LEN) {
            batches.push(FrameBatch::new());
        }
        if let Some(batch) = batches.last_mut() {
            push(batch, *nanos, frame);
        }
    }
    RealMix { batches, frame_count: frames.len() as u64, packet_count, flow_count }
}

/// The frame at a place of a flow: its direction, and for TCP its control bits, sequence and acknowledgment numbers. The
/// client sends all data, and flows of six and more segments are closed.
#[derive(Clone, Copy)]
struct Turn {
    step: usize,
    is_client: bool,
    flags: u8,
    seq: u32,
    ack: u32,
    payload_len: usize,
}

impl Turn {
    fn new(step: usize, count: usize, payload_len: usize) -> Self {
        let fin = if count < 6 { count } else { count - 3 };
        let (is_client, flags) = match step {
            0 => (true, SYN),
            1 => (false, SYN_ACK),
            2 => (true, ACK),
            _ if step == fin => (true, FIN_ACK),
            _ if step == fin + 1 => (false, FIN_ACK),
            _ if step % 2 == 1 && step < fin => (true, PSH_ACK),
            _ => (step > fin, ACK),
        };
        // Segments with data are those at odd places from the third on.
        let sent = (step.min(fin).max(2) - 2) / 2 * payload_len;
        let from_client = sent as u32 + u32::from(step > 0) + u32::from(step > fin);
        let from_server = u32::from(step > 1) + u32::from(step > fin + 1);
        let (seq, ack) = if is_client { (from_client, from_server) } else { (from_server, from_client) };
        Self { step, is_client, flags, seq, ack, payload_len }
    }
}

/// Builds a frame of a flow from the innermost header outward.
fn frame_of(path: &[&str], flow: usize, mut turn: Turn) -> Vec<u8> {
    if path.last() == Some(&"fragment") {
        turn.is_client = true;
    }
    let inner = path.iter().rposition(|header| header.starts_with("ip"));
    let mut octets = Vec::new();
    for (place, header) in path.iter().enumerate().rev() {
        let next = path.get(place + 1).copied().unwrap_or_default();
        let [source, destination] = match Some(place) == inner {
            true => [0x0a00_0100 + flow as u32, u32::from(SERVER)],
            false => [0xc000_0201, 0xc000_0202],
        };
        let ends = if turn.is_client { [source, destination] } else { [destination, source] };
        octets = with_header(header, next, &octets, ends, turn);
    }
    octets
}

/// Adds a header in front of `inner`, whose own first header is `next`.
fn with_header(header: &str, next: &str, inner: &[u8], ends: [u32; 2], turn: Turn) -> Vec<u8> {
    let ether_type: [u8; 2] = match next {
        "vlan" => [0x81, 0],
        "mpls" => [0x88, 0x47],
        "ipv6" => [0x86, 0xdd],
        "arp" => [8, 6],
        _ => [8, 0],
    };
    let protocol = match next {
        "tcp" => 6,
        "icmp" => 1,
        "icmpv6" => 58,
        "gre" => 47,
        "ipv6" => 41,
        "ipv4" => 4,
        _ => 17,
    };
    let Turn { step, is_client, flags, seq, ack, payload_len } = turn;
    let payload = vec![0; payload_len];
    let ports = |server: u16| {
        let [source, destination] = if is_client { [40_000, server] } else { [server, 40_000] };
        [u16::to_be_bytes(source), u16::to_be_bytes(destination)].concat()
    };
    let udp = |port: u16, len: usize| {
        [&[0xc0, 0][..], &port.to_be_bytes(), &(8 + len as u16).to_be_bytes(), &[0, 0]].concat()
    };
    // Both fragments of a datagram have this length.
    let fragment_len = (payload_len / 8 * 8).max(8);
    let mut octets = match header {
        "ethernet" => [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &ether_type].concat(),
        "vlan" => [&[0, 42][..], &ether_type].concat(),
        "mpls" => vec![0, 1, 0x20 | u8::from(next != "mpls"), 64],
        "arp" => [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[0; 20]].concat(),
        "ipv4" => {
            let fragment = match (next, step % 2) {
                ("fragment", 0) => 0x2000,
                ("fragment", _) => (fragment_len / 8) as u16,
                _ => 0x4000,
            };
            let (len, id) = ((20 + inner.len()) as u16, (step / 2) as u16);
            let words = [0x4500, len, id, fragment, 64 << 8 | protocol, 0];
            let mut octets: Vec<u8> = words.iter().flat_map(|word: &u16| word.to_be_bytes()).collect();
            ends.iter().for_each(|end| octets.extend(end.to_be_bytes()));
            octets
        }
        "ipv6" => {
            let words = [0x6000, 0, inner.len() as u16, protocol << 8 | 64];
            let mut octets: Vec<u8> = words.iter().flat_map(|word: &u16| word.to_be_bytes()).collect();
            for end in ends {
                octets.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
                octets.extend(end.to_be_bytes());
            }
            octets
        }
        "gre" => [&[0, 0][..], &ether_type].concat(),
        "vxlan" => [&udp(4789, 8 + inner.len())[..], &[8, 0, 0, 0, 0, 0, 42, 0]].concat(),
        "gtpu" => {
            let len = (inner.len() as u16).to_be_bytes();
            [&udp(2152, 8 + inner.len())[..], &[0x30, 0xff], &len, &[0, 0, 0, 7]].concat()
        }
        "teredo" => udp(3544, inner.len()),
        "tcp" => {
            let mut octets = ports(443);
            octets.extend(seq.to_be_bytes());
            octets.extend(ack.to_be_bytes());
            octets.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
            octets.extend(if flags == PSH_ACK { &payload[..] } else { &[] });
            octets
        }
        "udp" => [&ports(4433)[..], &(8 + payload_len as u16).to_be_bytes(), &[0, 0], &payload].concat(),
        "fragment" if step % 2 == 0 => {
            [&udp(4433, 2 * fragment_len - 8)[..], &vec![0; fragment_len - 8]].concat()
        }
        "fragment" => vec![0; fragment_len],
        "icmp" | "icmpv6" => {
            let kind = match (header, is_client) {
                ("icmp", true) => 8,
                ("icmp", false) => 0,
                (_, true) => 128,
                (_, false) => 129,
            };
            [&[kind, 0, 0, 0, 0, 7, 0, step as u8][..], &payload].concat()
        }
        _ => panic!("an unknown header: {header}"),
    };
    octets.extend(inner);
    octets
}
