//! Flow tracking of Ethernet frames, including extraction, with one call per packet unless the id states otherwise.
//!
//! `monoflow` and `n_flows` repeat one PSH+ACK segment per flow without a handshake and with a constant timestamp, as
//! do the rows with the same names of other crates. The `_in_order` rows advance sequence numbers and time.

mod cases;
#[path = "cases/per_item.rs"]
mod per_item;

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use cases::sinks::Ends;
use cases::traffic::{odd_packets, short_flows};
use cases::{CLIENT, Random, SERVER, set_seq, tcp};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Budget, Frame, Limits, Resources, Timestamp};
use flowgauge::decode::extractor::{Extractor, Packet};
use flowgauge::tracker::{Tracker, TrackerConfig};
use per_item::PerItem as _;

/// Frames of `flow_count` flows with different source ports, and different addresses for each 50,000 flows.
fn frames(flow_count: usize) -> Vec<Vec<u8>> {
    let ends = |flow: usize| {
        let [_, a, b, c] = (flow as u32 / 50_000).to_be_bytes();
        let address = Ipv4Addr::new(10, a, b.wrapping_add(1), c.wrapping_add(1));
        (if flow < 50_000 { CLIENT } else { address }, 10_000 + (flow % 50_000) as u16)
    };
    (0..flow_count).map(|flow| tcp(ends(flow), (SERVER, 443), b"x")).collect()
}

fn track(tracker: &mut Tracker<()>, extractor: &Extractor, sink: &mut Ends, frame: &Frame<'_>) {
    let mut packet = Packet::EMPTY;
    if extractor.extract_into(frame, &mut packet).is_ok() {
        tracker.track(&packet, sink);
    }
}

fn constant_time(criterion: &mut Criterion) {
    let extractor = Extractor::default();
    let mut bench = |id: &str, flow_count: usize| {
        let frames = frames(flow_count);
        let mut tracker = Tracker::default();
        let mut sink = Ends::default();
        for data in &frames {
            track(&mut tracker, &extractor, &mut sink, &Frame::ethernet(Timestamp::ZERO, data));
        }
        assert_eq!(tracker.len(), flow_count);
        let mut next = 0;
        criterion.bench_function(id, |bencher| {
            bencher.iter(|| {
                let frame = Frame::ethernet(Timestamp::ZERO, black_box(&frames[next]));
                next = if next + 1 == frames.len() { 0 } else { next + 1 };
                track(&mut tracker, &extractor, &mut sink, &frame);
            });
        });
        assert_eq!((tracker.len(), sink.flow_count), (flow_count, 0));
        let counted: u64 = tracker.iter().map(|(flow, _)| flow.packet_count()).sum();
        assert_eq!(counted, tracker.stats().packet_count);
    };
    bench("tracker/monoflow", 1);
    for flow_count in [10, 100, 1000, 10_000] {
        bench(&format!("tracker/n_flows/{flow_count}"), flow_count);
    }
}

fn in_order(criterion: &mut Criterion) {
    let extractor = Extractor::default();
    let mut bench = |id: &str, flow_count: usize| {
        let mut frames = frames(flow_count);
        let mut tracker = Tracker::default();
        let mut sink = Ends::default();
        let mut nanos = 1_000_000;
        let mut seqs = vec![1000_u32; flow_count];
        let mut next = 0;
        let mut step = || {
            let frame = &mut frames[next];
            set_seq(frame, seqs[next]);
            seqs[next] = seqs[next].wrapping_add(1);
            nanos += 700;
            let frame = Frame::ethernet(Timestamp::from_nanos(nanos), black_box(&*frame));
            next = if next + 1 == flow_count { 0 } else { next + 1 };
            track(&mut tracker, &extractor, &mut sink, &frame);
        };
        // Every flow begins before the timed part.
        (0..flow_count).for_each(|_| step());
        criterion.bench_function(id, |bencher| bencher.iter(&mut step));
        tracker.finish(&mut sink);
        assert_eq!((sink.flow_count, sink.packet_count), (flow_count as u64, tracker.stats().packet_count));
    };
    bench("tracker/monoflow_in_order", 1);
    for flow_count in [10, 100, 1000, 10_000] {
        bench(&format!("tracker/n_flows_in_order/{flow_count}"), flow_count);
    }
}

/// How packets are passed to the tracker.
#[derive(Clone, Copy, PartialEq)]
enum Calls {
    /// In batches of 32.
    Batches,
    /// One at a time.
    Single,
}

/// A million flows in random order, and ten million flows if the variable `FLOWGAUGE_BENCH_LARGE` is set; these need
/// about 8 GB of memory.
fn millions(criterion: &mut Criterion) {
    let is_large = std::env::var_os("FLOWGAUGE_BENCH_LARGE").is_some();
    let flow_counts = [1_000_000, 10_000_000];
    for flow_count in &flow_counts[..if is_large { 2 } else { 1 }] {
        random_order(criterion, *flow_count);
    }
}

/// Flows in random order, extracted and tracked, with and without huge pages. The time is per packet.
fn random_order(criterion: &mut Criterion, flow_count: usize) {
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = limits.flow_count_max.max(flow_count as u32);
    limits.tcp_extra_count_max = limits.flow_count_max;
    let frames = frames(flow_count);
    let mut random = Random(7);
    let order = random.shuffled(flow_count);
    // The frames are stored in the order of arrival, as in a capture.
    let arrival: Vec<Vec<u8>> = order.iter().map(|flow| frames[*flow].clone()).collect();
    let mut group = criterion.benchmark_group("tracker");
    group.throughput(Throughput::Elements(1));
    for huge_pages in [false, true] {
        let extractor = Extractor::default();
        let mut config = TrackerConfig::default();
        config.huge_pages = huge_pages;
        let resources = Resources::new(limits).with_budget(Budget::new(8 << 30));
        let mut tracker: Tracker<()> = Tracker::new(config, &resources).expect("a valid configuration");
        let mut sink = Ends::default();
        // The second packet of each flow allocates what flows with retransmissions need.
        for data in frames.iter().chain(&arrival) {
            track(&mut tracker, &extractor, &mut sink, &Frame::ethernet(Timestamp::ZERO, data));
        }
        assert_eq!(tracker.len(), flow_count);
        let mut next = 0;
        for calls in [Calls::Batches, Calls::Single] {
            let name = match (calls, huge_pages) {
                (Calls::Batches, false) => "n_flows",
                (Calls::Batches, true) => "n_flows_in_huge_pages",
                (Calls::Single, false) => "n_flows_one_at_a_time",
                (Calls::Single, true) => "n_flows_one_at_a_time_in_huge_pages",
            };
            group.bench_function(format!("{name}/{flow_count}"), |bencher| {
                bencher.iter_custom(|packet_count| {
                    let started = Instant::now();
                    let mut left = packet_count as usize;
                    while left > 0 {
                        let count = left.min(32).min(flow_count - next);
                        let frames = &arrival[next..next + count];
                        if calls == Calls::Single {
                            for data in frames {
                                let frame = Frame::ethernet(Timestamp::ZERO, data);
                                track(&mut tracker, &extractor, &mut sink, &frame);
                            }
                        } else {
                            let mut packets = [Packet::EMPTY; 32];
                            for (packet, data) in packets.iter_mut().zip(frames) {
                                let frame = Frame::ethernet(Timestamp::ZERO, data);
                                extractor.extract_into(&frame, packet).expect("the frame contains a packet");
                            }
                            tracker.track_batch(&packets[..count], &mut sink);
                        }
                        next = (next + count) % flow_count;
                        left -= count;
                    }
                    started.elapsed()
                });
            });
        }
        let counted: u64 = tracker.iter().map(|(flow, _)| flow.packet_count()).sum();
        assert_eq!((tracker.len(), counted), (flow_count, tracker.stats().packet_count));
    }
    group.finish();
}

/// Each packet starts a new flow at a limit of 100,000 flows, so that each packet evicts a flow.
fn churn(criterion: &mut Criterion) {
    const CAP: usize = 100_000;
    let extractor = Extractor::default();
    let frames = frames(4 * CAP);
    let mut limits = Limits::DEFAULT;
    limits.flow_count_max = CAP as u32;
    let mut tracker =
        Tracker::new(TrackerConfig::default(), &Resources::new(limits)).expect("a valid configuration");
    let mut sink = Ends::default();
    // The table is full before the timed part.
    for data in &frames[..CAP] {
        track(&mut tracker, &extractor, &mut sink, &Frame::ethernet(Timestamp::ZERO, data));
    }
    assert_eq!((tracker.len(), sink.flow_count), (CAP, 0));
    let mut next = CAP;
    criterion.bench_function("tracker/churn_at_cap", |bencher| {
        bencher.iter(|| {
            let frame = Frame::ethernet(Timestamp::ZERO, black_box(&frames[next]));
            next = (next + 1) % frames.len();
            track(&mut tracker, &extractor, &mut sink, &frame);
        });
    });
    let stats = tracker.stats();
    assert_eq!(
        (tracker.len(), stats.started_count),
        (CAP, stats.packet_count),
        "not every packet started a new flow"
    );
    assert_eq!(sink.flow_count, stats.started_count - CAP as u64);
}

/// 100,000 open flows that all expire in one call. The time is per flow.
fn expiry(criterion: &mut Criterion) {
    const FLOWS: usize = 100_000;
    let extractor = Extractor::default();
    let frames = frames(FLOWS);
    let full = || {
        let mut tracker = Tracker::default();
        for (data, nanos) in frames.iter().zip(1..) {
            track(
                &mut tracker,
                &extractor,
                &mut Ends::default(),
                &Frame::ethernet(Timestamp::from_nanos(nanos), data),
            );
        }
        tracker
    };
    let mut group = criterion.benchmark_group("tracker");
    group.sample_size(10).throughput(Throughput::Elements(1));
    group.bench_function("expiry/100000", |bencher| {
        bencher.iter_items_with(FLOWS as u64, full, |mut tracker| {
            let mut sink = Ends::default();
            tracker.advance(Timestamp::ZERO.saturating_add(Duration::from_secs(1000)), &mut sink);
            assert_eq!(sink.flow_count, FLOWS as u64);
            tracker
        });
    });
    // A call with as many open flows and none that is due.
    let mut tracker = full();
    let mut nanos = FLOWS as u64;
    group.sample_size(100);
    group.bench_function("advance_nothing_due", |bencher| {
        bencher.iter(|| {
            nanos += 1;
            tracker.advance(Timestamp::from_nanos(black_box(nanos)), &mut Ends::default());
        });
    });
    assert_eq!(tracker.len(), FLOWS);
    group.finish();
}

/// Whole connections of four to ten packets, of which 30,000 are open at a time, extracted and tracked in batches of 32.
/// The time is per packet, from an empty table to the end of all flows.
fn short(criterion: &mut Criterion) {
    const FLOWS: usize = 60_000;
    let extractor = Extractor::default();
    let frames = short_flows(FLOWS, 30_000);
    let frame_count = frames.iter().len() as u64;
    let run = |mut tracker: Tracker<()>| {
        let mut sink = Ends::default();
        let mut frames = frames.iter();
        while frames.len() > 0 {
            let mut packets = [Packet::EMPTY; 32];
            let mut count = 0;
            for (packet, frame) in packets.iter_mut().zip(&mut frames) {
                extractor.extract_into(&frame, packet).expect("the frame contains a packet");
                count += 1;
            }
            tracker.track_batch(&packets[..count], &mut sink);
        }
        tracker.finish(&mut sink);
        (tracker, sink)
    };
    let (_, sink) = run(Tracker::default());
    assert_eq!((sink.flow_count, sink.packet_count), (FLOWS as u64, frame_count));
    let mut group = criterion.benchmark_group("tracker");
    group.sample_size(20).throughput(Throughput::Elements(1));
    group.bench_function("short_flows", |bencher| {
        bencher.iter_items_with(frame_count, Tracker::default, run);
    });
    group.finish();
}

/// Retransmissions, keep-alives, window probes, gaps, resets, IP options and ICMP errors of a thousand known flows.
fn odd(criterion: &mut Criterion) {
    const FLOWS: usize = 1000;
    let extractor = Extractor::default();
    let [known, odd] = odd_packets(FLOWS);
    let mut tracker = Tracker::default();
    let mut sink = Ends::default();
    let mut nanos = 1_000_000;
    let mut step = |tracker: &mut Tracker<()>, data: &[u8]| {
        nanos += 700;
        track(
            tracker,
            &extractor,
            &mut sink,
            &Frame::ethernet(Timestamp::from_nanos(nanos), black_box(data)),
        );
    };
    known.iter().for_each(|data| step(&mut tracker, data));
    assert_eq!(tracker.len(), FLOWS);
    // Each unusual packet arrives once before the timed part.
    odd.iter().for_each(|data| step(&mut tracker, data));
    let mut next = 0;
    criterion.bench_function("tracker/odd_packets", |bencher| {
        bencher.iter(|| {
            step(&mut tracker, &odd[next]);
            next = if next + 1 == odd.len() { 0 } else { next + 1 };
        });
    });
    // No packet ended a flow; the ICMP errors, all of one host, are a flow of their own.
    assert_eq!((tracker.len(), sink.flow_count), (FLOWS + 1, 0));
}

criterion_group!(benches, constant_time, in_order, millions, churn, expiry, short, odd);
criterion_main!(benches);
