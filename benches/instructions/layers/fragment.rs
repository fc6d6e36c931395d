//! Defragmentation of a datagram of 65,000 octets from fragments of 1480 octets, in a pool that has completed two
//! datagrams.

use std::net::Ipv4Addr;

use flowgauge::base::{IpProtocol, Limits, Resources, Timestamp};
use flowgauge::decode::fragment::{DatagramKey, Fragment, Outcome, Pool, PoolConfig};
use gungraun::prelude::*;

use crate::SEEDS;
use crate::cases::{CLIENT, SERVER};

const DATAGRAM_LEN: usize = 65_000;

const FRAGMENT_LEN: usize = 1480;

/// A pool after warm-up, and the fragments of a datagram.
struct Pushing {
    pool: Pool<u32>,
    fragments: Vec<Fragment<'static>>,
    octet_count: usize,
}

fn fragments(id: u16) -> Vec<Fragment<'static>> {
    let payload: Vec<u8> = (0..DATAGRAM_LEN).map(|position| (position / 7) as u8).collect();
    let ends: (Ipv4Addr, Ipv4Addr) = (CLIENT, SERVER);
    // Leaked, because the process ends after the bench.
    let parts = payload.leak().chunks(FRAGMENT_LEN).enumerate();
    parts
        .map(|(position, bytes)| Fragment {
            key: DatagramKey::v4(ends.0, ends.1, id, IpProtocol::UDP, 0),
            timestamp: Timestamp::ZERO,
            protocol: IpProtocol::UDP,
            offset: (position * FRAGMENT_LEN) as u16,
            more_fragments: (position + 1) * FRAGMENT_LEN < DATAGRAM_LEN,
            header_len: 20,
            len: bytes.len() as u32,
            bytes,
        })
        .collect()
}

fn push_all(pool: &mut Pool<u32>, fragments: &[Fragment<'_>]) -> usize {
    let mut octet_count = 0;
    for fragment in fragments {
        if let Outcome::Completed(datagram) = pool.push(fragment, 60, |_| {}) {
            octet_count += datagram.payload.len();
        }
    }
    octet_count
}

fn warm(is_reversed: bool) -> Pushing {
    let resources = Resources::new(Limits::DEFAULT).with_seeds(SEEDS);
    let mut pool = Pool::new(PoolConfig::default(), &resources).expect("a valid configuration");
    let [first, second, fragments] = [1, 2, 3].map(|id| {
        let mut fragments = fragments(id);
        if is_reversed {
            fragments.reverse();
        }
        fragments
    });
    for before in [first, second] {
        assert_eq!(push_all(&mut pool, &before), DATAGRAM_LEN);
    }
    Pushing { pool, fragments, octet_count: 0 }
}

fn datagram_is_complete(pushing: Pushing) {
    assert_eq!(pushing.octet_count, DATAGRAM_LEN);
    assert!(pushing.pool.is_empty());
}

#[library_benchmark(setup = warm, teardown = datagram_is_complete)]
#[bench::in_order(false)]
#[bench::reversed(true)]
fn datagram(mut pushing: Pushing) -> Pushing {
    pushing.octet_count = push_all(&mut pushing.pool, &pushing.fragments);
    pushing
}

library_benchmark_group!(name = fragment_group, benchmarks = datagram);
