//! Frames to a parser that keeps nothing, and recorded conversations to those of the crate.

use flowgauge::protocols::Standard;
use flowgauge::session::Driver;
use gungraun::prelude::*;

use crate::SEEDS;
use crate::replay::{Conversation, Observed, conversations};
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
#[bench::hundred_thousand_flows(args = (100_000), setup = connections, teardown = all_came)]
fn passthrough(mut connections: Connections) -> Connections {
    (0..STEP_COUNT).for_each(|_| connections.step());
    connections
}

/// A driver, and what it is about to hear.
type Rehearsed = (Driver<Standard>, Vec<Conversation>, Observed);

/// Heard once before, so that what is allocated once is.
fn rehearsed(capture: &str, protocol: &str) -> Rehearsed {
    let conversations = conversations(capture, protocol);
    assert!(!conversations.is_empty());
    let rehearsed = replay((Driver::default(), conversations, Observed::default()));
    (rehearsed.0, rehearsed.1, Observed::default())
}

fn all_heard((driver, _, observed): Rehearsed) {
    assert!(observed.message_count > 10 && observed.stopped_count == 0, "{observed:?}");
    assert_eq!(driver.stats().held_bytes, 0);
}

fn replay((mut driver, conversations, mut observed): Rehearsed) -> Rehearsed {
    conversations.iter().for_each(|conversation| drop(conversation.send_octets(&mut driver, &mut observed)));
    (driver, conversations, observed)
}

#[library_benchmark]
#[bench::http(args = ("examples/data/web.pcap", "http"), setup = rehearsed, teardown = all_heard)]
#[bench::tls(args = ("examples/data/web.pcap", "tls"), setup = rehearsed, teardown = all_heard)]
#[bench::dns(args = ("examples/data/dns.pcap", "dns"), setup = rehearsed, teardown = all_heard)]
#[bench::quic(args = ("tests/data/quic.pcap", "quic"), setup = rehearsed, teardown = all_heard)]
#[bench::ssh(args = ("examples/data/ssh.pcap", "ssh"), setup = rehearsed, teardown = all_heard)]
#[bench::smtp(args = ("examples/data/mail.pcap", "smtp"), setup = rehearsed, teardown = all_heard)]
fn parsers(rehearsed: Rehearsed) -> Rehearsed {
    replay(rehearsed)
}

library_benchmark_group!(name = session_group, benchmarks = [passthrough, parsers]);
