//! Interleaved measurement of the same work by several libraries, so that load of the machine affects all of them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Number of rounds per row.
const ROUND_COUNT: usize = 25;

/// Approximate duration of a turn.
const TURN: Duration = Duration::from_millis(6);

/// A library that does the work of a row. Its state is created before the timed part and checked after it.
pub struct Contender {
    /// Name of the library.
    pub name: &'static str,
    turn: Box<dyn FnMut(u64) -> Duration>,
    check: Box<dyn FnOnce(u64)>,
}

impl Contender {
    /// Creates a contender in this process from one step and a check after a number of steps.
    pub fn new<S: 'static>(
        name: &'static str,
        state: S,
        step: impl Fn(&mut S) + 'static,
        check: impl FnOnce(&mut S, u64) + 'static,
    ) -> Self {
        let state = Rc::new(RefCell::new(state));
        let own = state.clone();
        let turn = move |count| {
            let state = &mut *own.borrow_mut();
            let started = Instant::now();
            for _ in 0..count {
                step(state);
            }
            started.elapsed()
        };
        let check = move |count| check(&mut state.borrow_mut(), count);
        Self { name, turn: Box::new(turn), check: Box::new(check) }
    }

    /// Creates a contender in another process, which measures its time.
    pub fn in_other_process(
        name: &'static str,
        turn: impl FnMut(u64) -> Duration + 'static,
        check: impl FnOnce(u64) + 'static,
    ) -> Self {
        Self { name, turn: Box::new(turn), check: Box::new(check) }
    }
}

/// A row of the table with its contenders.
pub struct Row {
    /// Number of packets or calls in one step.
    pub per_step_count: u64,
    /// Contenders in the order of the first round.
    pub contenders: Vec<Contender>,
}

impl Row {
    /// Creates a row in which a step is one call.
    #[must_use]
    pub fn new(contenders: Vec<Contender>) -> Self {
        Self { per_step_count: 1, contenders }
    }

    /// Measures and checks all contenders.
    #[must_use]
    pub fn measure(mut self, id: String) -> RowResult {
        let mut done: Vec<u64> = vec![0; self.contenders.len()];
        let mut counts = Vec::new();
        for (contender, done) in self.contenders.iter_mut().zip(&mut done) {
            let mut count = 1;
            loop {
                let time = (contender.turn)(count);
                *done += count;
                if time * 4 > TURN {
                    let per_step = time.as_nanos().max(1) / u128::from(count);
                    counts.push((TURN.as_nanos() / per_step.max(1)).max(1) as u64);
                    break;
                }
                count *= 2;
            }
        }
        let mut times = vec![Vec::new(); self.contenders.len()];
        for round in 0..ROUND_COUNT {
            for turn in 0..self.contenders.len() {
                // Each contender starts a round equally often.
                let position = (round + turn) % self.contenders.len();
                let time = (self.contenders[position].turn)(counts[position]);
                done[position] += counts[position];
                let call_count = (counts[position] * self.per_step_count) as f64;
                times[position].push(time.as_nanos() as f64 / call_count);
            }
        }
        let entries = self.contenders.into_iter().zip(done).zip(times).map(|((contender, done), times)| {
            (contender.check)(done);
            (contender.name, Spread::of(times))
        });
        RowResult { id, entries: entries.collect() }
    }
}

/// Result of a row: the id, and the nanoseconds per call of each contender.
#[derive(Clone, Debug)]
pub struct RowResult {
    /// Id as in the benches of the crate.
    pub id: String,
    /// Name and times of each contender.
    pub entries: Vec<(&'static str, Spread)>,
}

/// Median and quartiles of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
}

impl Spread {
    /// Computes the spread of at least one measurement.
    #[must_use]
    pub fn of(mut measurements: Vec<f64>) -> Self {
        measurements.sort_by(f64::total_cmp);
        let at = |quarters: usize| {
            let position = (measurements.len() - 1) as f64 * quarters as f64 / 4.0;
            let (below, share) = (position.floor() as usize, position.fract());
            let above = (below + 1).min(measurements.len() - 1);
            measurements[below] * (1.0 - share) + measurements[above] * share
        };
        Self { median: at(2), low: at(1), high: at(3) }
    }

    /// Half of the interquartile range as a percentage of the median.
    #[must_use]
    pub fn percent(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        let spread = Spread::of(vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((spread.low, spread.median, spread.high), (2.0, 3.0, 4.0));
        let spread = Spread::of(vec![2.0, 1.0]);
        assert_eq!((spread.low, spread.median, spread.high), (1.25, 1.5, 1.75));
        assert_eq!(Spread::of(vec![7.0]).percent(), 0.0);
    }

    #[test]
    fn the_check_of_each_contender_gets_the_number_of_its_steps() {
        let counting = |name| {
            let pause = |count: &mut u64| {
                *count += 1;
                std::thread::sleep(Duration::from_micros(500));
            };
            Contender::new(name, 0_u64, pause, |count, done| assert_eq!(*count, done))
        };
        let result = Row::new(vec![counting("x"), counting("y")]).measure("a".to_owned());
        assert_eq!(result.entries.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["x", "y"]);
        assert!(result.entries.iter().all(|(_, spread)| spread.low >= 500_000.0));
    }
}
