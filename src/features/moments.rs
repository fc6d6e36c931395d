//! Moments of numbers, from exact sums.

/// Number, sum, sum of squares, least and greatest of numbers. All are exact, so that their order does not matter and
/// moments of parts are those of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moments {
    count: u64,
    sum: u64,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }
}

impl Moments {
    /// Adds a number.
    #[inline]
    pub(super) fn push(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the moments of the numbers of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum.saturating_add(other.sum),
            squares: self.squares.saturating_add(other.squares),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// Returns how many numbers there are.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum.
    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the least number; `None` if there is none.
    pub(super) fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the greatest number; `None` if there is none.
    pub(super) fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the mean; `None` if there is no number.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the sample variance, with the divisor `count - 1`; `None` for fewer than two numbers.
    pub(super) fn variance(&self) -> Option<f64> {
        let divisor = self.count.checked_sub(1).filter(|divisor| *divisor > 0)?;
        let count = u128::from(self.count);
        // Exact unless the numbers are so large that their sums saturate.
        let exact =
            || count.checked_mul(self.squares)?.checked_sub(u128::from(self.sum) * u128::from(self.sum));
        let scaled = exact().map_or_else(
            || (count as f64 * self.squares as f64 - self.sum as f64 * self.sum as f64).max(0.0),
            |exact| exact as f64,
        );
        Some(scaled / self.count as f64 / divisor as f64)
    }

    /// Returns the sample standard deviation; `None` for fewer than two numbers.
    pub(super) fn deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }
}
