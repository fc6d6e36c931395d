//! Duplicate frames: the window compared with a naive model, frame by frame.

mod mirror;
mod naive;
mod pipeline;

use std::time::Duration;

use flowgauge::base::{Account, Budget, ConfigProblem, Frame, LinkType, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Mode, Verdict, Window};
use naive::Model;
use proptest::prelude::*;

fn at(nanos: u64, data: &[u8]) -> Frame<'_> {
    Frame::ethernet(Timestamp::from_nanos(nanos), data)
}

fn window(configure: impl FnOnce(&mut DedupConfig)) -> Window {
    window_of(|config, _| configure(config))
}

fn window_of(configure: impl FnOnce(&mut DedupConfig, &mut Resources)) -> Window {
    let (mut config, mut resources) = (DedupConfig::default(), Resources::default().with_seeds([1, 2, 3, 4]));
    configure(&mut config, &mut resources);
    Window::new(config, &resources).expect("a valid configuration")
}

/// Returns verdicts as letters: `k` for a frame that is kept, `d` for a duplicate.
fn verdicts(window: &mut Window, frames: &[Frame<'_>]) -> String {
    frames.iter().map(|frame| if window.check(frame).is_duplicate() { 'd' } else { 'k' }).collect()
}

#[test]
fn a_duplicate_is_the_same_frame_within_the_window_inclusive() {
    for (gap, wanted) in [(0, "kd"), (1_000_000, "kd"), (1_000_001, "kk")] {
        assert_eq!(verdicts(&mut window(|_| {}), &[at(5, b"frame"), at(5 + gap, b"frame")]), wanted);
        // The copy may have the earlier time.
        assert_eq!(verdicts(&mut window(|_| {}), &[at(5 + gap, b"frame"), at(5, b"frame")]), wanted);
    }
}

#[test]
fn lengths_and_link_type_distinguish_frames() {
    let frame = at(5, b"frame");
    let frames = [
        frame,
        Frame { wire_len: 9, ..frame },
        Frame { link_type: LinkType::RAW, ..frame },
        at(5, b"fram"),
        at(5, b"frame\0"),
        at(5, b""),
        // A wire length below the captured length counts as the captured length.
        Frame { wire_len: 2, ..frame },
        Frame { wire_len: 9, ..frame },
    ];
    assert_eq!(verdicts(&mut window(|_| {}), &frames), "kkkkkkdd");
}

#[test]
fn the_window_of_a_third_copy_starts_at_the_second() {
    let frames = [at(1, b"x"), at(800_001, b"x"), at(1_600_001, b"x"), at(2_700_002, b"x")];
    assert_eq!(verdicts(&mut window(|_| {}), &frames), "kddk");
}

#[test]
fn retransmissions_on_one_interface_are_kept() {
    let on = |interface, nanos| Frame { interface, ..at(nanos, b"ack") };
    let mut between = window(|config| config.only_between_interfaces = true);
    // The same acknowledgment twice, each captured by two interfaces: in order, or interleaved.
    assert_eq!(verdicts(&mut between, &[on(0, 10), on(1, 11), on(0, 20), on(1, 21)]), "kdkd");
    assert_eq!(between.stats().same_interface_count, 1);
    let mut between = window(|config| config.only_between_interfaces = true);
    assert_eq!(verdicts(&mut between, &[on(0, 10), on(0, 20), on(1, 20), on(1, 30), on(2, 30)]), "kkddd");
    assert_eq!(verdicts(&mut window(|_| {}), &[on(0, 10), on(1, 11), on(0, 20), on(1, 21)]), "kddd");
}

#[test]
fn a_full_window_evicts_the_oldest_frame() {
    let mut window = window_of(|_, resources| resources.limits.dedup_frame_count_max = 3);
    let frames: Vec<_> = [0, 1, 2, 0, 3, 4, 5, 0, 1].map(|number| [number]).into();
    let frames: Vec<_> = frames.iter().map(|data| at(7, data)).collect();
    // The second 0 renews its entry, which is then newer than that of 2; three other frames evict it.
    assert_eq!(verdicts(&mut window, &frames), "kkkdkkkkk");
    assert_eq!(window.len(), 3);
    window.clear();
    assert!(window.is_empty());
    assert_eq!(verdicts(&mut window, &[frames[8], frames[8]]), "kd");
    window.check_invariants();
}

#[test]
fn frames_that_cannot_be_verified_are_kept_and_counted() {
    let mut verified = window_of(|config, resources| {
        (config.verifies, resources.limits.dedup_bytes_max) = (true, 100);
    });
    let (long, other) = ([1; 60], [2; 60]);
    assert_eq!(verdicts(&mut verified, &[at(1, &long), at(2, &long)]), "kd");
    // After 60 octets of another frame, the store cannot hold both.
    assert_eq!(verdicts(&mut verified, &[at(3, &other), at(4, &long), at(5, &long)]), "kkd");
    assert_eq!(verified.stats().unverified_count, 1);
    // Frames longer than the store.
    assert_eq!(verdicts(&mut verified, &[at(6, &[3; 101]), at(7, &[3; 101])]), "kk");
    assert_eq!((verified.stats().unverified_count, verified.stats().mismatch_count), (2, 0));
    verified.check_invariants();
}

#[test]
fn memory_grows_with_use_and_is_charged() {
    let budget = Budget::default();
    let mut window =
        window_of(|config, resources| (resources.budget, config.verifies) = (budget.clone(), true));
    let initial_bytes = budget.held_by(Account::Dedup);
    assert!(initial_bytes > 0 && initial_bytes < 24_000);
    for number in 0..40_000_u32 {
        let mut data = [7; 1000];
        data[..4].copy_from_slice(&number.to_be_bytes());
        assert_eq!(window.check(&at(1 + u64::from(number), &data)), Verdict::First);
        assert_eq!(budget.held_by(Account::Dedup), window.held_bytes());
    }
    window.check_invariants();
    assert_eq!(window.len(), 16_384);
    assert_eq!(window.held_bytes(), 16_384 * (56 + 24) + (4 << 20));
    drop(window);
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_small_budget_limits_the_window() {
    let budget = Budget::new(124_000);
    let mut window = window_of(|_, resources| resources.budget = budget.clone());
    for number in 0..5000_u32 {
        let _ = window.check(&at(1, &number.to_be_bytes()));
    }
    window.check_invariants();
    // The window may use 13/16: 1024 frames take 56 KiB, plus half as much while it grows; the next size would need 168
    // KiB.
    assert_eq!((window.len(), window.held_bytes()), (1024, 1024 * 56));
    // Memory is requested once per round, not for each frame.
    assert_eq!(window.stats().refused_count, (5000 - 1024) / 1024 + 1);
    assert!(window.check(&at(1, &4999_u32.to_be_bytes())).is_duplicate());
    assert!(!window.check(&at(1, &3000_u32.to_be_bytes())).is_duplicate());
    assert!(budget.peak() <= 100_750);

    let resources = Resources::default().with_budget(Budget::new(1000));
    let error = Window::new(DedupConfig::default(), &resources).expect_err("a budget that is too small");
    assert_eq!(error.problem, ConfigProblem::TooSmall { needed_bytes: 256 * 56 });
    for count in [0, (1 << 30) + 1] {
        let mut resources = Resources::default();
        resources.limits.dedup_frame_count_max = count;
        let error = Window::new(DedupConfig::default(), &resources).expect_err("an invalid number");
        assert_eq!((error.layer, error.field), ("dedup", "dedup_frame_count_max"));
        assert_eq!(error.problem, ConfigProblem::OutOfRange { min: 1, max: 1 << 30 });
    }
}

#[test]
fn seeds_change_no_verdict_and_are_not_printed() {
    let frames: Vec<_> = (0..200_u8).map(|number| [number % 70, 0, 1]).collect();
    let frames: Vec<_> = frames.iter().map(|data| at(9, data)).collect();
    let seeds = Some([0x5eed_5eed, 0, 0, 0]);
    let mut seeded = window_of(|_, resources| resources.seeds = seeds);
    let mut random = window_of(|_, resources| resources.seeds = None);
    assert_eq!(verdicts(&mut seeded, &frames), verdicts(&mut random, &frames));
    let resources = Resources::default().with_seeds([0x5eed_5eed, 0, 0, 0]);
    let shown = format!("{seeded:?} {:?} {resources:?}", DedupConfig::default());
    assert!(!shown.contains("seed") && !shown.contains(&0x5eed_5eed_u64.to_string()));
}

#[derive(Clone, Debug)]
struct Step {
    content: u16,
    len: usize,
    interface: u32,
    /// Difference to the previous time in nanoseconds.
    time: i64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let time =
        prop_oneof![6 => 0i64..30, 2 => -40i64..0, 1 => Just(100), 1 => Just(101), 1 => -5000i64..5000];
    let content = prop_oneof![3 => 0u16..6, 1 => 0u16..2000];
    let step = (content, 0usize..40, 0u32..3, time).prop_map(|(content, len, interface, time)| Step {
        content,
        len: len / 13,
        interface,
        time,
    });
    prop::collection::vec(step, 1..900)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn verdicts_and_counters_equal_those_of_the_model(
        steps in steps(),
        frame_count_max in prop_oneof![1u32..6, Just(300), Just(512), Just(5000)],
        only_between_interfaces in any::<bool>(),
        verifies in any::<bool>(),
    ) {
        let mut window = window_of(|config, resources| {
            config.window = Duration::from_nanos(100);
            resources.limits.dedup_frame_count_max = frame_count_max;
            (config.only_between_interfaces, config.verifies) = (only_between_interfaces, verifies);
        });
        let mut model = Model::new(frame_count_max as usize, 100, only_between_interfaces);
        let mut now = 10_000_i64;
        for step in &steps {
            now = (now + step.time).max(0);
            let data = step.content.to_be_bytes().repeat(1 + step.len);
            let frame = Frame { interface: step.interface, ..at(now as u64, &data) };
            prop_assert_eq!(window.check(&frame), model.check(&frame, naive::exact(&frame)));
            prop_assert_eq!(window.stats(), &model.stats);
        }
        window.check_invariants();
    }

    /// With a store that is too small, each duplicate of the model is dropped, or kept and counted as unverified.
    #[test]
    fn a_small_store_only_keeps_more_frames(steps in steps(), bytes in 0u64..400) {
        let mut window = window_of(|config, resources| {
            config.window = Duration::from_nanos(100);
            (config.verifies, resources.limits.dedup_bytes_max) = (true, bytes);
            config.mode = Mode::IgnoreMirrorChanges;
        });
        let mut model = Model::new(16_384, 100, false);
        let mut now = 10_000_i64;
        for step in &steps {
            now = (now + step.time).max(1);
            let data = step.content.to_be_bytes().repeat(1 + step.len);
            let frame = at(now as u64, &data);
            let unverified_count = window.stats().unverified_count;
            let (own, wanted) = (window.check(&frame), model.check(&frame, naive::exact(&frame)));
            let is_unverified = window.stats().unverified_count > unverified_count;
            prop_assert_eq!(own.is_duplicate(), wanted.is_duplicate() && !is_unverified);
            prop_assert!(wanted.is_duplicate() || !is_unverified);
        }
        prop_assert_eq!(window.stats().mismatch_count, 0);
        window.check_invariants();
    }
}
