//! The policy `linux` compared with the running kernel: the same overlapping fragments, sent over the loopback
//! interface of a separate network namespace. Requires root, `unshare`, `ip`, and `python3`; without them, the test
//! prints a note and passes.

use std::process::Command;

use flowgauge::base::{IpProtocol, Resources};
use flowgauge::decode::fragment::{DatagramKey, Outcome, OverlapPolicy, Pool, PoolConfig};

use super::fragment;

/// Sends the fragments of each line, `offset/more/hex` separated by spaces, with one identification per line, and
/// prints what a raw socket receives as a line of hexadecimal numbers. Protocol 253 is for experiments.
const SCRIPT: &str = r"
import socket, struct, sys, time
address = socket.inet_aton('127.0.0.1')
receiver = socket.socket(socket.AF_INET, socket.SOCK_RAW, 253)
receiver.setblocking(False)
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for number, line in enumerate(sys.argv[1:], 1):
    for part in line.split():
        offset, more, data = part.split('/')
        data = bytes.fromhex(data)
        field = int(offset) // 8 | int(more) << 13
        header = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(data), number, field, 64, 253, 0, address, address)
        sender.sendto(header + data, ('127.0.0.1', 0))
    time.sleep(0.003)
    got = []
    while True:
        try:
            got.append(receiver.recv(65536)[20:].hex())
        except BlockingIOError:
            break
    print('got', *got)
";

/// The offset of a fragment, the flag for more fragments, and its octets.
type Part = (u16, bool, Vec<u8>);

/// Returns sequences of fragments of a datagram of six units, at random offsets, each with different octets.
fn sequences() -> Vec<Vec<Part>> {
    let mut random = 7_u64;
    let mut below = |count: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % count
    };
    (0..300)
        .map(|_| {
            (0..3 + below(6))
                .map(|number| {
                    let start = below(6);
                    let end = start + 1 + below(6 - start);
                    let more = end < 6 || below(8) == 0;
                    // Most fragments are aligned to two units, so that datagrams often complete.
                    let (start, end) =
                        if below(3) == 0 { (start, end) } else { (start / 2 * 2, start / 2 * 2 + 2) };
                    let more = more && end < 6 || start == 0;
                    // Some do not end with a whole unit.
                    let missing = if more && end > start + 1 && below(6) == 0 { below(8) } else { 0 };
                    let len = (end - start) * 8 - missing;
                    (start as u16 * 8, more, vec![number as u8 + 1; len as usize])
                })
                .collect()
        })
        .collect()
}

#[test]
fn the_linux_policy_agrees_with_the_running_kernel() {
    let sequences = sequences();
    let hex = |bytes: &[u8]| bytes.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let lines = sequences.iter().map(|parts| {
        let parts = parts.iter().map(|(at, more, bytes)| format!("{at}/{}/{}", u8::from(*more), hex(bytes)));
        parts.collect::<Vec<_>>().join(" ")
    });
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", "ip link set lo up && exec python3 -c \"$@\"", "sh", SCRIPT])
        .args(lines)
        .output();
    let output = match output {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).expect("plain text"),
        Ok(output) => {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
            return;
        }
        Err(error) => {
            println!("skipped: unshare: {error}");
            return;
        }
    };
    let mut config = PoolConfig::default();
    config.policy = OverlapPolicy::Linux;
    let mut pool: Pool<u32> = Pool::new(config, &Resources::default()).expect("a valid configuration");
    let received: Vec<Vec<&str>> = output.lines().map(|line| line.split(' ').skip(1).collect()).collect();
    assert_eq!(received.len(), sequences.len());
    let mut completed_count = 0;
    for (number, (parts, received)) in (1..).zip(sequences.iter().zip(&received)) {
        let address = std::net::Ipv4Addr::LOCALHOST;
        let key = DatagramKey::v4(address, address, number, IpProtocol(253), 0);
        let mut completed = vec![];
        for (at, more, bytes) in parts {
            match pool.push(&fragment(key, 0, *at, *more, bytes), 0, |_| {}) {
                Outcome::Completed(it) => completed.push(hex(it.payload)),
                Outcome::Atomic => completed.push(hex(bytes)),
                _ => {}
            }
        }
        assert_eq!(&completed, received, "{parts:?}");
        completed_count += completed.len();
    }
    assert!(completed_count > 20, "only {completed_count} datagrams were completed");
    println!(
        "{completed_count} datagrams equal to those of the kernel, {} discards, {} fragments rounded down",
        pool.stats().overlap_discarded_count,
        pool.stats().rounded_count
    );
}
