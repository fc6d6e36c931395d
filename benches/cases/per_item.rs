//! Times per item of benches that process many items at a time.

#![allow(dead_code, reason = "each bench uses some of the methods")]

use std::time::{Duration, Instant};

use criterion::Bencher;

/// Measures passes over a number of items, and reports the time of one item.
pub(crate) trait PerItem {
    /// Measures `pass`, which processes `item_count` items.
    fn iter_items<R>(&mut self, item_count: u64, pass: impl FnMut() -> R);

    /// Measures `pass`, which processes `item_count` items with an input that `setup` creates. Neither creating the
    /// input nor dropping the result is timed.
    fn iter_items_with<I, R>(&mut self, item_count: u64, setup: impl FnMut() -> I, pass: impl FnMut(I) -> R);
}

impl PerItem for Bencher<'_> {
    fn iter_items<R>(&mut self, item_count: u64, mut pass: impl FnMut() -> R) {
        measure(self, item_count, |pass_count| {
            let started = Instant::now();
            for _ in 0..pass_count {
                std::hint::black_box(pass());
            }
            started.elapsed()
        });
    }

    fn iter_items_with<I, R>(
        &mut self,
        item_count: u64,
        mut setup: impl FnMut() -> I,
        mut pass: impl FnMut(I) -> R,
    ) {
        measure(self, item_count, |pass_count| {
            let mut elapsed = Duration::ZERO;
            for _ in 0..pass_count {
                let input = setup();
                let started = Instant::now();
                let result = std::hint::black_box(pass(input));
                elapsed += started.elapsed();
                drop(result);
            }
            elapsed
        });
    }
}

/// Runs whole passes for at least as many items as criterion requests, and returns the time for exactly as many.
fn measure(bencher: &mut Bencher<'_>, item_count: u64, mut passes: impl FnMut(u64) -> Duration) {
    bencher.iter_custom(|wanted_count| {
        let pass_count = wanted_count.div_ceil(item_count);
        let elapsed = passes(pass_count);
        elapsed.mul_f64(wanted_count as f64 / (pass_count * item_count) as f64)
    });
}
