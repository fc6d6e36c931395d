//! Duplicate detection with a window of 256 or 65,536 frames. Times are per frame.
//!
//! `unique`: 1024 distinct frames in turn with advancing time, so that there are no duplicates. `duplicate`: each frame
//! is repeated once.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowgauge::base::{Frame, Limits, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Mode, Window};
use per_item::PerItem as _;

mod cases;
#[path = "cases/per_item.rs"]
mod per_item;

use cases::{CLIENT, SERVER, set_seq};

/// Time between two frames: 10 million frames per second.
const GAP_NS: u64 = 100;

const HEADERS_LEN: usize = 54;

/// Creates distinct frames of a given length.
fn frames(count: u32, len: usize) -> Vec<Vec<u8>> {
    let payload = vec![0x5a; len - HEADERS_LEN];
    (0..count)
        .map(|number| {
            let mut frame = cases::tcp((CLIENT, 40_000), (SERVER, 443), &payload);
            set_seq(&mut frame, number);
            frame
        })
        .collect()
}

fn window(frame_count: u32, mode: Mode, verifies: bool) -> Window {
    let mut config = DedupConfig::default();
    (config.mode, config.verifies) = (mode, verifies);
    let mut limits = Limits::DEFAULT;
    limits.dedup_frame_count_max = frame_count;
    Window::new(config, &Resources::new(limits).with_seeds([1, 2, 3, 4])).expect("a valid configuration")
}

/// Sends each frame `times` times and returns the number of duplicates.
fn pass(window: &mut Window, frames: &[Vec<u8>], times: u32, now: &mut u64) -> u64 {
    let mut duplicate_count = 0;
    for data in frames {
        for _ in 0..times {
            *now += GAP_NS;
            let frame = Frame::ethernet(Timestamp::from_nanos(*now), black_box(data));
            duplicate_count += u64::from(window.check(&frame).is_duplicate());
        }
    }
    duplicate_count
}

fn rows(criterion: &mut Criterion) {
    use Mode::{Exact, IgnoreMirrorChanges};
    let mut group = criterion.benchmark_group("dedup");
    #[rustfmt::skip]
    let rows = [
        // id, frames in the window, distinct frames, octets per frame, repetitions, mode, octet comparison
        ("unique_64", 256, 1024, 64, 1, Exact, false),
        ("unique_1500", 256, 1024, 1500, 1, Exact, false),
        ("duplicate_1500", 256, 1024, 1500, 2, Exact, false),
        ("duplicate_64", 256, 1024, 64, 2, Exact, false),
        ("unique_64/ignoring", 256, 1024, 64, 1, IgnoreMirrorChanges, false),
        ("unique_1500/ignoring", 256, 1024, 1500, 1, IgnoreMirrorChanges, false),
        ("unique_64/verified", 256, 1024, 64, 1, Exact, true),
        ("unique_1500/verified", 256, 1024, 1500, 1, Exact, true),
        ("duplicate_1500/verified", 256, 1024, 1500, 2, Exact, true),
        ("unique_64/window_16k", 16_384, 1024, 64, 1, Exact, false),
        ("unique_64/window_64k", 65_536, 131_072, 64, 1, Exact, false),
        ("duplicate_64/window_64k", 65_536, 131_072, 64, 2, Exact, false),
    ];
    for (id, frame_count, distinct, len, times, mode, verifies) in rows {
        let frames = frames(distinct, len);
        let mut window = window(frame_count, mode, verifies);
        let mut now = 1 << 40;
        // Fills the window and checks the count: a frame is repeated only after the millisecond of the window.
        for _ in 0..20 {
            now += 1_000_000;
            let duplicate_count = pass(&mut window, &frames, times, &mut now);
            assert_eq!(duplicate_count, u64::from(distinct * (times - 1)), "{id}");
        }
        assert_eq!(window.stats().mismatch_count + window.stats().unverified_count, 0);
        window.check_invariants();
        group.throughput(Throughput::Elements(1));
        group.bench_function(id, |bencher| {
            bencher.iter_items(u64::from(distinct * times), || {
                now += 1_000_000;
                pass(&mut window, &frames, times, &mut now)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, rows);
criterion_main!(benches);
