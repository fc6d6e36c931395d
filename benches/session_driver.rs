//! Frames to sessions. A time is that of one frame unless the id says otherwise.
//!
//! `passthrough`: one connection after its handshake, segments of 1400 octets in order, frames built before and their sequence
//! numbers set in place, through the whole pipeline to a parser that keeps nothing. `passthrough_10000_flows`: the same over as many
//! connections in turn.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use support::session::{Connections, LEN};

fn passthrough(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("session_driver");
    for (id, flow_count) in [("passthrough", 1), ("passthrough_10000_flows", 10_000)] {
        let mut connections = Connections::new(flow_count, None);
        let mut step_count = 0;
        group.throughput(Throughput::Bytes(LEN.into()));
        group.bench_function(id, |bencher| {
            bencher.iter(|| {
                connections.step();
                step_count += 1;
            });
        });
        connections.check(step_count);
    }
    group.finish();
}

criterion_group!(benches, passthrough);
criterion_main!(benches);
