//! Packets and captures.

/// Ethernet header of an IPv4 packet.
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];

/// Link type of raw IP packets.
pub(crate) const RAW: u32 = 101;
pub(crate) const LINK_ETHERNET: u32 = 1;

/// Returns an IPv4 packet.
pub(crate) fn ipv4(protocol: u8, source: u32, destination: u32, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// Returns a UDP datagram in IPv4 and Ethernet.
pub(crate) fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let mut datagram = Vec::new();
    for word in [ports.0, ports.1, len, 0] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.extend_from_slice(payload);
    [&ETHERNET[..], &ipv4(17, 0x0a00_0001, 0x0a00_0002, &datagram)].concat()
}

/// Returns a TCP segment of the client or of the server, in IPv4 and Ethernet.
fn segment(
    port: u16,
    client: u16,
    is_server: bool,
    (seq, ack, flags): (u32, u32, u8),
    data: &[u8],
) -> Vec<u8> {
    let (source, destination) = if is_server { (port, client) } else { (client, port) };
    let mut tcp = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend_from_slice(data);
    let (a, b) = if is_server { (2, 1) } else { (1, 2) };
    [&ETHERNET[..], &ipv4(6, 0x0a00_0000 + a, 0x0a00_0000 + b, &tcp)].concat()
}

/// Appends the frames of a connection in which the client sends some octets, and the server others.
pub(crate) fn connection(frames: &mut Vec<Vec<u8>>, (port, client): (u16, u16), sent: &[u8], replied: &[u8]) {
    let mut push = |is_server, numbers, data: &[u8]| {
        frames.push(segment(port, client, is_server, numbers, data));
    };
    push(false, (1000, 0, 2), &[]);
    push(true, (5000, 1001, 18), &[]);
    push(false, (1001, 5001, 16), &[]);
    for (at, part) in sent.chunks(60_000).enumerate() {
        push(false, (1001 + at as u32 * 60_000, 5001, 24), part);
    }
    for (at, part) in replied.chunks(60_000).enumerate() {
        push(true, (5001 + at as u32 * 60_000, 1001 + sent.len() as u32, 24), part);
    }
}

/// Returns a pcap file of frames, a millisecond apart.
pub(crate) fn pcap(link_type: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = header(link_type);
    for (at, frame) in frames.iter().enumerate() {
        let at = at as u32;
        let len = frame.len() as u32;
        for word in [1_700_000_000 + at / 1000, at % 1000 * 1000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

/// Returns the header of a pcap file.
pub(crate) fn header(link_type: u32) -> Vec<u8> {
    let mut header = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    header.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    header.extend(262_144_u32.to_le_bytes());
    header.extend(link_type.to_le_bytes());
    header
}

/// Returns a pcapng block.
pub(crate) fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [block_type.to_le_bytes(), len.to_le_bytes()].concat();
    block.extend_from_slice(body);
    block.resize(len as usize - 4, 0);
    block.extend(len.to_le_bytes());
    block
}

/// Returns a Section Header Block, and an Interface Description Block of Ethernet with options.
pub(crate) fn section(options: &[u8]) -> Vec<u8> {
    let mut start = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    start.extend([1, 0, 0, 0]);
    start.extend([0xff; 8]);
    [block(0x0a0d_0d0a, &start), interface(options)].concat()
}

pub(crate) fn interface(options: &[u8]) -> Vec<u8> {
    block(1, &[&[1, 0, 0, 0, 0, 0, 0, 0], options].concat())
}
