//! Duplicate detection with a full window of 256 frames.

use flowgauge::base::{Frame, Limits, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Mode, Window};
use gungraun::prelude::*;

use crate::SEEDS;
use crate::cases::{CLIENT, SERVER, set_seq, tcp};

const COUNT: u32 = 512;

const HEADERS_LEN: usize = 54;

/// A window, and distinct frames that are sent `times` times each.
struct Checking {
    window: Window,
    frames: Vec<Vec<u8>>,
    times: u32,
    now: u64,
    duplicate_count: u32,
}

impl Checking {
    fn pass(&mut self) {
        // Longer than the window, so that no frame is a duplicate of one in the previous pass.
        self.now += 1_000_000_000;
        for data in &self.frames {
            for _ in 0..self.times {
                self.now += 100;
                let frame = Frame::ethernet(Timestamp::from_nanos(self.now), data);
                self.duplicate_count += u32::from(self.window.check(&frame).is_duplicate());
            }
        }
    }
}

fn full_window(len: usize, times: u32, mode: Mode) -> Checking {
    let mut config = DedupConfig::default();
    config.mode = mode;
    let mut limits = Limits::DEFAULT;
    limits.dedup_frame_count_max = 256;
    let window =
        Window::new(config, &Resources::new(limits).with_seeds(SEEDS)).expect("a valid configuration");
    let payload = vec![0x5a; len - HEADERS_LEN];
    let frames = (0..COUNT).map(|number| {
        let mut frame = tcp((CLIENT, 40_000), (SERVER, 443), &payload);
        set_seq(&mut frame, number);
        frame
    });
    let mut checking = Checking { window, frames: frames.collect(), times, now: 0, duplicate_count: 0 };
    checking.pass();
    checking
}

fn duplicates_are_counted(checking: Checking) {
    assert_eq!(checking.duplicate_count, 2 * COUNT * (checking.times - 1));
    checking.window.check_invariants();
}

#[library_benchmark(setup = full_window, teardown = duplicates_are_counted)]
#[bench::unique_64(64, 1, Mode::Exact)]
#[bench::unique_1500(1500, 1, Mode::Exact)]
#[bench::duplicate_1500(1500, 2, Mode::Exact)]
#[bench::unique_64_ignoring(64, 1, Mode::IgnoreMirrorChanges)]
fn check(mut checking: Checking) -> Checking {
    checking.pass();
    checking
}

library_benchmark_group!(name = dedup_group, benchmarks = check);
