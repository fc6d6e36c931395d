//! Reading of captures: frames per second from a file in the page cache, and from the datagrams of a mirror session.
//!
//! Run with `cargo bench --bench source`; `--features compression` adds the compressed rows.

#[path = "cases/per_item.rs"]
mod per_item;

use std::fs;
use std::hint::black_box;
use std::io::BufWriter;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Frame, FrameBatch, Timestamp};
use flowgauge::source::{
    FileSource, MirrorConfig, MirrorEncapsulation, MirrorSource, Next, PcapngWriter, Source,
};
use per_item::PerItem as _;

const FRAMES: u64 = 100_000;

/// Typical frame lengths: acknowledgments, full segments, and lengths between them.
const LENS: [usize; 8] = [66, 1514, 60, 1514, 74, 590, 66, 1514];

/// Distance between the starts of two frames in the payload.
const STRIDE: usize = 700;

/// A temporary folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("flowgauge-bench-source-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn write(&self, name: &str, octets: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, octets).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Octets that compress about as well as traffic: every other octet is random, and no sequence is repeated.
fn payload() -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    (0..FRAMES as usize * STRIDE + 2048)
        .map(|position| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            if position % 2 == 0 { state as u8 } else { 0x20 }
        })
        .collect()
}

fn frames(payload: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    (0..FRAMES).map(|number| {
        let start = number as usize * STRIDE;
        let len = LENS[number as usize % LENS.len()];
        Frame::ethernet(
            Timestamp::from_nanos(1_700_000_000_000_000_000 + number * 1000),
            &payload[start..start + len],
        )
    })
}

fn pcap(payload: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames(payload) {
        let nanos = frame.timestamp.as_nanos();
        for word in
            [nanos / 1_000_000_000, nanos % 1_000_000_000, frame.data.len() as u64, frame.wire_len.into()]
        {
            file.extend((word as u32).to_le_bytes());
        }
        file.extend(frame.data);
    }
    file
}

fn pcapng(payload: &[u8]) -> Vec<u8> {
    let mut writer = PcapngWriter::new(BufWriter::new(Vec::new())).expect("writing to a vector succeeds");
    for frame in frames(payload) {
        writer.write(&frame, &[]).expect("writing to a vector succeeds");
    }
    writer.finish().expect("writing to a vector succeeds").into_inner().expect("writing to a vector succeeds")
}

/// Numbers of frames and of octets on the wire.
fn read(path: &Path, batch: &mut FrameBatch) -> (u64, u64) {
    let mut source = FileSource::open(path).expect("a capture");
    let (mut frames, mut octets) = (0, 0);
    while source.next_batch(batch).expect("a readable file") == Next::Frames {
        frames += batch.len() as u64;
        octets += batch.iter().map(|frame| u64::from(frame.wire_len)).sum::<u64>();
    }
    (frames, octets)
}

fn source(criterion: &mut Criterion) {
    let folder = Folder::new();
    let payload = payload();
    let octets: u64 = frames(&payload).map(|frame| frame.data.len() as u64).sum();
    let plain = pcap(&payload);
    let mut files = vec![
        ("pcap", folder.write("a.pcap", &plain)),
        ("pcapng", folder.write("a.pcapng", &pcapng(&payload))),
    ];
    #[cfg(feature = "compression")]
    {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gzip, &plain).expect("writing to a vector succeeds");
        files.push(("pcap_gz", folder.write("a.gz", &gzip.finish().expect("writing to a vector succeeds"))));
        files.push((
            "pcap_zst",
            folder.write("a.zst", &zstd::encode_all(&plain[..], 3).expect("writing to a vector succeeds")),
        ));
    }
    let mut group = criterion.benchmark_group("source");
    // The mean length of a frame.
    group.sample_size(20).throughput(Throughput::ElementsAndBytes { elements: 1, bytes: octets / FRAMES });
    let mut batch = FrameBatch::new();
    for (name, path) in &mut files {
        assert_eq!(read(path, &mut batch), (FRAMES, octets), "{name}");
        group.bench_function(*name, |bencher| bencher.iter_items(FRAMES, || read(path, &mut batch)));
    }
    group.finish();
}

/// Number of datagrams that wait in the socket when they are received; they fit in the receive buffer of any process.
const WAITING_COUNT: u64 = 64;

/// Receiving frames of 60 octets in VXLAN that wait in the socket: the calls of the kernel, decapsulation, and the copy
/// into the batch. Sending is not timed. For comparison, the same datagrams with one call of the standard library each.
fn mirror(criterion: &mut Criterion) {
    let datagram = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &[0; 60]].concat();
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let send = |address| {
        for _ in 0..WAITING_COUNT {
            sender.send_to(&datagram, address).expect("a datagram that is sent");
        }
    };
    let mut group = criterion.benchmark_group("source/mirror");
    group.sample_size(20).throughput(Throughput::Elements(1));

    let config = MirrorConfig::default();
    let mut source = MirrorSource::udp("127.0.0.1:0", MirrorEncapsulation::Vxlan, config).expect("a socket");
    let address = source.local_addr().expect("an address");
    let mut batch = FrameBatch::new();
    group.bench_function("vxlan", |bencher| {
        let receive = |()| {
            let mut frame_count = 0;
            while frame_count < WAITING_COUNT {
                assert_eq!(source.next_batch(&mut batch).expect("a working socket"), Next::Frames);
                frame_count += black_box(&batch).len() as u64;
            }
            assert_eq!(frame_count, WAITING_COUNT);
        };
        bencher.iter_items_with(WAITING_COUNT, || send(address), receive);
    });
    assert_eq!(source.stats().kernel_drop_count + source.stats().invalid_datagram_count, 0);

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("an address");
    let mut buffer = [0; 2048];
    group.bench_function("recv_from", |bencher| {
        let receive = |()| {
            for _ in 0..WAITING_COUNT {
                let (len, _) = socket.recv_from(&mut buffer).expect("a datagram");
                assert_eq!(black_box(&buffer[..len]).len(), datagram.len());
            }
        };
        bencher.iter_items_with(WAITING_COUNT, || send(address), receive);
    });
    group.finish();
}

criterion_group!(benches, source, mirror);
criterion_main!(benches);
