//! Cases of deduplication that cannot be reached through the public API: entry numbers that wrap, and hashes that
//! collide.

use super::ring::Ring;
use super::window::Window;
use super::{DedupConfig, Verdict};
use crate::base::{Frame, Resources, Timestamp};

#[test]
fn entry_numbers_wrap() {
    for (max, start) in [(300, u32::MAX - 700), (256, u32::MAX - 255), (5, u32::MAX - 2), (1, u32::MAX)] {
        let mut resources = Resources::default().with_seeds([9; 4]);
        resources.limits.dedup_frame_count_max = max;
        let mut window = Window::new(DedupConfig::default(), &resources).expect("a valid configuration");
        window.start_at(start);
        let mut seen = Vec::new();
        for number in 0..2000_u32 {
            let content = if number % 3 == 0 { number / 2 } else { number };
            let data = content.to_be_bytes();
            let verdict = window.check(&Frame::ethernet(Timestamp::from_nanos(1), &data));
            let reach = window.len().min(seen.len());
            // Before its first round ends, a ring that begins at another number holds less than its limit.
            if number > 1000 {
                assert_eq!(reach, max as usize);
                let was_there = seen[seen.len() - reach..].contains(&content);
                assert_eq!(verdict == Verdict::Duplicate, was_there, "{number} of {max}");
            }
            seen.push(content);
        }
        window.check_invariants();
    }
}

#[test]
fn entries_of_one_bucket_are_distinguished_and_repeated_ones_do_not_lengthen_the_chain() {
    let mut ring = Ring::new(64);
    let hash = |number: u64| number << 32;
    for round in 0..1000 {
        for number in 0..5 {
            let found = ring.find(hash(number));
            assert_eq!(found.is_some(), round > 0);
            assert_eq!(found.map(|found| found.entry.time), (round > 0).then(|| round - 1));
            ring.push(hash(number), round, 0, found);
        }
        // The entries are checked in order, and the middle one is also checked out of order.
        let found = ring.find(hash(2));
        ring.push(hash(2), round, 0, found);
        assert_eq!(ring.chain_len(hash(0)), 5);
        ring.check_invariants();
    }
    for number in 5..69 {
        ring.push(hash(number), 0, 0, None);
    }
    assert!(ring.find(hash(4)).is_none() && ring.find(hash(5)).is_some());
}
