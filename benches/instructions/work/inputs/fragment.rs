//! Defragmentation: datagrams in four fragments, and expensive fragments.

use std::net::Ipv4Addr;

use flowgauge::base::{IpProtocol, Limits, Resources, Timestamp};
use flowgauge::decode::fragment::{DatagramKey, Fragment, OverlapPolicy, Pool, PoolConfig};

use super::feed::INPUT_LEN;
use crate::SEEDS;
use crate::cases::{CLIENT, SERVER};

/// Length of Ethernet and IPv4 headers.
const HEADERS_LEN: usize = 34;

/// Number of the datagram, offset, length, and whether more fragments follow.
type Part = (u32, u16, usize, bool);

/// A small pool, and fragments to be pushed.
pub(crate) struct Pushing {
    pool: Pool<u32>,
    fragments: Vec<Fragment<'static>>,
    ended_count: u64,
}

fn filled(mut make: impl FnMut(u32) -> Part) -> Vec<Part> {
    let (mut parts, mut len) = (Vec::new(), 0);
    for number in 0.. {
        let (id, offset, part_len, more) = make(number);
        let room = INPUT_LEN - len - HEADERS_LEN;
        // The last fragment has the remaining length and ends its datagram.
        let is_last = part_len + HEADERS_LEN >= room;
        parts.push(if is_last { (id, offset, room, false) } else { (id, offset, part_len, more) });
        len += HEADERS_LEN + parts.last().map_or(0, |part| part.2);
        if len == INPUT_LEN {
            break;
        }
    }
    parts
}

pub(crate) fn prepared((make, policy): (fn() -> Vec<Part>, OverlapPolicy)) -> Pushing {
    let parts = make();
    let input_len: usize = parts.iter().map(|(_, _, len, _)| HEADERS_LEN + len).sum();
    assert_eq!(input_len, INPUT_LEN, "inputs are equally long");
    let payload: &'static [u8] = vec![7; INPUT_LEN].leak();
    let fragments = |destination| {
        let key = move |id: u32| {
            let source = Ipv4Addr::from(0x0a00_0000 + (id >> 16));
            DatagramKey::v4(source, destination, id as u16, IpProtocol::UDP, 0)
        };
        let fragment = move |(id, offset, len, more_fragments): &Part| Fragment {
            key: key(*id),
            timestamp: Timestamp::ZERO,
            protocol: IpProtocol::UDP,
            offset: *offset,
            more_fragments: *more_fragments,
            header_len: 20,
            len: *len as u32,
            bytes: &payload[..*len],
        };
        parts.iter().map(fragment).collect::<Vec<_>>()
    };
    let mut config = PoolConfig::default();
    config.policy = policy;
    let mut limits = Limits::DEFAULT;
    limits.fragment_datagram_count_max = 256;
    limits.fragment_bytes_max = 1 << 20;
    let mut pool =
        Pool::new(config, &Resources::new(limits).with_seeds(SEEDS)).expect("a valid configuration");
    // The pool has processed as many datagrams before, so that it is full if its limits allow it.
    for fragment in fragments(CLIENT) {
        let _ = pool.push(&fragment, 0, |_| {});
    }
    Pushing { pool, fragments: fragments(SERVER), ended_count: 0 }
}

pub(crate) fn checked(pushing: Pushing) {
    let stats = pushing.pool.stats();
    assert_eq!(stats.fragment_count, 2 * pushing.fragments.len() as u64);
    pushing.pool.check_invariants();
}

impl Pushing {
    pub(crate) fn push(mut self) -> Self {
        for (fragment, tag) in self.fragments.iter().zip(0..) {
            let _ = self.pool.push(fragment, tag, |_| self.ended_count += 1);
        }
        self
    }
}

/// Datagrams of four fragments, in order.
pub(crate) fn benign() -> Vec<Part> {
    filled(|number| (number / 4, 200 * (number % 4) as u16, 200, number % 4 < 3))
}

/// Datagrams of fragments of eight octets in reverse order.
pub(crate) fn tiny_fragments() -> Vec<Part> {
    filled(|number| (number / 1000, 8 * (999 - number % 1000) as u16, 8, number % 1000 > 0))
}

/// A single fragment of each datagram.
pub(crate) fn only_fragments() -> Vec<Part> {
    filled(|number| (number, 8 * (number % 8000) as u16, 8, true))
}

/// Fragments of one datagram, each on a different page.
pub(crate) fn scattered_fragments() -> Vec<Part> {
    filled(|number| (number / 60, 1024 * (number % 60) as u16, 8, true))
}

/// Fragments that overlap fragments of eight octets with holes between them.
pub(crate) fn overlaps() -> Vec<Part> {
    filled(|number| match number % 200 {
        position if position < 190 => (number / 200, 16 * position as u16, 8, true),
        position => (number / 200, 8 * (position % 5) as u16, 1480, true),
    })
}

/// Overlapping fragments that each discard their datagram.
pub(crate) fn discards() -> Vec<Part> {
    filled(|number| (number / 2, 8 * (number % 2) as u16, 16, true))
}

/// One fragment, repeated.
pub(crate) fn duplicates() -> Vec<Part> {
    filled(|_| (1, 8, 8, true))
}
