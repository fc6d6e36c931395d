//! Frames to a parser that keeps nothing.

use gungraun::prelude::*;

use crate::SEEDS;
use crate::support::session::Connections;

const STEP_COUNT: u64 = 100;

/// After a round, so that what is allocated once is.
fn connections(count: u32) -> Connections {
    let mut connections = Connections::new(count, Some(SEEDS));
    (0..count).for_each(|_| connections.step());
    connections
}

fn all_came(connections: Connections) {
    connections.check(STEP_COUNT + u64::from(connections.count));
}

#[library_benchmark]
#[bench::one_flow(args = (1), setup = connections, teardown = all_came)]
#[bench::hundred_flows(args = (100), setup = connections, teardown = all_came)]
fn passthrough(mut connections: Connections) -> Connections {
    (0..STEP_COUNT).for_each(|_| connections.step());
    connections
}

library_benchmark_group!(name = session_group, benchmarks = [passthrough]);
