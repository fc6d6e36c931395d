//! Comparison of the policy `linux` with the running kernel: the same segments are sent through a TUN device to a
//! listening socket in a separate network namespace. Needs root, `unshare`, `ip`, `python3` and `/dev/net/tun`; prints
//! a message and passes if they are missing.

use std::process::Command;

use flowgauge::base::SeqNum;
use flowgauge::reassembler::OverlapPolicy;

use super::naive::{Chunk, Model};
use super::overlap::{reassembled, with_policy};

/// Reads lines of chunks `start/hex`, separated by spaces. For each line, connects as a host behind the TUN device,
/// sends the chunks, and prints the octets that the socket receives.
const SCRIPT: &str = r"
import fcntl, os, select, socket, struct, sys
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH', b't0', 0x1001))
os.system('ip addr add 10.0.0.1/24 dev t0 && ip link set t0 up')
server = socket.create_server(('10.0.0.1', 80), backlog=16)
local, remote = socket.inet_aton('10.0.0.1'), socket.inet_aton('10.0.0.2')

def checksum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def send(port, seq, ack, flags, data=b''):
    seq &= 0xffffffff
    header = struct.pack('>HHIIBBHHH', port, 80, seq, ack, 0x50, flags, 65535, 0, 0)
    pseudo = remote + local + struct.pack('>BBH', 0, 6, len(header) + len(data))
    header = header[:16] + struct.pack('>H', checksum(pseudo + header + data)) + header[18:]
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 40 + len(data), 0, 0, 64, 6, 0, remote, local)
    ip = ip[:10] + struct.pack('>H', checksum(ip)) + ip[12:]
    os.write(tun, ip + header + data)

def synack(port):
    while select.select([tun], [], [], 2)[0]:
        packet = os.read(tun, 2048)
        if packet[0] >> 4 == 4 and packet[9] == 6 and struct.unpack('>H', packet[22:24])[0] == port:
            if packet[33] & 0x12 == 0x12:
                return struct.unpack('>I', packet[24:28])[0]
    sys.exit('no answer to SYN')

for number, line in enumerate(sys.stdin):
    port, first = 1024 + number % 60000, 0xfffffffa
    send(port, first - 1, 0, 2)
    ack = synack(port) + 1 & 0xffffffff
    send(port, first, ack, 16)
    connection, _ = server.accept()
    connection.setblocking(False)
    for part in line.split():
        start, data = part.split('/')
        send(port, first + int(start), ack, 24, bytes.fromhex(data))
    got = b''
    try:
        while chunk := connection.recv(65536):
            got += chunk
    except BlockingIOError:
        pass
    print('got', got.hex())
    send(port, first + 4096, ack, 4)
    send(port, first + len(got), ack, 4)
    connection.close()
";

/// Length of the stream in octets.
const LEN: usize = 12;

/// Returns sequences of chunks after the first octet, each filled with its own octet, followed by the first octet.
fn sequences() -> Vec<Vec<Chunk>> {
    let mut random = 11_u64;
    let mut below = |count: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % count) as usize
    };
    let mut sequences: Vec<Vec<Chunk>> = (0..1500)
        .map(|_| {
            let count = 2 + below(4);
            let ahead = (0..count).map(|number| {
                let start = 1 + below(LEN as u64 - 1);
                (start, start + 1 + below((LEN - start) as u64), b'a' + number as u8)
            });
            ahead.collect()
        })
        .collect();
    // Joined runs, and chunks that begin with them.
    for end in 3..LEN {
        sequences.push(vec![(1, 3, b'a'), (3, 5, b'b'), (1, end, b'c')]);
        sequences.push(vec![(1, 3, b'a'), (3, 5, b'b'), (3, end + 1, b'c')]);
        sequences.push(vec![(3, 5, b'a'), (1, 3, b'b'), (3, end + 1, b'c')]);
    }
    // Sequences for which the result of the kernel depends on the shape of its tree cannot be compared.
    sequences.retain(|chunks| {
        let mut model = Model::new(OverlapPolicy::Linux, LEN);
        let mut is_decided = |chunk: &Chunk| {
            let is_open = model.is_open(*chunk);
            model.push(*chunk);
            !is_open
        };
        chunks.iter().all(&mut is_decided)
    });
    for chunks in &mut sequences {
        chunks.push((0, 1, b'z'));
        chunks.push((0, LEN, b'y'));
    }
    sequences
}

#[test]
fn the_linux_policy_matches_the_running_kernel() {
    let sequences = sequences();
    let text: String = sequences
        .iter()
        .map(|chunks| {
            let part = |(start, end, fill): &Chunk| {
                format!("{start}/{} ", format!("{fill:02x}").repeat(end - start))
            };
            chunks.iter().map(part).collect::<String>() + "\n"
        })
        .collect();
    let input = std::env::temp_dir().join(format!("flowgauge-segments-{}", std::process::id()));
    std::fs::write(&input, text).expect("a temporary file");
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", "ip link set lo up && exec python3 -c \"$@\"", "sh", SCRIPT])
        .stdin(std::fs::File::open(&input).expect("the file"))
        .output();
    std::fs::remove_file(&input).expect("the file");
    let output = match output {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).expect("plain text"),
        Ok(output) => return println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => return println!("skipped: unshare: {error}"),
    };
    let received: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("got ")).collect();
    assert_eq!(received.len(), sequences.len(), "{output}");
    let mut reassembler = with_policy(OverlapPolicy::Linux);
    for (chunks, received) in sequences.iter().zip(received) {
        let got = reassembled(&mut reassembler, SeqNum(0xffff_fffa), chunks.iter().copied(), LEN);
        let got: String = got.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(got, received, "{chunks:?}");
    }
    println!("{} sequences match the kernel", sequences.len());
}
