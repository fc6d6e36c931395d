//! Real transfers: two kernels' TCP over a path that loses, reorders and repeats, and the streams that captures of it give.
//!
//! Two network namespaces are joined by a relay between two TUN devices, which records what it reads, before it loses anything, and
//! what it passes on. Where the kernel has `netem`, that makes the trouble; otherwise the relay does. Needs root, `unshare`, `ip`,
//! `python3` and `/dev/net/tun`; says so and passes where they are missing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flowgauge::base::{FrameBatch, Limits, Resources, SeqNum, Side, TcpFlags};
use flowgauge::decode::extractor::Extractor;
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};
use flowgauge::source::{FileSource, Next, Source as _};

/// Sends the file named first to a server that answers with the last 200,000 octets of it, through a relay that writes the files
/// named second (as read) and third (as passed on). Ends after 15 seconds at the latest.
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
    trouble = 'loss 2% duplicate 2% delay 2ms reorder 80%'
    return device, os.system(f'tc qdisc add dev {name} root netem {trouble} 2>/dev/null') == 0

def read(connection, count):
    got = b''
    while len(got) < count and (part := connection.recv(1 << 20)):
        got += part
    return got

ours, theirs = socket.socketpair(socket.AF_UNIX)
first, has_netem = tun('t0', '10.0.0.1')
child = os.fork()
if child == 0:
    # A kernel of its own: CLONE_NEWNET.
    if ctypes.CDLL(None).unshare(0x40000000):
        os._exit(3)
    second, _ = tun('t1', '10.0.0.2')
    socket.send_fds(theirs, [b'x'], [second])
    os.close(second)
    theirs.recv(1)
    connection = socket.create_connection(('10.0.0.1', 80))
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    is_whole = read(connection, len(reply) + 1) == reply
    connection.close()
    os._exit(0 if is_whole else 4)

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
        # The handshake passes, so that the test takes no seconds for it.
        lot = 1 if has_netem or number < 4 else chance.random()
        number += 1
        if lot < 0.02:
            lost += 1
            continue
        times = 2 if lot < 0.04 else 1
        repeated += times - 1
        for _ in range(times):
            delay = chance.random() * 0.004 if 0.03 < lot < 0.1 else 0
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

/// No octet of it repeats where another stands a multiple of a power of two away.
fn file() -> Vec<u8> {
    (0..FILE_LEN as u64).map(|position| (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

/// One direction as it was told: bytes, zeros where there were none, and the gaps.
#[derive(Default)]
struct Told {
    bytes: Vec<u8>,
    gaps: Vec<(u64, u64)>,
    has_fin: bool,
    /// Octets by the captured segments, and the sequence number of the first.
    captured: Vec<bool>,
    first: Option<SeqNum>,
}

/// Both directions of a capture, the client's first; `is_kept` says which frames are left, by their number.
fn streams(
    path: &Path,
    (config, limits): (ReassemblerConfig, Limits),
    mut is_kept: impl FnMut(usize) -> bool,
) -> [Told; 2] {
    let mut reassembler = Reassembler::new(config, &Resources::new(limits)).expect("a valid configuration");
    let (mut streams, mut reported): ([Stream; 2], [Told; 2]) = Default::default();
    let take = |reported: &mut Told, event: StreamEvent<'_>| match event {
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
    while source.next_batch(&mut batch).expect("a whole capture") != Next::End || !batch.is_empty() {
        for frame in batch.iter() {
            let packet = extractor.extract(&frame).expect("a packet");
            let segment = Segment::of(&packet).expect("a segment");
            let own = usize::from(*client.get_or_insert(packet.side) != packet.side);
            number += 1;
            if !is_kept(number) {
                continue;
            }
            reassembler.segment(&mut streams[own], own, &segment, |event| take(&mut reported[own], event));
            let peer = 1 - own;
            reassembler.acknowledgment(&mut streams[peer], peer, &segment, |event| {
                take(&mut reported[peer], event);
            });
            while let Some(due) = reassembler.next_due(segment.timestamp) {
                reassembler.skip(&mut streams[due], due, |event| take(&mut reported[due], event));
            }
            cover(&mut reported[own], &segment);
        }
        batch.clear();
    }
    for (stream, reported) in streams.iter_mut().zip(&mut reported) {
        reassembler.finish(stream, |event| take(reported, event));
    }
    assert_eq!(reassembler.held_stream_count(), 0);
    reported
}

/// Notes the octets of a segment as captured; the first one is the SYN.
fn cover(reported: &mut Told, segment: &Segment<'_>) {
    let first = *reported.first.get_or_insert(segment.seq.add(1));
    if !segment.flags.contains(TcpFlags::SYN) && !segment.payload.is_empty() {
        let start = segment.seq.distance_from(first) as usize;
        let end = start + segment.payload.len();
        reported.captured.resize(reported.captured.len().max(end), false);
        reported.captured[start..end].fill(true);
    }
}

/// The runs of octets that no segment had.
fn missing(captured: &[bool]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (position, _) in (0..).zip(captured).filter(|(_, is_there)| !**is_there) {
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

/// Captures of a transfer, as read and as passed on; `None`, with a word, where there can be none.
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
            // What began must end well, unless the machine was too busy for it.
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
    // On a busy machine, more segments wait behind a hole than the caps allow by default.
    let mut roomy = Limits::DEFAULT;
    (roomy.stream_side_bytes_max, roomy.stream_side_segment_count_max) = (64 << 20, 1 << 16);
    for capture in &captures {
        let reported = streams(capture, (ReassemblerConfig::default(), roomy), |_| true);
        for (reported, sent) in reported.iter().zip(sent) {
            assert_eq!(reported.gaps, []);
            assert!(reported.bytes == sent && reported.has_fin, "{} octets", reported.bytes.len());
        }
    }

    // Now the capture loses frames that the receiver got. If there is time, what no frame had is missing, and nothing else.
    let mut random = 3_u64;
    let mut lots: HashMap<usize, bool> = HashMap::new();
    let mut is_kept = |number: usize| {
        *lots.entry(number).or_insert_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            number <= 4 || !(random >> 33).is_multiple_of(40)
        })
    };
    let mut config = ReassemblerConfig::default();
    (config.ack_grace, config.hole_timeout) = (Duration::MAX, Duration::MAX);
    for (number, (reported, sent)) in
        streams(&captures[1], (config, roomy), &mut is_kept).iter().zip(sent).enumerate()
    {
        check_gaps(reported, sent);
        // An acknowledgment of a FIN that was lost counts one octet more, and what lies behind all that is known is not missing.
        let mut captured = reported.captured.clone();
        captured.resize(reported.bytes.len().min(sent.len()), false);
        let within = |(start, end): &(u64, u64)| (*start, (*end).min(sent.len() as u64));
        let gaps: Vec<_> = reported.gaps.iter().map(within).filter(|(start, end)| start < end).collect();
        assert_eq!(gaps, missing(&captured));
        assert!(number > 0 || reported.gaps.len() > 10, "{} gaps", reported.gaps.len());
    }
    // By the clock, what is sent again after the grace is missing too, and still nothing is wrong.
    for (reported, sent) in streams(&captures[1], Default::default(), &mut is_kept).iter().zip(sent) {
        check_gaps(reported, sent);
        let is_given_up = |run: &(u64, u64)| reported.gaps.iter().any(|gap| gap.0 <= run.0 && run.1 <= gap.1);
        assert!(missing(&reported.captured).iter().all(is_given_up));
    }
}

/// Outside of its gaps, a stream is what was sent, but for its very end, if nothing that would tell of it was captured.
fn check_gaps(reported: &Told, sent: &[u8]) {
    let mut expected = sent[..reported.bytes.len().min(sent.len())].to_vec();
    for (start, end) in &reported.gaps {
        expected[*start as usize..(*end as usize).min(sent.len())].fill(0);
    }
    expected.resize(reported.bytes.len(), 0);
    assert!(reported.bytes == expected, "{} octets, gaps {:?}", reported.bytes.len(), reported.gaps);
    assert!(reported.bytes.len() + 50_000 >= sent.len() && reported.bytes.len() <= sent.len() + 1);
}
