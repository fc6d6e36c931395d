//! Numbers of values by their logarithm.

use std::collections::BTreeMap;

/// Number of bins from a power of ten to the next one.
pub(super) const BINS_PER_DECADE: i32 = 4;

/// Numbers of values in bins of equal width on a logarithmic axis.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    bins: BTreeMap<i32, u64>,
    /// Number of values that are zero.
    pub(super) zero_count: u64,
}

impl Histogram {
    pub(super) fn add(&mut self, value: f64) {
        if value > 0.0 {
            let bin = (value.log10() * f64::from(BINS_PER_DECADE)).floor() as i32;
            *self.bins.entry(bin).or_default() += 1;
        } else {
            self.zero_count += 1;
        }
    }

    /// Returns the numbers of values from the decade of the first bin to that of the last one, and the exponent of the first decade.
    pub(super) fn decades(&self) -> (i32, Vec<u64>) {
        let bounds = self.bins.first_key_value().zip(self.bins.last_key_value());
        let Some(((first, _), (last, _))) = bounds else { return (0, Vec::new()) };
        let decade = first.div_euclid(BINS_PER_DECADE);
        let end = (last.div_euclid(BINS_PER_DECADE) + 1) * BINS_PER_DECADE;
        let bins = decade * BINS_PER_DECADE..end;
        (decade, bins.map(|bin| self.bins.get(&bin).copied().unwrap_or(0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_bins_of_their_decades() {
        let mut histogram = Histogram::default();
        for value in [0.0, 0.001, 0.0099, 1.0, 2.0, 9.99] {
            histogram.add(value);
        }
        let (decade, bins) = histogram.decades();
        assert_eq!((decade, histogram.zero_count), (-3, 1));
        assert_eq!(bins, [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1]);
    }
}
