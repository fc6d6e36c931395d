//! Flow tracking of packets without extraction.

use std::time::Duration;

use flowgauge::base::{Frame, FrameBatch, Limits, Resources, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};
use flowgauge::tracker::{Tracker, TrackerConfig};
use gungraun::prelude::*;

use crate::SEEDS;
use crate::cases::sinks::Ends;
use crate::cases::traffic::{odd_packets, short_flows};
use crate::cases::{CLIENT, SERVER, set_seq, tcp};

/// A tracker, and packets to be tracked.
struct Tracking {
    tracker: Tracker<()>,
    ends: Ends,
    packets: Vec<Packet<'static>>,
    until: Timestamp,
    flow_count: u64,
    known_packet_count: u64,
}

/// One packet of each flow: a segment of one octet, which is either the one of `round` in order or a repetition.
fn round(flow_count: u64, round: u32, is_in_order: bool) -> Vec<Packet<'static>> {
    let extractor = Extractor::default();
    let seq = 1000 + if is_in_order { round } else { 0 };
    (0..flow_count)
        .map(|flow| {
            let mut frame = tcp((CLIENT, 10_000 + flow as u16), (SERVER, 443), b"x");
            set_seq(&mut frame, seq);
            let nanos = 1_000_000 + 700 * (u64::from(round) * flow_count + flow);
            // Leaked, because the process ends after the bench.
            let frame = Frame::ethernet(Timestamp::from_nanos(nanos), frame.leak());
            extractor.extract(&frame).expect("the frame contains a packet")
        })
        .collect()
}

fn tracking(known_round_count: u32, packets: Vec<Packet<'static>>, flow_count: u64) -> Tracking {
    let resources = Resources::new(Limits::DEFAULT).with_seeds(SEEDS);
    let mut tracker = Tracker::new(TrackerConfig::default(), &resources).expect("a valid configuration");
    let mut ends = Ends::default();
    for number in 0..known_round_count {
        tracker.track_batch(&round(flow_count, number, true), &mut ends);
    }
    let known_packet_count = u64::from(known_round_count) * flow_count;
    Tracking { tracker, ends, packets, until: Timestamp::ZERO, flow_count, known_packet_count }
}

/// Known flows, and `round_count` packets for each.
fn known(flow_count: u64, round_count: u32, is_in_order: bool) -> Tracking {
    let packets = (1..=round_count).flat_map(|number| round(flow_count, number, is_in_order)).collect();
    let mut tracking = tracking(1, packets, flow_count);
    if !is_in_order {
        // Allocates the state for retransmissions.
        tracking.tracker.track_batch(&round(flow_count, 0, false), &mut tracking.ends);
        tracking.known_packet_count += flow_count;
    }
    tracking
}

/// New flows, in a table that has already contained as many.
fn new_flows(flow_count: u64) -> Tracking {
    let mut tracking = tracking(1, round(flow_count, 1, true), flow_count);
    tracking.tracker.finish(&mut Ends::default());
    assert!(tracking.tracker.is_empty());
    tracking
}

/// Returns the packets of a batch. Leaks its frames, because the process ends after the bench.
fn packets(batch: FrameBatch) -> Vec<Packet<'static>> {
    let extractor = Extractor::default();
    let batch: &'static FrameBatch = Box::leak(Box::new(batch));
    batch.iter().map(|frame| extractor.extract(&frame).expect("the frame contains a packet")).collect()
}

/// Whole connections of four to ten packets, a third of which are open at a time, in a table that has already contained as
/// many.
fn whole_connections(flow_count: u64) -> Tracking {
    let packets = packets(short_flows(flow_count as usize, flow_count as usize / 3));
    let mut tracking = new_flows(flow_count);
    tracking.packets = packets;
    tracking
}

/// Unusual packets of known connections, and the second time that each of them arrives.
fn unusual(flow_count: u64) -> Tracking {
    let [known, odd] = odd_packets(flow_count as usize).map(|frames| {
        let mut batch = FrameBatch::new();
        frames.iter().for_each(|data| batch.push(&Frame::ethernet(Timestamp::from_nanos(1_000_000), data)));
        packets(batch)
    });
    let mut tracking = tracking(0, odd, flow_count);
    for packets in [&known, &tracking.packets] {
        tracking.tracker.track_batch(packets, &mut tracking.ends);
    }
    tracking
}

/// Flows that all expire in one call.
fn overdue(flow_count: u64) -> Tracking {
    let mut tracking = tracking(2, Vec::new(), flow_count);
    tracking.until = Timestamp::ZERO.saturating_add(Duration::from_secs(1000));
    tracking
}

/// Checks that each packet was counted for a known flow, and that no flow has ended.
fn all_known(mut tracking: Tracking) {
    assert_eq!((tracking.tracker.len() as u64, tracking.ends.flow_count), (tracking.flow_count, 0));
    tracking.tracker.finish(&mut tracking.ends);
    let packet_count = tracking.known_packet_count + tracking.packets.len() as u64;
    assert_eq!((tracking.ends.flow_count, tracking.ends.packet_count), (tracking.flow_count, packet_count));
}

fn all_new(tracking: Tracking) {
    assert_eq!(tracking.tracker.len() as u64, tracking.flow_count);
    assert_eq!(tracking.tracker.stats().started_count, 2 * tracking.flow_count);
}

fn all_closed(mut tracking: Tracking) {
    tracking.tracker.finish(&mut tracking.ends);
    assert_eq!(tracking.tracker.stats().started_count, 2 * tracking.flow_count);
    assert_eq!(tracking.ends.packet_count, tracking.packets.len() as u64);
}

fn all_open(tracking: Tracking) {
    // The ICMP errors are one more flow.
    assert_eq!((tracking.tracker.len() as u64, tracking.ends.flow_count), (tracking.flow_count + 1, 0));
}

fn all_ended(tracking: Tracking) {
    assert!(tracking.tracker.is_empty());
    let ends = &tracking.ends;
    assert_eq!((ends.flow_count, ends.packet_count), (tracking.flow_count, 2 * tracking.flow_count));
}

#[library_benchmark(setup = known, teardown = all_known)]
#[bench::again_monoflow(1, 1000, false)]
#[bench::in_order_monoflow(1, 1000, true)]
#[bench::in_order_1000_flows(1000, 2, true)]
fn track(mut tracking: Tracking) -> Tracking {
    for packet in &tracking.packets {
        tracking.tracker.track(packet, &mut tracking.ends);
    }
    tracking
}

#[library_benchmark]
#[bench::in_order_1000_flows(args = (1000, 2, true), setup = known, teardown = all_known)]
#[bench::new_1000_flows(args = (1000), setup = new_flows, teardown = all_new)]
#[bench::short_1200_flows(args = (1200), setup = whole_connections, teardown = all_closed)]
#[bench::odd_packets_of_1000_flows(args = (1000), setup = unusual, teardown = all_open)]
fn batch(mut tracking: Tracking) -> Tracking {
    for packets in tracking.packets.chunks(32) {
        tracking.tracker.track_batch(packets, &mut tracking.ends);
    }
    tracking
}

#[library_benchmark(teardown = all_ended)]
#[bench::of_1000_flows(args = (1000), setup = overdue)]
fn expiry(mut tracking: Tracking) -> Tracking {
    tracking.tracker.advance(tracking.until, &mut tracking.ends);
    tracking
}

library_benchmark_group!(name = tracker_group, benchmarks = [track, batch, expiry]);
