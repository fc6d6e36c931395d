//! The in-process part of forwarding super-packets: tracking them, compared with tracking their segments, and splitting
//! them, compared with tun-rs. The super-packets are those of one connection of iperf3 over a TUN device with offload;
//! `super_packets.pcap` has their headers. Times are per segment (`track`) and per super-packet (`split`). System calls are
//! measured by `benches/tun/run.sh`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::source::{Source, split_super_packet};
use flowgauge::{FileSource, Frame, FrameBatch, LinkType, Pipeline, Timestamp};
use per_item::PerItem as _;
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr, gso_split};

#[path = "cases/per_item.rs"]
mod per_item;

/// Payload of each segment but the last: an MTU of 1500 without 52 octets of headers.
const SEGMENT_LEN: usize = 1448;
const HEADERS_LEN: usize = 52;

struct Recorded {
    timestamp: Timestamp,
    header: [u8; VIRTIO_NET_HDR_LEN],
    packet: Vec<u8>,
}

fn recorded() -> Vec<Recorded> {
    let mut source = FileSource::open("benches/tun/super_packets.pcap").expect("the recording");
    let (mut batch, mut packets) = (FrameBatch::new(), Vec::new());
    while !source.next_batch(&mut batch).expect("a readable file").is_end() {
        for frame in batch.iter() {
            let mut packet = frame.data.to_vec();
            // The recording has the headers; the payload has any content.
            packet.resize(frame.wire_len as usize, 0xa5);
            let mut header = [0; VIRTIO_NET_HDR_LEN];
            if packet.len() > HEADERS_LEN + SEGMENT_LEN {
                VirtioNetHdr {
                    flags: 1,
                    gso_type: 1,
                    hdr_len: HEADERS_LEN as u16,
                    gso_size: SEGMENT_LEN as u16,
                    csum_start: 20,
                    csum_offset: 16,
                }
                .encode(&mut header)
                .expect("space for a header");
            }
            packets.push(Recorded { timestamp: frame.timestamp, header, packet });
        }
    }
    assert_eq!(packets.len(), 600);
    packets
}

fn single(timestamp: Timestamp, data: &[u8]) -> Frame<'_> {
    Frame { link_type: LinkType::RAW, ..Frame::ethernet(timestamp, data) }
}

/// The recorded packets as a device with offload delivers them, and as one without does.
fn batches(packets: &[Recorded]) -> [FrameBatch; 2] {
    let (mut whole, mut split) = (FrameBatch::new(), FrameBatch::new());
    let mut buffer = Vec::new();
    for Recorded { timestamp, header, packet } in packets {
        let mut wire_len = 0;
        let is_super_packet = split_super_packet(header, packet, &mut buffer, |segment| {
            wire_len += segment.len() as u32;
            split.push(&single(*timestamp, segment));
        });
        if is_super_packet {
            whole.push(&Frame {
                link_type: LinkType::SUPER_PACKET_IP,
                wire_len,
                ..single(*timestamp, packet)
            });
        } else {
            whole.push(&single(*timestamp, packet));
            split.push(&single(*timestamp, packet));
        }
    }
    [whole, split]
}

fn tracking(criterion: &mut Criterion) {
    let batches = batches(&recorded());
    let stats = batches.each_ref().map(|batch| {
        let mut pipeline = Pipeline::builder().build(()).expect("valid settings");
        let _ = pipeline.batch(batch);
        pipeline.finish();
        pipeline.stats().tracker
    });
    let [whole, split] = stats.map(|stats| (stats.packet_count, stats.octet_count));
    assert_eq!(whole, split, "a super-packet counts as its segments");
    let mut group = criterion.benchmark_group("tun/track");
    group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes: whole.1 / whole.0 });
    for (name, batch) in ["super_packets", "segments"].into_iter().zip(&batches) {
        group.bench_function(name, |bencher| {
            let pipeline = || Pipeline::builder().build(()).expect("valid settings");
            bencher.iter_items_with(whole.0, pipeline, |mut pipeline| {
                let _ = pipeline.batch(batch);
                pipeline
            });
        });
    }
    group.finish();
}

fn splitting(criterion: &mut Criterion) {
    let mut packets = recorded();
    packets.retain(|recorded| recorded.header != [0; VIRTIO_NET_HDR_LEN]);
    let mut group = criterion.benchmark_group("tun/split");
    let count = packets.len() as u64;
    let octet_count = packets.iter().map(|recorded| recorded.packet.len() as u64).sum::<u64>();
    group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes: octet_count / count });
    group.bench_function("flowgauge", |bencher| {
        let mut buffer = Vec::new();
        bencher.iter_items(count, || {
            let mut octet_count = 0;
            for Recorded { header, packet, .. } in &packets {
                split_super_packet(header, packet, &mut buffer, |segment| octet_count += segment.len());
            }
            octet_count
        });
    });
    group.bench_function("tun_rs", |bencher| {
        let mut buffers = vec![vec![0; 1500]; 64];
        let mut sizes = vec![0; 64];
        bencher.iter_items(count, || {
            let mut octet_count = 0;
            for Recorded { header, packet, .. } in &mut packets {
                let header = VirtioNetHdr::decode(header).expect("a header");
                let count = gso_split(packet, header, &mut buffers, &mut sizes, 0, false).expect("segments");
                octet_count += sizes.iter().take(count).sum::<usize>();
            }
            octet_count
        });
    });
    group.finish();
}

criterion_group!(benches, tracking, splitting);
criterion_main!(benches);
