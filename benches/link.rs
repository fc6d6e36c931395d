//! In-place conversion between Ethernet frames and IP packets: frames and octets per second.
//!
//! Rows by frame length: one cached frame; `_pool`, distinct frames that together exceed the second-level cache, in
//! ring order, as a device delivers them; `_copy`, the cached frame with the packet copied into a new buffer.

mod cases;
#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;

use cases::{CLIENT, Random, SERVER, udp};
use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use flowgauge::base::VlanIds;
use flowgauge::tap::{EthernetHeader, ethernet_to_ip, ip_to_ethernet};
use per_item::PerItem as _;

const FRAME_LENS: [usize; 6] = [64, 128, 256, 512, 1024, 1400];

/// Size above the second-level cache of common processors, and within the third-level cache of most.
const POOL_BYTES: usize = 16 << 20;

const ETHERNET_LEN: usize = 14;

/// Frames per call of the timed closure, so that the cost of the timer is negligible in a pool row.
const BATCH: usize = 1024;

fn frame(len: usize, random: &mut Random) -> Vec<u8> {
    let mut payload = vec![0; len - 42];
    payload.iter_mut().for_each(|octet| *octet = random.next() as u8);
    udp((CLIENT, random.next() as u16), (SERVER, 53), &payload)
}

/// Consecutive frames of one length, each at the start of a cache line as in device rings.
struct Pool {
    octets: Vec<u8>,
    stride: usize,
    len: usize,
    next: usize,
}

impl Pool {
    /// Creates frames with `headroom` octets before each.
    fn new(len: usize, headroom: usize) -> Self {
        let stride = (headroom + len).next_multiple_of(64);
        let mut octets = vec![0; POOL_BYTES / stride * stride];
        let mut random = Random(len as u64);
        for position in octets.chunks_exact_mut(stride) {
            position[headroom..headroom + len].copy_from_slice(&frame(len, &mut random));
        }
        Self { octets, stride, len: headroom + len, next: 0 }
    }

    fn next(&mut self) -> &mut [u8] {
        let start = self.next;
        self.next += self.stride;
        if self.next == self.octets.len() {
            self.next = 0;
        }
        &mut self.octets[start..start + self.len]
    }
}

fn throughput(group: &mut BenchmarkGroup<'_, WallTime>, len: usize) {
    group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes: len as u64 });
}

fn to_ip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    for len in FRAME_LENS {
        let hot = frame(len, &mut Random(1));
        assert_eq!(ethernet_to_ip(&hot).map(<[u8]>::len), Ok(len - ETHERNET_LEN));
        throughput(&mut group, len);
        group.bench_function(format!("ethernet_to_ip/{len}"), |bencher| {
            bencher.iter_items(BATCH as u64, || {
                for _ in 0..BATCH {
                    black_box(ethernet_to_ip(black_box(&hot)).map_or(0, <[u8]>::len));
                }
            });
        });
        let mut pool = Pool::new(len, 0);
        group.bench_function(format!("ethernet_to_ip_pool/{len}"), |bencher| {
            bencher.iter_items(BATCH as u64, || {
                for _ in 0..BATCH {
                    black_box(ethernet_to_ip(black_box(pool.next())).map_or(0, <[u8]>::len));
                }
            });
        });
        group.bench_function(format!("ethernet_to_ip_copy/{len}"), |bencher| {
            bencher.iter_items(BATCH as u64, || {
                for _ in 0..BATCH {
                    black_box(ethernet_to_ip(black_box(&hot)).map_or(Vec::new(), <[u8]>::to_vec));
                }
            });
        });
    }
    group.finish();
}

fn to_ethernet(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    let header = EthernetHeader::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1], VlanIds::NONE);
    for len in FRAME_LENS {
        let mut hot = frame(len, &mut Random(1));
        let made = ip_to_ethernet(&mut hot, ETHERNET_LEN, &header);
        assert_eq!(made.map(|made| made.len()), Ok(len));
        throughput(&mut group, len);
        group.bench_function(format!("ip_to_ethernet/{len}"), |bencher| {
            bencher.iter_items(BATCH as u64, || {
                for _ in 0..BATCH {
                    let made = ip_to_ethernet(black_box(&mut hot), ETHERNET_LEN, black_box(&header));
                    black_box(made.map_or(0, |made| made.len()));
                }
            });
        });
        let mut pool = Pool::new(len, 0);
        group.bench_function(format!("ip_to_ethernet_pool/{len}"), |bencher| {
            bencher.iter_items(BATCH as u64, || {
                for _ in 0..BATCH {
                    let made = ip_to_ethernet(black_box(pool.next()), ETHERNET_LEN, black_box(&header));
                    black_box(made.map_or(0, |made| made.len()));
                }
            });
        });
        let packet = hot[ETHERNET_LEN..].to_vec();
        group.bench_function(format!("ip_to_ethernet_copy/{len}"), |bencher| {
            bencher.iter_items(BATCH as u64, || {
                for _ in 0..BATCH {
                    let packet = black_box(&packet);
                    let mut fresh = Vec::with_capacity(ETHERNET_LEN + packet.len());
                    fresh.resize(ETHERNET_LEN, 0);
                    fresh.extend_from_slice(packet);
                    let made = ip_to_ethernet(&mut fresh, ETHERNET_LEN, black_box(&header));
                    black_box(made.map_or(0, |made| made.len()));
                }
            });
        });
    }
    let tagged = EthernetHeader::new([2; 6], [4; 6], VlanIds::NONE.push(5).push(6));
    let mut buffer = [vec![0; 22], hot_packet(64)].concat();
    throughput(&mut group, 72);
    group.bench_function("ip_to_ethernet_two_tags/64", |bencher| {
        bencher.iter_items(BATCH as u64, || {
            for _ in 0..BATCH {
                let made = ip_to_ethernet(black_box(&mut buffer), 22, black_box(&tagged));
                black_box(made.map_or(0, |made| made.len()));
            }
        });
    });
    let out = [&[0; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &hot_packet(64)].concat();
    group.bench_function("ethernet_to_ip_two_tags/64", |bencher| {
        bencher.iter_items(BATCH as u64, || {
            for _ in 0..BATCH {
                black_box(ethernet_to_ip(black_box(&out)).map_or(0, <[u8]>::len));
            }
        });
    });
    group.finish();
}

fn hot_packet(len: usize) -> Vec<u8> {
    frame(len, &mut Random(1))[ETHERNET_LEN..].to_vec()
}

criterion_group!(benches, to_ip, to_ethernet);
criterion_main!(benches);
