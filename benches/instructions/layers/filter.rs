//! Evaluation of a filter expression for flows.

use std::hint::black_box;

use flowgauge::base::{FlowKey, IpProtocol, Side};
use flowgauge::filter::{Filter, Subject};
use gungraun::prelude::*;

const COUNT: u32 = 1000;

/// An expression, keys, and the expected number of matches.
struct Matching {
    filter: Filter,
    keys: Vec<(FlowKey, Side)>,
    expected_count: u32,
    match_count: u32,
}

/// One key in ten has destination port 443; the others have destination port 53.
fn matching(expression: &str, expected_count: u32) -> Matching {
    let keys = (0..COUNT).map(|number| {
        let [.., high, low] = number.to_be_bytes();
        let (protocol, port) = if number % 10 == 0 { (IpProtocol::TCP, 443) } else { (IpProtocol::UDP, 53) };
        FlowKey::new(protocol, ([10, 0, high, low].into(), 40_000), ([192, 0, 2, 1].into(), port))
    });
    let filter = expression.parse().expect("a valid expression");
    Matching { filter, keys: keys.collect(), expected_count, match_count: 0 }
}

fn as_expected(matching: Matching) {
    assert_eq!(matching.match_count, matching.expected_count);
}

#[library_benchmark(setup = matching, teardown = as_expected)]
#[bench::port("tcp port 443", COUNT / 10)]
#[bench::net_and_ports("src net 10.0.0.0/22 and (tcp dst port 80 or 443 or udp dst port 53)", COUNT)]
fn matches(mut matching: Matching) -> Matching {
    for (key, source) in &matching.keys {
        matching.match_count += u32::from(matching.filter.matches(&Subject::new(black_box(key), *source)));
    }
    matching
}

library_benchmark_group!(name = filter_group, benchmarks = matches);
