//! Queues between the threads of shards with a tight budget: batches and records are charged, fewer of them are queued
//! if memory is short, and nothing is lost.
//!
//! This is a separate binary, because its allocator counts the memory that is held.

#[path = "support/heap.rs"]
mod heap;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use etherparse::PacketBuilder;
use flowgauge::base::{Account, Budget, EndReason, Frame, FrameBatch, Resources, Timestamp};
use flowgauge::pipeline::{Flows, Pipeline, RunOptions, Sink};
use flowgauge::source::{End, Error, Next, Source};
use flowgauge::tracker::{Flow, FlowView};

/// Lets one test run at a time, because the counter of held memory is global.
static SERIAL: Mutex<()> = Mutex::new(());

/// Upper bound for other memory: caches, the first tables of two indexes, threads, and this test.
const FIXED: usize = 2 << 20;

/// A source of batches of new flows; counts the calls.
struct NewFlows<'a> {
    batch_count: &'a AtomicUsize,
    count: usize,
}

const BATCH_FLOW_COUNT: usize = 200;

impl Source for NewFlows<'_> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let number = self.batch_count.fetch_add(1, Relaxed);
        for flow in 0..if number < self.count { BATCH_FLOW_COUNT } else { 0 } {
            let [_, _, b, c] = ((number * BATCH_FLOW_COUNT + flow) as u32).to_be_bytes();
            let mut frame = Vec::new();
            let ends = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, b, c], [192, 0, 2, 1], 64);
            ends.udp(4000, 53).write(&mut frame, &[7; 1200]).unwrap();
            batch.push(&Frame::ethernet(Timestamp::from_nanos(number as u64 * 1000), &frame));
        }
        Ok(if number < self.count { Next::Frames } else { Next::End(End::Complete) })
    }
}

/// A sink that waits until the reader has read enough batches before it processes its first flow.
struct SlowSink<'a> {
    batch_count: &'a AtomicUsize,
    wanted: usize,
    until: Instant,
    budget: Budget,
    queues_max: u64,
    ended_count: usize,
}

impl Sink for SlowSink<'_> {
    type State = ();
    type Stage = Flows;

    fn started(&mut self, _: &mut Flow<'_, ()>) {
        while self.batch_count.load(Relaxed) < self.wanted && Instant::now() < self.until {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.queues_max = self.queues_max.max(self.budget.held_by(Account::Queues));
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {
        self.ended_count += 1;
    }
}

/// Memory of a batch of this test: its octets, and approximately 160 bytes per packet.
const BATCH_BYTES: usize = BATCH_FLOW_COUNT * (1242 + 160);

#[test]
fn batches_between_threads_are_charged() {
    let _serial = SERIAL.lock();
    // With enough memory, sixteen batches are queued; otherwise as many as memory allows, and at least one.
    for (limit, is_tight) in [(1 << 30, false), (3 << 20, true), (1100 << 10, true)] {
        let budget = Budget::new(limit as u64);
        let builder = Pipeline::builder().resources(Resources::default().with_budget(budget.clone()));
        let batch_count = AtomicUsize::new(0);
        let until = Instant::now() + Duration::from_millis(if is_tight { 100 } else { 60_000 });
        let slow_sink = || SlowSink {
            batch_count: &batch_count,
            wanted: 16,
            until,
            budget: budget.clone(),
            queues_max: 0,
            ended_count: 0,
        };
        let mut sinks = [slow_sink(), slow_sink()];
        let before = heap::held_now();
        let mut source = NewFlows { batch_count: &batch_count, count: 40 };
        let summary = builder.run_shards(&mut sinks, &mut source, &RunOptions::default()).unwrap();
        let peak = heap::peak_since(before);

        let stats = summary.stats;
        assert_eq!(stats.frame_count, 40 * BATCH_FLOW_COUNT as u64);
        assert_eq!(sinks.iter().map(|sink| sink.ended_count).sum::<usize>(), 40 * BATCH_FLOW_COUNT);
        let queues = stats.queues;
        println!("{limit}: {queues:?}, peak of {peak} bytes");
        let seen_max = sinks.iter().map(|sink| sink.queues_max).max().unwrap_or_default();
        assert!(seen_max <= queues.held_bytes_max, "{seen_max} of {queues:?}");
        if is_tight {
            assert!(queues.refused_count > 0 && (1..16).contains(&queues.batch_count_max), "{queues:?}");
        } else {
            assert_eq!((queues.refused_count, queues.batch_count_max), (0, 16));
            assert!(seen_max as usize > 16 * BATCH_BYTES * 3 / 4, "{seen_max}");
        }
        assert!(budget.peak() <= limit as u64);
        // One batch always exists, and grows by doubling.
        assert!(peak <= limit + FIXED + 3 * BATCH_BYTES, "{peak}");
        assert_eq!(budget.held_by(Account::Queues), 0, "all memory is released");
    }
}

#[test]
fn records_between_threads_are_charged() {
    let _serial = SERIAL.lock();
    for (limit, is_tight) in [(1 << 30, false), (1100 << 10, true)] {
        let budget = Budget::new(limit);
        let builder = Pipeline::builder().resources(Resources::default().with_budget(budget.clone()));
        let batch_count = AtomicUsize::new(0);
        let (mut count, mut queues_max) = (0, 0);
        let deliver = |_| {
            count += 1;
            queues_max = budget.held_by(Account::Queues).max(queues_max);
        };
        let (mut source, options) =
            (NewFlows { batch_count: &batch_count, count: 40 }, RunOptions::default());
        let summary = builder.run_records::<Flows>(2, &mut source, &options, |_| true, deliver).unwrap();
        assert_eq!(count, 40 * BATCH_FLOW_COUNT, "no record is lost when memory is short");
        assert!(queues_max > 0 || is_tight);
        assert_eq!(summary.stats.queues.refused_count > 0, is_tight);
        assert!(budget.peak() <= limit);
        assert_eq!(budget.held_by(Account::Queues), 0, "all memory is released");
    }
}
