//! Neighbor tables under replies and requests of more addresses than they keep.

use std::net::{IpAddr, Ipv4Addr};

use flowgauge::base::Timestamp;
use flowgauge::tap::{NeighborConfig, NeighborTable};

use super::heap::{held_now, peak_since};
use super::run_alone;

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const LOCAL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// An ARP reply of a peer with this address (RFC 826).
fn reply(address: Ipv4Addr) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, 2];
    [&OWN[..], &PEER, &[8, 6], &head, &PEER, &address.octets(), &OWN, &LOCAL.octets()].concat()
}

#[test]
fn neighbors_and_requests_are_within_their_limits() {
    let _guard = run_alone();
    let before = held_now();
    let config = NeighborConfig::new(OWN);
    let limits = config.limits;
    let mut table = NeighborTable::new(config).expect("a valid configuration");
    table.add_local(LOCAL.into()).expect("a host");
    let now = Timestamp::from_nanos(1_000_000_000_000);
    for number in 0..100_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let address = Ipv4Addr::new(172, a, b, c);
        table.resolve(IpAddr::V4(address), now);
        // A third of the requests stay without a reply.
        if number % 3 > 0 {
            table.process(&reply(address), now);
        }
    }
    let count = limits.neighbor_count_max as usize + limits.neighbor_request_count_max as usize;
    let peak = peak_since(before);
    println!("{} neighbors, {peak} bytes", table.len());
    assert_eq!(table.len(), limits.neighbor_count_max as usize);
    // As `docs/limits.md` states.
    assert!(peak <= count * 160, "{peak} bytes");
}
