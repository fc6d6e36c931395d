//! One budget for all layers, on a hostile day: what is allocated stays below it and a constant, and those give way first that
//! the ladder of [`Account`] names first, each under its own name.
//!
//! Captures that are read have a part of the budget of their own (`captures.rs`).
//!
//! A binary of its own: its allocator counts the octets that are held. One test runs at a time.

mod captures;
#[path = "../support/heap.rs"]
mod heap;

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use etherparse::PacketBuilder;
use flowgauge::base::{Account, Budget, EndReason, Frame, Limits, Resources, Side, Timestamp};
use flowgauge::pipeline::{Pipeline, Sink, Streams};
use flowgauge::reassembler::{GapReason, StreamEvent};
use flowgauge::tracker::{Flow, FlowView};

use heap::{held_now, peak_since};

/// Lets one test allocate at a time. The hostile day comes first, since it measures what is resident, which what was freed
/// before may be.
fn alone() -> MutexGuard<'static, ()> {
    static SERIAL: Mutex<()> = Mutex::new(());
    static DAY: Once = Once::new();
    let guard = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    DAY.call_once(hostile_day);
    guard
}

const LIMIT: usize = 32 << 20;

/// What may be held besides: hot cache, the first table of the index, what the frame at hand needs, and this test.
const FIXED: usize = 2 << 20;

/// Pages that the allocator keeps, the program, and its libraries; the threads of the harness.
const RESIDENT: usize = 24 << 20;

/// Counts what is told.
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

struct Day {
    pipeline: Pipeline<Count>,
    budget: Budget,
    nanos: u64,
}

impl Day {
    fn new() -> Self {
        let budget = Budget::new(LIMIT as u64);
        let mut limits = Limits::DEFAULT;
        limits.fragment_datagram_count_max = 1 << 15;
        let builder = Pipeline::builder().resources(Resources::new(limits).with_budget(budget.clone()));
        let pipeline = builder.build(Count::default()).expect("a sound configuration");
        Self { pipeline, budget, nanos: 0 }
    }

    /// All of it happens within a second, so that nothing is due.
    fn frame(&mut self, data: &[u8]) {
        self.nanos += 1000;
        self.pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(self.nanos), data));
    }

    /// A first fragment of a datagram of which no other comes.
    fn first_fragment(&mut self, number: u32) {
        let [a, b, c, d] = number.to_be_bytes();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 4, 20, c, d, 0x20, 0, 64, 17, 0, 0, 10, a, b, 9, 10, 0, 0, 1]);
        frame.extend([7; 1024]);
        self.frame(&frame);
    }

    /// A connection in which a segment comes far ahead of what is expected.
    fn far_ahead(&mut self, number: u32) {
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

/// The most that was resident at once, where the system tells.
fn resident_peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
}

#[test]
fn what_gives_way_first_is_what_the_ladder_says() {
    let _alone = alone();
}

fn hostile_day() {
    let before = held_now();
    let mut day = Day::new();
    let sixteenths = |count: usize| LIMIT / 16 * count;

    // Fragments alone take their own cap, or their part of the budget.
    (0..60_000).for_each(|number| day.first_fragment(number));
    let alone = day.held(Account::Fragments);
    assert!(alone > sixteenths(8) && day.budget.held() as usize <= sixteenths(14), "{alone}");

    // Streams need room: fragments go.
    (0..30_000).for_each(|number| day.far_ahead(number));
    let fragments = day.pipeline.stats().fragments;
    assert!(fragments.evicted_by_budget_count > 0, "{fragments:?}");
    assert!(day.held(Account::Fragments) < alone / 4, "{} of {alone}", day.held(Account::Fragments));
    assert!(day.held(Account::Streams) > sixteenths(4), "{}", day.held(Account::Streams));
    assert!(
        day.pipeline.sink().gap_count > 0
            && day.pipeline.stats().streams.gap_count(GapReason::Overflow) == day.pipeline.sink().gap_count
    );
    assert_eq!(day.pipeline.sink().evicted_count, 0, "no flow had to go for it");

    // Flows need room: streams go, and only then flows, of which handshakes go first.
    (0..200_000).for_each(|number| day.syn(number));
    assert!(day.held(Account::Flows) > sixteenths(14), "{}", day.held(Account::Flows));
    day.pipeline.check_invariants();
    // What is left are the pool's table, and some spare blocks.
    assert!(day.held(Account::Fragments) + day.held(Account::Streams) < 1 << 20);
    assert!(day.pipeline.sink().evicted_count > 0);
    let tracker = day.pipeline.stats().tracker;
    assert_eq!(tracker.evicted_half_open_count, day.pipeline.sink().evicted_count, "{tracker:?}");
    assert_eq!(tracker.evicted_by_budget_count, day.pipeline.sink().evicted_count);

    let peak = peak_since(before);
    println!("{peak} octets at most, {} accounted, {:?} resident", day.budget.peak(), resident_peak());
    assert!(day.budget.peak() as usize <= LIMIT);
    assert!(peak <= LIMIT + FIXED, "{peak}");
    assert!(resident_peak().is_none_or(|resident| resident <= LIMIT + RESIDENT));

    // What is ended gives back what it had.
    let Day { mut pipeline, budget, .. } = day;
    pipeline.finish();
    // Connections, handshakes, and the one flow of all first fragments.
    assert_eq!(pipeline.sink().ended_count, 30_000 + 200_000 + 1);
    drop(pipeline);
    assert_eq!(budget.held(), 0);
}
