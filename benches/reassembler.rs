//! Stream reassembly. A time is for one segment of 1500 octets unless the id states otherwise: for a pair of segments in
//! `out_of_order_1500`, for 64 segments in `by_64` and `reversed_64`, for 1000 in `loss_1_percent`, and for 10,000 in
//! `interleaved_10000_flows`. The ids up to `drop_flow_poisoned` do the same work as the same ids of other crates.

#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Limits, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{
    Buffered, BufferedOverflow, OverflowPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent,
};
use per_item::PerItem as _;

const LEN: u32 = 1500;

fn segment(seq: u32, payload: &[u8]) -> Segment<'_> {
    Segment::new(SeqNum(seq), TcpFlags::ACK, payload, Timestamp::ZERO)
}

fn payload() -> Vec<u8> {
    (0..LEN).map(|at| (at / 7) as u8).collect()
}

/// A stream that expects the octet with sequence number 0 and has received an acknowledgment.
fn anchored(reassembler: &mut Reassembler<u32>) -> Stream {
    let mut stream = Stream::default();
    let syn = Segment::new(SeqNum(u32::MAX), TcpFlags::SYN, &[], Timestamp::ZERO);
    reassembler.segment(&mut stream, 0, &syn, |_| {});
    let answer = segment(0, &[]).with_ack(SeqNum(0));
    reassembler.acknowledgment(&mut stream, 0, &answer, |_| {});
    stream
}

fn reassembler(change: impl FnOnce(&mut ReassemblerConfig, &mut Limits)) -> Reassembler<u32> {
    let (mut config, mut limits) = (ReassemblerConfig::default(), Limits::DEFAULT);
    change(&mut config, &mut limits);
    Reassembler::new(config, &Resources::new(limits)).expect("a valid configuration")
}

/// In order, with and without a collector.
fn in_order(criterion: &mut Criterion) {
    let payload = payload();
    let mut group = criterion.benchmark_group("reassembler");
    for (id, cap, taken_above) in
        [("in_order_1500_uncapped", usize::MAX, 1_000_000), ("in_order_1500_capped_1m", 1 << 20, 512 << 10)]
    {
        let mut reassembler = reassembler(|_, _| {});
        let mut stream = anchored(&mut reassembler);
        let mut buffered = Buffered::with_cap(cap, BufferedOverflow::Slide);
        let (mut seq, mut taken_count) = (0_u32, 0_u64);
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                let segment = segment(seq, black_box(&payload));
                reassembler.segment(&mut stream, 0, &segment, |event| buffered.push(&event));
                seq = seq.wrapping_add(LEN);
                if buffered.len() > taken_above {
                    taken_count += black_box(buffered.take()).len() as u64;
                }
            });
        });
        assert_eq!(stream.offset(), taken_count + buffered.len() as u64);
        assert_eq!(buffered.dropped_octet_count(), 0);
    }
    let mut reassembler = reassembler(|_, _| {});
    let mut stream = anchored(&mut reassembler);
    let (mut seq, mut octet_count) = (0_u32, 0_u64);
    group.bench_function("in_order_1500_borrowed", |bencher| {
        bencher.iter(|| {
            let segment = segment(seq, black_box(&payload));
            reassembler.segment(&mut stream, 0, &segment, |event| {
                if let StreamEvent::Chunk(chunk) = black_box(event) {
                    octet_count += chunk.bytes.len() as u64;
                }
            });
            seq = seq.wrapping_add(LEN);
        });
    });
    assert_eq!(stream.offset(), octet_count);
    let mut buffered = Buffered::with_cap(100, BufferedOverflow::Slide);
    let mut stream = anchored(&mut reassembler);
    let mut seq = 0_u32;
    group.bench_function("sliding_window_overflow", |bencher| {
        bencher.iter(|| {
            let segment = segment(seq, black_box(&payload));
            reassembler.segment(&mut stream, 0, &segment, |event| buffered.push(&event));
            seq = seq.wrapping_add(LEN);
        });
    });
    assert_eq!((buffered.bytes(), buffered.dropped_octet_count()), (&payload[1400..], stream.offset() - 100));
    group.finish();
}

/// Segments that are dropped.
fn dropped(criterion: &mut Criterion) {
    let payload = payload();
    let mut group = criterion.benchmark_group("reassembler");
    let mut dropping = reassembler(|config, limits| {
        config.overflow = OverflowPolicy::DropNewest;
        limits.stream_side_bytes_max = 0;
    });
    let mut stream = anchored(&mut dropping);
    let far = segment(1_000_000, &payload);
    let mut count = 0_u64;
    group.bench_function("ooo_drops", |bencher| {
        bencher.iter(|| {
            dropping.segment(&mut stream, 0, black_box(&far), |_| panic!("an event was emitted"));
            count += 1;
        });
    });
    assert_eq!((dropping.stats().refused_count, stream.offset()), (count, 0));
    let mut poisoning = reassembler(|config, limits| {
        config.overflow = OverflowPolicy::Poison;
        limits.stream_side_bytes_max = 0;
    });
    let mut stream = anchored(&mut poisoning);
    poisoning.segment(&mut stream, 0, &far, |_| {});
    assert!(stream.is_poisoned());
    group.bench_function("drop_flow_poisoned", |bencher| {
        bencher
            .iter(|| poisoning.segment(&mut stream, 0, black_box(&far), |_| panic!("an event was emitted")));
    });
    group.finish();
}

/// Sends the segments of a round in a given order and returns the number of delivered octets.
fn round(
    reassembler: &mut Reassembler<u32>,
    stream: &mut Stream,
    seq: &mut u32,
    order: &[u32],
    payload: &[u8],
) -> u64 {
    let mut octet_count = 0;
    for position in order {
        let segment = segment(seq.wrapping_add(position * payload.len() as u32), black_box(payload));
        reassembler.segment(stream, 0, &segment, |event| {
            if let StreamEvent::Chunk(chunk) = event {
                octet_count += chunk.bytes.len() as u64;
            }
        });
    }
    *seq = seq.wrapping_add(order.len() as u32 * payload.len() as u32);
    octet_count
}

/// Segments that are buffered until a hole is filled.
fn out_of_order(criterion: &mut Criterion) {
    let payload = payload();
    let mut group = criterion.benchmark_group("reassembler");
    let by_64: Vec<u32> = (1..64).chain([0]).collect();
    let reversed: Vec<u32> = (0..64).rev().collect();
    // Ten of 1000 segments are lost and are retransmitted after twenty further segments.
    let mut lossy: Vec<u32> = (0..1000).filter(|position| position % 100 != 50).collect();
    (0..10).for_each(|number| lossy.insert(number * 100 + 70, number as u32 * 100 + 50));
    for (id, order) in [
        ("out_of_order_1500", &[1, 0][..]),
        ("out_of_order_by_64", &by_64),
        ("reversed_64", &reversed),
        ("loss_1_percent", &lossy),
    ] {
        let mut reassembler = reassembler(|_, _| {});
        let mut stream = anchored(&mut reassembler);
        let mut seq = 0;
        group.throughput(Throughput::Elements(1));
        let expected = order.len() as u64 * u64::from(LEN);
        assert_eq!(round(&mut reassembler, &mut stream, &mut seq, order, &payload), expected);
        group.bench_function(id, |bencher| {
            bencher.iter_items(order.len() as u64, || {
                round(&mut reassembler, &mut stream, &mut seq, order, &payload)
            });
        });
        assert!(reassembler.stats().gap_octet_count == 0 && !stream.is_held());
    }
    group.finish();
}

/// Many streams; one in ten has a hole.
fn interleaved(criterion: &mut Criterion) {
    let payload = payload();
    let mut reassembler = reassembler(|_, _| {});
    let mut streams: Vec<Stream> = (0..10_000).map(|_| anchored(&mut reassembler)).collect();
    let (mut seq, mut octet_count, mut rounds) = (0_u32, 0_u64, 0_u64);
    let mut group = criterion.benchmark_group("reassembler");
    group.throughput(Throughput::Elements(1));
    group.bench_function("interleaved_10000_flows", |bencher| {
        bencher.iter_items(10_000, || {
            for (number, stream) in streams.iter_mut().enumerate() {
                // Two segments of a stream are exchanged.
                let turn = (number as u64 + rounds) % 10;
                let seq = match turn {
                    0 => seq.wrapping_add(LEN),
                    1 if rounds > 0 => seq.wrapping_sub(LEN),
                    _ => seq,
                };
                let segment = segment(seq, black_box(&payload));
                reassembler.segment(stream, number as u32, &segment, |event| {
                    if let StreamEvent::Chunk(chunk) = event {
                        octet_count += chunk.bytes.len() as u64;
                    }
                });
            }
            seq = seq.wrapping_add(LEN);
            rounds += 1;
        });
    });
    group.finish();
    streams.iter_mut().for_each(|stream| {
        reassembler.finish(stream, |event| {
            if let StreamEvent::Chunk(chunk) = event {
                octet_count += chunk.bytes.len() as u64;
            }
        });
    });
    let sent_count = rounds * 10_000 * u64::from(LEN);
    // The first and the last round contain only one segment of some exchanged pairs.
    assert!(octet_count.abs_diff(sent_count) <= 2000 * u64::from(LEN), "{octet_count} of {sent_count}");
}

/// Single octets, each after a hole, until the memory limit makes the stream slide.
fn flood(criterion: &mut Criterion) {
    let mut reassembler = reassembler(|_, _| {});
    let bytes_max = Limits::DEFAULT.stream_side_bytes_max;
    let mut stream = anchored(&mut reassembler);
    let (mut seq, mut octet_count, mut count) = (2_u32, 0_u64, 0_u64);
    let mut push = |reassembler: &mut Reassembler<u32>| {
        reassembler.segment(&mut stream, 0, &segment(seq, black_box(&[7])), |event| {
            if let StreamEvent::Chunk(chunk) = event {
                octet_count += chunk.bytes.len() as u64;
            }
        });
        seq = seq.wrapping_add(2);
        count += 1;
    };
    (0..10_000).for_each(|_| push(&mut reassembler));
    let mut group = criterion.benchmark_group("reassembler");
    group.bench_function("flood_1_byte", |bencher| bencher.iter(|| push(&mut reassembler)));
    group.finish();
    assert!(reassembler.stats().held_bytes_max <= bytes_max + (1 << 20));
    reassembler.finish(&mut stream, |event| {
        if let StreamEvent::Chunk(chunk) = event {
            octet_count += chunk.bytes.len() as u64;
        }
    });
    assert_eq!(octet_count, count);
}

criterion_group!(benches, in_order, dropped, out_of_order, interleaved, flood);
criterion_main!(benches);
