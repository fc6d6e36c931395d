//! Frames for a parser without state, and recorded conversations for the parsers of the crate.

use flowgauge::protocols::Standard;
use flowgauge::session::Driver;
use gungraun::prelude::*;

use crate::SEEDS;
use crate::cases::session::Connections;
use crate::replay::{Conversation, Joined, Observed, conversations};

const STEP_COUNT: u64 = 100;

/// Connections after a round, so that one-time allocations are not counted.
fn connections(count: u32) -> Connections {
    let mut connections = Connections::new(count, Some(SEEDS));
    (0..count).for_each(|_| connections.step());
    connections
}

fn all_delivered(connections: Connections) {
    connections.check(STEP_COUNT + u64::from(connections.count));
}

#[library_benchmark]
#[bench::one_flow(args = (1), setup = connections, teardown = all_delivered)]
#[bench::hundred_flows(args = (100), setup = connections, teardown = all_delivered)]
#[bench::hundred_thousand_flows(args = (100_000), setup = connections, teardown = all_delivered)]
fn passthrough(mut connections: Connections) -> Connections {
    (0..STEP_COUNT).for_each(|_| connections.step());
    connections
}

/// A driver, and the conversations to be replayed to it.
type WarmDriver = (Driver<Standard>, Vec<Conversation>, Observed);

/// Replays the conversations once, so that one-time allocations are not counted.
fn warm_driver(capture: &str, protocol: &str) -> WarmDriver {
    let conversations = conversations(capture, protocol);
    assert!(!conversations.is_empty());
    let warm_driver = replay((Driver::default(), conversations, Observed::default()));
    (warm_driver.0, warm_driver.1, Observed::default())
}

fn all_parsed((driver, _, observed): WarmDriver) {
    assert!(observed.message_count > 10 && observed.stopped_count == 0, "{observed:?}");
    assert_eq!(driver.stats().held_bytes, 0);
}

fn replay((mut driver, conversations, mut observed): WarmDriver) -> WarmDriver {
    conversations.iter().for_each(|conversation| drop(conversation.send(&mut driver, &mut observed)));
    (driver, conversations, observed)
}

#[library_benchmark]
#[bench::http(args = ("examples/data/web.pcap", "http"), setup = warm_driver, teardown = all_parsed)]
#[bench::tls(args = ("examples/data/web.pcap", "tls"), setup = warm_driver, teardown = all_parsed)]
#[bench::dns(args = ("examples/data/dns.pcap", "dns"), setup = warm_driver, teardown = all_parsed)]
#[bench::quic(args = ("tests/data/quic.pcap", "quic"), setup = warm_driver, teardown = all_parsed)]
#[bench::ssh(args = ("examples/data/ssh.pcap", "ssh"), setup = warm_driver, teardown = all_parsed)]
#[bench::smtp(args = ("examples/data/mail.pcap", "smtp"), setup = warm_driver, teardown = all_parsed)]
fn parsers(warm_driver: WarmDriver) -> WarmDriver {
    replay(warm_driver)
}

/// A driver, and the conversations whose messages are joined to transactions.
type WarmJoiner = (Driver<Standard>, Vec<Conversation>, Joined);

fn warm_joiner(capture: &str, protocol: &str) -> WarmJoiner {
    let (driver, conversations, _) = warm_driver(capture, protocol);
    (driver, conversations, Joined::default())
}

fn all_joined((driver, conversations, joined): WarmJoiner) {
    assert!(joined.transaction_count > 2, "{joined:?}");
    all_parsed((driver, conversations, joined.observed));
}

#[library_benchmark]
#[bench::http(args = ("examples/data/web.pcap", "http"), setup = warm_joiner, teardown = all_joined)]
#[bench::tls(args = ("examples/data/web.pcap", "tls"), setup = warm_joiner, teardown = all_joined)]
#[bench::dns(args = ("examples/data/dns.pcap", "dns"), setup = warm_joiner, teardown = all_joined)]
fn transactions((mut driver, conversations, mut joined): WarmJoiner) -> WarmJoiner {
    for conversation in &conversations {
        drop(conversation.send(&mut driver, &mut joined));
        joined.end();
    }
    (driver, conversations, joined)
}

library_benchmark_group!(name = session_group, benchmarks = [passthrough, parsers, transactions]);
