//! Defragmentation of 64 KiB datagrams in fragments of 1480 octets, unless the id states otherwise. A time is for a
//! complete datagram, for 1000 datagrams in `interleaved_1000`, and for one fragment in `flood_first_at_cap`;
//! throughput is in fragments.

#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;
use std::net::Ipv4Addr;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{IpProtocol, Resources, Timestamp};
use flowgauge::decode::fragment::{DatagramKey, Fragment, Outcome, Pool, PoolConfig};
use per_item::PerItem as _;

const FRAGMENT_LEN: usize = 1480;

fn key(number: u32) -> DatagramKey {
    let [high, low, a, b] = number.to_be_bytes();
    let source = Ipv4Addr::new(10, 0, high, low);
    DatagramKey::v4(source, Ipv4Addr::new(10, 1, 0, 1), u16::from_be_bytes([a, b]), IpProtocol::UDP, 0)
}

/// Splits one payload into fragments.
fn fragments(number: u32, payload: &[u8]) -> Vec<Fragment<'_>> {
    payload
        .chunks(FRAGMENT_LEN)
        .enumerate()
        .map(|(position, bytes)| Fragment {
            key: key(number),
            timestamp: Timestamp::ZERO,
            protocol: IpProtocol::UDP,
            offset: (position * FRAGMENT_LEN) as u16,
            more_fragments: (position + 1) * FRAGMENT_LEN < payload.len(),
            header_len: 20,
            len: bytes.len() as u32,
            bytes,
        })
        .collect()
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

/// Pushes fragments and returns the numbers of completed datagrams and of their octets.
fn push_all(pool: &mut Pool<u32>, fragments: &[Fragment<'_>]) -> (u64, u64) {
    let (mut datagrams, mut octets) = (0, 0);
    for fragment in fragments {
        if let Outcome::Completed(it) = pool.push(black_box(fragment), 60, |_| {}) {
            datagrams += 1;
            octets += it.payload.len() as u64;
        }
    }
    (datagrams, octets)
}

fn complete_datagrams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fragment");
    let longest = payload(65_000);
    let in_order = fragments(1, &longest);
    let reversed: Vec<_> = in_order.iter().rev().copied().collect();
    let short = payload(8000);
    let columns: Vec<_> = (0..1000).map(|number| fragments(number, &short)).collect();
    let interleaved: Vec<_> = (0..columns[0].len())
        .flat_map(|position| columns.iter().map(move |column| column[position]))
        .collect();
    for (id, fragments, datagrams, octets) in [
        ("in_order", &in_order, 1, 65_000),
        ("reversed", &reversed, 1, 65_000),
        ("interleaved_1000", &interleaved, 1000, 8_000_000),
    ] {
        let mut pool: Pool<u32> =
            Pool::new(PoolConfig::default(), &Resources::default()).expect("a valid configuration");
        assert_eq!(push_all(&mut pool, fragments), (datagrams, octets));
        group.throughput(Throughput::Elements(1));
        group.bench_function(id, |bencher| {
            bencher.iter_items(fragments.len() as u64, || push_all(&mut pool, fragments));
        });
        assert!(pool.is_empty());
        let stats = pool.stats();
        assert_eq!(stats.completed_count * fragments.len() as u64, stats.fragment_count * datagrams);
    }
    group.finish();
}

/// Each fragment is the first one of a datagram that is never completed, and the pool is full.
fn flood(criterion: &mut Criterion) {
    let octets = payload(FRAGMENT_LEN + 8);
    let mut first = fragments(0, &octets)[0];
    let resources = Resources::default();
    let cap = resources.limits.fragment_datagram_count_max;
    let bytes_max = resources.limits.fragment_bytes_max;
    let mut pool: Pool<u32> = Pool::new(PoolConfig::default(), &resources).expect("a valid configuration");
    let (mut number, mut ended_count) = (0_u32, 0_u64);
    let mut push = |pool: &mut Pool<u32>| {
        first.key = key(number);
        number += 1;
        let is_held = matches!(
            pool.push(black_box(&first), 60, |ended| ended_count += ended.tags.len() as u64),
            Outcome::Held(_)
        );
        assert!(is_held);
    };
    (0..2 * cap).for_each(|_| push(&mut pool));
    let mut group = criterion.benchmark_group("fragment");
    group.throughput(Throughput::Elements(1));
    group.bench_function("flood_first_at_cap", |bencher| bencher.iter(|| push(&mut pool)));
    group.finish();
    assert_eq!(pool.len(), cap as usize);
    assert_eq!(ended_count + u64::from(cap), u64::from(number));
    assert!(pool.held_bytes() <= bytes_max);
}

criterion_group!(benches, complete_datagrams, flood);
criterion_main!(benches);
