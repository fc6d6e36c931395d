//! One budget for all layers under an attack: allocated memory stays below the budget plus a constant, and the layers
//! release memory in the order of [`Account`], each with its own counter.
//!
//! Captures that are read have their own part of the budget (`captures.rs`).
//!
//! This is a separate binary, because its allocator counts the memory that is held. One test runs at a time.

mod captures;
#[path = "../support/heap.rs"]
mod heap;
mod neighbors;
mod order;
#[cfg(feature = "protocols")]
mod transactions;

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use etherparse::PacketBuilder;
use flowgauge::base::{Account, Budget, EndReason, Frame, Limits, Resources, Side, Timestamp};
use flowgauge::pipeline::{Pipeline, Sink, Streams};
use flowgauge::reassembler::{GapReason, StreamEvent};
use flowgauge::tracker::{Flow, FlowView};

use heap::{held_now, peak_since};

/// Lets one test allocate at a time. The attack runs first, because it measures resident memory, which can include
/// memory that other tests have freed.
fn run_alone() -> MutexGuard<'static, ()> {
    static SERIAL: Mutex<()> = Mutex::new(());
    static ATTACK: Once = Once::new();
    let guard = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    ATTACK.call_once(attack_all_layers);
    guard
}

const LIMIT: usize = 32 << 20;

/// Upper bound for other memory: cache, the first table of the index, memory for the current frame, and this test.
const FIXED: usize = 2 << 20;

/// Upper bound for other resident memory: pages that the allocator keeps, and the test threads. The program is in addition,
/// because that of a test without optimization is large.
const RESIDENT: usize = 24 << 20;

/// Counts calls.
#[derive(Default)]
struct Count {
    gap_count: u64,
    evicted_count: u64,
    ended_count: u64,
}

impl Sink for Count {
    type State = ();
    type Stage = Streams;

    fn ended(&mut self, _: &FlowView<'_>, reason: EndReason, (): ()) {
        self.ended_count += 1;
        self.evicted_count += u64::from(reason == EndReason::LackOfResources);
    }

    fn stream(&mut self, _: &mut Flow<'_, ()>, _: Side, event: &StreamEvent<'_>) -> ControlFlow<()> {
        if let StreamEvent::Gap(gap) = event {
            self.gap_count += u64::from(gap.reason == GapReason::Overflow);
        }
        ControlFlow::Continue(())
    }
}

struct Attack {
    pipeline: Pipeline<Count>,
    budget: Budget,
    nanos: u64,
}

impl Attack {
    fn new() -> Self {
        let budget = Budget::new(LIMIT as u64);
        let mut limits = Limits::DEFAULT;
        limits.fragment_datagram_count_max = 1 << 15;
        let builder = Pipeline::builder().resources(Resources::new(limits).with_budget(budget.clone()));
        let pipeline = builder.build(Count::default()).expect("a valid configuration");
        Self { pipeline, budget, nanos: 0 }
    }

    /// Processes a frame. The whole attack takes less than a second, so that nothing times out.
    fn frame(&mut self, data: &[u8]) {
        self.nanos += 1000;
        self.pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(self.nanos), data));
    }

    /// Sends the first fragment of a datagram that is never completed.
    fn first_fragment(&mut self, number: u32) {
        let [a, b, c, d] = number.to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 4, 20, c, d, 0x20, 0, 64, 17, 0, 0, 10, a, b, 9, 10, 0, 0, 1]);
        frame.extend([7; 1024]);
        self.frame(&frame);
    }

    /// Opens a connection and sends a segment far beyond the next expected sequence number.
    fn segment_far_ahead(&mut self, number: u32) {
        let [_, a, b, c] = number.to_be_bytes();
        let segment = |seq, is_syn: bool, len| {
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
                .ipv4([11, a, b, c], [192, 0, 2, 1], 64)
                .tcp(4000, 80, seq, 1000);
            let mut frame = Vec::new();
            let payload = vec![7; len];
            if is_syn {
                builder.syn().write(&mut frame, &payload)
            } else {
                builder.write(&mut frame, &payload)
            }
            .unwrap();
            frame
        };
        let frames = [segment(99, true, 0), segment(5000, false, 1400)];
        frames.iter().for_each(|frame| self.frame(frame));
    }

    fn syn(&mut self, number: u32) {
        let [a, b, c, d] = number.to_be_bytes();
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([a | 64, b, c, d], [192, 0, 2, 1], 64);
        builder.tcp(4000, 80, 1, 1000).syn().write(&mut frame, &[]).unwrap();
        self.frame(&frame);
    }

    fn held(&self, account: Account) -> usize {
        self.budget.held_by(account) as usize
    }
}

/// Returns the peak of resident memory without the files of the program, if the system reports it.
fn resident_peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
    };
    Some(value("VmHWM:")? - value("RssFile:")?)
}

#[test]
fn layers_release_memory_in_the_documented_order() {
    let _guard = run_alone();
}

fn attack_all_layers() {
    let before = held_now();
    let mut attack = Attack::new();
    let sixteenths = |count: usize| LIMIT / 16 * count;

    // Fragments alone use memory up to their own limit, or their part of the budget.
    (0..60_000).for_each(|number| attack.first_fragment(number));
    let fragment_bytes = attack.held(Account::Fragments);
    assert!(
        fragment_bytes > sixteenths(8) && attack.budget.held() as usize <= sixteenths(14),
        "{fragment_bytes}"
    );

    // Streams need memory: fragments are evicted.
    (0..30_000).for_each(|number| attack.segment_far_ahead(number));
    let fragments = attack.pipeline.stats().fragments;
    assert!(fragments.evicted_by_budget_count > 0, "{fragments:?}");
    assert!(
        attack.held(Account::Fragments) < fragment_bytes / 4,
        "{} of {fragment_bytes}",
        attack.held(Account::Fragments)
    );
    assert!(attack.held(Account::Streams) > sixteenths(4), "{}", attack.held(Account::Streams));
    assert!(
        attack.pipeline.sink().gap_count > 0
            && attack.pipeline.stats().streams.gap_count(GapReason::Overflow)
                == attack.pipeline.sink().gap_count
    );
    assert_eq!(attack.pipeline.sink().evicted_count, 0, "no flow is evicted");

    // Flows need memory: streams release it first, then flows, starting with incomplete handshakes.
    (0..200_000).for_each(|number| attack.syn(number));
    assert!(attack.held(Account::Flows) > sixteenths(14), "{}", attack.held(Account::Flows));
    attack.pipeline.check_invariants();
    // Only the pool's table and some spare blocks remain.
    assert!(attack.held(Account::Fragments) + attack.held(Account::Streams) < 1 << 20);
    assert!(attack.pipeline.sink().evicted_count > 0);
    let tracker = attack.pipeline.stats().tracker;
    assert_eq!(tracker.evicted_half_open_count, attack.pipeline.sink().evicted_count, "{tracker:?}");
    assert_eq!(tracker.evicted_by_budget_count, attack.pipeline.sink().evicted_count);

    let peak = peak_since(before);
    println!("peak of {peak} bytes, {} accounted, {:?} resident", attack.budget.peak(), resident_peak());
    assert!(attack.budget.peak() as usize <= LIMIT);
    assert!(peak <= LIMIT + FIXED, "{peak}");
    assert!(resident_peak().is_none_or(|resident| resident <= LIMIT + RESIDENT));

    // Ended flows release their memory.
    let Attack { mut pipeline, budget, .. } = attack;
    pipeline.finish();
    // Connections, handshakes, and one flow with all first fragments.
    assert_eq!(pipeline.sink().ended_count, 30_000 + 200_000 + 1);
    drop(pipeline);
    assert_eq!(budget.held(), 0);
}
