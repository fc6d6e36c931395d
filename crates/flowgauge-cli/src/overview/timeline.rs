//! Octets over time, in a bounded number of intervals.

/// Maximum number of intervals. When there are more, pairs of them are joined.
const INTERVAL_MAX: usize = 512;

/// Length of the first intervals in nanoseconds.
const START_NS: u64 = 1_000_000;

/// Octets over time.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Time of the first interval, a multiple of the length.
    start_ns: Option<u64>,
    interval_ns: u64,
    octets: Vec<u64>,
    /// Octets of packets before the first interval.
    early: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { start_ns: None, interval_ns: START_NS, octets: Vec::new(), early: 0 }
    }
}

impl Timeline {
    pub(super) fn add(&mut self, time_ns: u64, octet_count: u64) {
        let start = *self.start_ns.get_or_insert(time_ns / START_NS * START_NS);
        let Some(since) = time_ns.checked_sub(start) else {
            self.early += octet_count;
            return;
        };
        while since / self.interval_ns >= INTERVAL_MAX as u64 {
            self.interval_ns = self.interval_ns.saturating_mul(2);
            self.octets = self.octets.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let index = (since / self.interval_ns) as usize;
        if self.octets.len() <= index {
            self.octets.resize(index + 1, 0);
        }
        if let Some(octets) = self.octets.get_mut(index) {
            *octets += octet_count;
        }
    }

    /// Returns the octets in this number of equal parts of the time from the first to the last interval, as an octet belongs to
    /// the parts that its interval overlaps.
    pub(super) fn parts(&self, count: usize) -> Vec<u64> {
        let len = self.octets.len();
        let mut parts = vec![0_f64; count];
        for (index, octets) in self.octets.iter().enumerate() {
            let (from, to) = (index as f64 / len as f64, (index + 1) as f64 / len as f64);
            for (number, part) in parts.iter_mut().enumerate() {
                let (begin, end) = (number as f64 / count as f64, (number + 1) as f64 / count as f64);
                let overlap = (to.min(end) - from.max(begin)).max(0.0) / (to - from);
                *part += *octets as f64 * overlap;
            }
        }
        parts.into_iter().map(|part| part.round() as u64).collect()
    }
}

/// Returns a line of blocks whose heights are in proportion to values.
pub(super) fn sparkline(values: &[u64]) -> String {
    const BLOCKS: [char; 9] =
        [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    let greatest = values.iter().copied().max().unwrap_or(0).max(1);
    let block = |value: &u64| {
        let height = (u128::from(*value) * 8).div_ceil(u128::from(greatest)) as usize;
        BLOCKS.get(height).copied().unwrap_or(' ')
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_kept_for_any_duration() {
        for step in [1_u64, 1_000_000, 3_600_000_000_000, 86_400_000_000_000] {
            let mut timeline = Timeline::default();
            for number in 0..10_000 {
                timeline.add(1_700_000_000_000_000_000 + number * step, 10);
            }
            assert!(timeline.octets.len() <= INTERVAL_MAX);
            assert_eq!(timeline.octets.iter().sum::<u64>(), 100_000);
            for count in [1, 7, 60] {
                let parts = timeline.parts(count);
                let sum: u64 = parts.iter().sum();
                assert!(parts.len() == count && sum.abs_diff(100_000) <= count as u64, "{parts:?}");
            }
        }
    }

    #[test]
    fn the_line_has_a_block_for_each_value() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), " \u{2581}\u{2584}\u{2588}");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }
}
