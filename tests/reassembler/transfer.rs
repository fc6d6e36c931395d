//! Real transfers: TCP between two kernels over a path that drops, reorders and duplicates packets, and the streams
//! reassembled from captures of it.
//!
//! A relay between two TUN devices connects two network namespaces. It records the packets that it reads, before it
//! drops any, and the packets that it forwards. If the kernel has `netem`, `netem` impairs the path; otherwise the
//! relay does. Needs root, `unshare`, `ip`, `python3` and `/dev/net/tun`; prints a message and passes if they are
//! missing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flowgauge::base::{FrameBatch, Limits, Resources, SeqNum, Side, TcpFlags};
use flowgauge::decode::extractor::Extractor;
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};
use flowgauge::source::{FileSource, Source as _};

/// Sends the first file to a server, which answers with the last 200,000 octets of it, through a relay that writes the
/// second file (packets as read) and the third file (packets as forwarded). Ends after at most 15 seconds.
const SCRIPT: &str = r"
import ctypes, fcntl, heapq, os, random, select, signal, socket, struct, sys, threading, time
path, before, behind = sys.argv[1:4]
signal.alarm(15)
data = open(path, 'rb').read()
reply = data[-200000:]

def tun(name, address):
    device = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(device, 0x400454ca, struct.pack('16sH', name.encode(), 0x1001))
    if os.system(f'ip addr add {address}/24 dev {name} && ip link set {name} up'):
        sys.exit('no device')
    impairment = 'loss 2% duplicate 2% delay 2ms reorder 80%'
    return device, os.system(f'tc qdisc add dev {name} root netem {impairment} 2>/dev/null') == 0

def read(connection, count):
    got = b''
    while len(got) < count and (part := connection.recv(1 << 20)):
        got += part
    return got

ours, theirs = socket.socketpair(socket.AF_UNIX)
first, has_netem = tun('t0', '10.0.0.1')
child = os.fork()
if child == 0:
    # A separate network namespace: CLONE_NEWNET.
    if ctypes.CDLL(None).unshare(0x40000000):
        os._exit(3)
    second, _ = tun('t1', '10.0.0.2')
    socket.send_fds(theirs, [b'x'], [second])
    os.close(second)
    theirs.recv(1)
    connection = socket.create_connection(('10.0.0.1', 80))
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    is_complete = read(connection, len(reply) + 1) == reply
    connection.close()
    os._exit(0 if is_complete else 4)

server = socket.create_server(('10.0.0.1', 80))
results = []
def serve():
    connection, _ = server.accept()
    results.append(read(connection, len(data) + 1) == data)
    connection.sendall(reply)
    connection.close()
threading.Thread(target=serve, daemon=True).start()
second = socket.recv_fds(ours, 1, 1)[1][0]
ours.send(b'x')
print('joined:', end=' ', flush=True)

files = [open(name, 'wb') for name in (before, behind)]
for file in files:
    file.write(struct.pack('<IHHIIII', 0xa1b23c4d, 2, 4, 0, 0, 262144, 101))

def note(file, packet):
    now = time.time_ns()
    file.write(struct.pack('<IIII', now // 10**9, now % 10**9, len(packet), len(packet)) + packet)

chance = random.Random(7)
waiting, number, status, quiet_since = [], 0, None, time.monotonic()
lost = repeated = delayed = 0
while status is None or waiting or time.monotonic() - quiet_since < 0.3:
    timeout = max(0, min(0.05, waiting[0][0] - time.monotonic())) if waiting else 0.05
    for device in select.select([first, second], [], [], timeout)[0]:
        packet = os.read(device, 4096)
        if packet[0] >> 4 != 4:
            continue
        quiet_since = time.monotonic()
        note(files[0], packet)
        target = second if device == first else first
        # The handshake is not impaired, so that the test does not wait seconds for a retransmission.
        choice = 1 if has_netem or number < 4 else chance.random()
        number += 1
        if choice < 0.02:
            lost += 1
            continue
        times = 2 if choice < 0.04 else 1
        repeated += times - 1
        for _ in range(times):
            delay = chance.random() * 0.004 if 0.03 < choice < 0.1 else 0
            delayed += delay > 0
            heapq.heappush(waiting, (quiet_since + delay, len(waiting) + number * 4, target, packet))
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, target, packet = heapq.heappop(waiting)
        note(files[1], packet)
        os.write(target, packet)
    if status is None:
        ended, code = os.waitpid(child, os.WNOHANG)
        status = code if ended else None
for file in files:
    file.close()
if status or results != [True]:
    sys.exit('the transfer failed')
print(f'netem {has_netem}: {number} packets, {lost} lost, {repeated} repeated, {delayed} delayed')
";

const FILE_LEN: usize = 4 << 20;

/// Returns pseudorandom content, in which octets do not repeat at distances of a power of two.
fn file() -> Vec<u8> {
    (0..FILE_LEN as u64).map(|position| (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// One delivered direction: the octets, with zeros in gaps, and the gaps.
#[derive(Default)]
struct Delivered {
    bytes: Vec<u8>,
    gaps: Vec<(u64, u64)>,
    has_fin: bool,
    /// Positions of octets in captured segments, and the sequence number of the first octet.
    captured: Vec<bool>,
    first: Option<SeqNum>,
}

/// Reassembles both directions of a capture, with that of the client first; `is_kept` selects frames by their number.
fn streams(
    path: &Path,
    (config, limits): (ReassemblerConfig, Limits),
    mut is_kept: impl FnMut(usize) -> bool,
) -> [Delivered; 2] {
    let mut reassembler = Reassembler::new(config, &Resources::new(limits)).expect("a valid configuration");
    let (mut streams, mut reported): ([Stream; 2], [Delivered; 2]) = Default::default();
    let apply = |reported: &mut Delivered, event: StreamEvent<'_>| match event {
        StreamEvent::Chunk(chunk) => {
            assert_eq!(chunk.offset, reported.bytes.len() as u64);
            reported.bytes.extend_from_slice(chunk.bytes);
        }
        StreamEvent::Gap(gap) => {
            assert_eq!(gap.offset, reported.bytes.len() as u64);
            println!("{gap:?}");
            reported.bytes.resize(reported.bytes.len() + gap.len as usize, 0);
            match reported.gaps.last_mut() {
                Some((_, end)) if *end == gap.offset => *end += gap.len,
                _ => reported.gaps.push((gap.offset, gap.offset + gap.len)),
            }
        }
        StreamEvent::Fin { offset, .. } => {
            assert_eq!(offset, reported.bytes.len() as u64);
            reported.has_fin = true;
        }
        StreamEvent::Repeated { .. } => {}
        other => panic!("{other:?}"),
    };
    let mut source = FileSource::open(path).expect("a readable capture");
    let (mut batch, extractor) = (FrameBatch::new(), Extractor::default());
    let (mut client, mut number): (Option<Side>, usize) = (None, 0);
    while !source.next_batch(&mut batch).expect("a whole capture").is_end() || !batch.is_empty() {
        for frame in batch.iter() {
            let packet = extractor.extract(&frame).expect("a packet");
            let segment = Segment::of(&packet).expect("a segment");
            let own = usize::from(*client.get_or_insert(packet.side) != packet.side);
            number += 1;
            if !is_kept(number) {
                continue;
            }
            reassembler.segment(&mut streams[own], own, &segment, |event| apply(&mut reported[own], event));
            let peer = 1 - own;
            reassembler.acknowledgment(&mut streams[peer], peer, &segment, |event| {
                apply(&mut reported[peer], event);
            });
            while let Some(due) = reassembler.next_due(segment.timestamp) {
                reassembler.skip(&mut streams[due], due, |event| apply(&mut reported[due], event));
            }
            cover(&mut reported[own], &segment);
        }
        batch.clear();
    }
    for (stream, reported) in streams.iter_mut().zip(&mut reported) {
        reassembler.finish(stream, |event| apply(reported, event));
    }
    assert_eq!(reassembler.held_stream_count(), 0);
    reported
}

/// Marks the octets of a segment as captured; the first segment is the SYN.
fn cover(reported: &mut Delivered, segment: &Segment<'_>) {
    let first = *reported.first.get_or_insert(segment.seq.add(1));
    if !segment.flags.contains(TcpFlags::SYN) && !segment.payload.is_empty() {
        let start = segment.seq.distance_from(first) as usize;
        let end = start + segment.payload.len();
        reported.captured.resize(reported.captured.len().max(end), false);
        reported.captured[start..end].fill(true);
    }
}

/// Returns the runs of octets that no segment contains.
fn missing(captured: &[bool]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (position, _) in (0..).zip(captured).filter(|(_, is_captured)| !**is_captured) {
        match runs.last_mut() {
            Some((_, end)) if *end == position => *end += 1,
            _ => runs.push((position, position + 1)),
        }
    }
    runs
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Captures a transfer, and returns the files as read and as forwarded; prints a message and returns `None` if that is
/// not possible.
fn transferred(file: &[u8]) -> Option<(Folder, [PathBuf; 2])> {
    let folder = Folder(std::env::temp_dir().join(format!("flowgauge-transfer-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a temporary folder");
    let [path, before, behind] = ["file", "before.pcap", "behind.pcap"].map(|name| folder.0.join(name));
    std::fs::write(&path, file).expect("a temporary file");
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", "ip link set lo up && exec python3 -c \"$@\"", "sh", SCRIPT])
        .args([&path, &before, &behind])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            println!("{}", String::from_utf8_lossy(&output.stdout).trim());
            Some((folder, [before, behind]))
        }
        Ok(output) => {
            // A transfer that began must succeed, unless the machine was too busy.
            let has_failed = output.stdout.starts_with(b"joined") && output.status.code().is_some();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!has_failed, "{error}");
            println!("skipped: {}, {}", output.status, error.trim());
            None
        }
        Err(error) => {
            println!("skipped: unshare: {error}");
            None
        }
    }
}

#[test]
fn a_recorded_transfer_is_reassembled_completely() {
    let file = file();
    let Some((_folder, captures)) = transferred(&file) else { return };
    let sent: [&[u8]; 2] = [&file, &file[FILE_LEN - 200_000..]];
    // On a busy machine, more segments are buffered after a hole than the default limits allow.
    let mut large = Limits::DEFAULT;
    (large.stream_side_bytes_max, large.stream_side_segment_count_max) = (64 << 20, 1 << 16);
    for capture in &captures {
        let reported = streams(capture, (ReassemblerConfig::default(), large), |_| true);
        for (reported, sent) in reported.iter().zip(sent) {
            assert_eq!(reported.gaps, []);
            assert!(reported.bytes == sent && reported.has_fin, "{} octets", reported.bytes.len());
        }
    }

    // The capture drops frames that the receiver got. With unlimited time, exactly the octets that no frame contains
    // are missing.
    let mut random = 3_u64;
    let mut choices: HashMap<usize, bool> = HashMap::new();
    let mut is_kept = |number: usize| {
        *choices.entry(number).or_insert_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            number <= 4 || !(random >> 33).is_multiple_of(40)
        })
    };
    let mut config = ReassemblerConfig::default();
    (config.ack_grace, config.hole_timeout) = (Duration::MAX, Duration::MAX);
    for (number, (reported, sent)) in
        streams(&captures[1], (config, large), &mut is_kept).iter().zip(sent).enumerate()
    {
        check_gaps(reported, sent);
        // An acknowledgment of a FIN that was not captured counts one additional octet; octets after the last known one
        // are not reported as missing.
        let mut captured = reported.captured.clone();
        captured.resize(reported.bytes.len().min(sent.len()), false);
        let within = |(start, end): &(u64, u64)| (*start, (*end).min(sent.len() as u64));
        let gaps: Vec<_> = reported.gaps.iter().map(within).filter(|(start, end)| start < end).collect();
        assert_eq!(gaps, missing(&captured));
        assert!(number > 0 || reported.gaps.len() > 10, "{} gaps", reported.gaps.len());
    }
    // With the default times, octets retransmitted after the grace period are missing too; all other octets are
    // correct.
    for (reported, sent) in streams(&captures[1], Default::default(), &mut is_kept).iter().zip(sent) {
        check_gaps(reported, sent);
        let is_given_up = |run: &(u64, u64)| reported.gaps.iter().any(|gap| gap.0 <= run.0 && run.1 <= gap.1);
        assert!(missing(&reported.captured).iter().all(is_given_up));
    }
}

/// Checks that outside of its gaps, a stream contains the octets that were sent, except for its end if no captured
/// segment indicates it.
fn check_gaps(reported: &Delivered, sent: &[u8]) {
    let mut expected = sent[..reported.bytes.len().min(sent.len())].to_vec();
    for (start, end) in &reported.gaps {
        expected[*start as usize..(*end as usize).min(sent.len())].fill(0);
    }
    expected.resize(reported.bytes.len(), 0);
    assert!(reported.bytes == expected, "{} octets, gaps {:?}", reported.bytes.len(), reported.gaps);
    assert!(reported.bytes.len() + 50_000 >= sent.len() && reported.bytes.len() <= sent.len() + 1);
}
